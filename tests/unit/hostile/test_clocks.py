"""Whatever the clock says, nothing is measured by it or decided."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "hostile"))
from clocks import TRIED, begin, jumping


@pytest.mark.parametrize("what", TRIED, ids=lambda what: what.__name__)
def test_while_the_clock_jumps(what: Callable[..., Any], tmp_path: Path) -> None:
    begin()
    random = np.random.default_rng(0)
    with jumping(random):
        what(random, tmp_path)
