"""The old name of :mod:`cntk.learners`."""

from typing import TYPE_CHECKING, Any

from cntk import learners

if TYPE_CHECKING:
    from cntk.learners import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return learners.__all__
        return getattr(learners, name)
