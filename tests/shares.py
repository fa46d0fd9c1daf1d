"""Cases that are so many that only a share of them is run, unless ``CNTK_TEST_ALL`` is set."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

Case = TypeVar("Case")

ALL = bool(os.environ.get("CNTK_TEST_ALL"))


def share(cases: Sequence[Case], of: int) -> Sequence[Case]:
    """The first of every so many cases; all of them where that is wanted."""
    return cases if ALL else cases[::of]
