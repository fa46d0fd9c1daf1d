"""A loss that is no finite number: what to do about it, said once in a process, where the loss is read anyway."""

from __future__ import annotations

from math import isfinite

from ...core.common.switches import Switch, checked_mode
from ...core.common.user_frame import warn_user

is_told = Switch("not_finite_is_told", False)
"""Whether the warning has been given."""


def warn_unless_finite(loss: float) -> None:
    """Warn about a loss that is NaN or infinite, at the user's line, once; not in checked mode, which raises an error."""
    if isfinite(loss) or is_told.value or checked_mode.value:
        return
    is_told.value = True
    warn_user(
        f"the loss is {loss}: C.debugging.set_checked_mode(True) makes training stop at the operator that gives the first NaN, and name it "
        "with its line; mostly the learning rate is too large or the data have NaN in them, and float16 wants a loss_scale"
    )
