"""Cases that are so many that only a share of them is run, unless ``CNTK_TEST_ALL`` is set.

``pytest --share N`` runs one of N tests, where another run has all of them under other conditions.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from typing import TypeVar

import pytest

Case = TypeVar("Case")

ALL = bool(os.environ.get("CNTK_TEST_ALL"))


def share(cases: Sequence[Case], of: int) -> Sequence[Case]:
    """The first of every so many cases; all of them where that is wanted."""
    return cases if ALL else cases[::of]


def keep_share(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests that are not in the share; which are depends on their names alone."""
    of = 1 if ALL else config.getoption("--share")
    left_out = [item for item in items if zlib.crc32(item.name.encode()) % of]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
