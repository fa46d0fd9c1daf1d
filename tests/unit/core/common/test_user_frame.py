"""Lines of the user's program, in errors and warnings."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from cntk.core.common.user_frame import is_ours, user_line, warn_at, warn_user


def within_the_package(function: Callable[..., Any], depth: int) -> Callable[..., Any]:
    """The function, called through frames of a module of the package."""
    for _ in range(depth):
        space: dict[str, Any] = {"__name__": "cntk.made_up", "function": function}
        exec("def call(*args):\n    return function(*args)", space)
        function = space["call"]
    return function


def line_here() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


@pytest.mark.parametrize("depth", [0, 1, 4])
def test_the_line_is_the_users_however_deep_the_package(depth: int) -> None:
    asked = within_the_package(user_line, depth)
    assert asked() == f"{__file__}:{line_here()}"


@pytest.mark.parametrize("depth", [0, 1, 4])
def test_a_warning_is_of_the_users_line(depth: int) -> None:
    warn = within_the_package(warn_user, depth)
    with pytest.warns(RuntimeWarning, match="careful") as told:
        warn("careful", RuntimeWarning)
    assert (told[0].filename, told[0].lineno) == (__file__, line_here() - 1)


def test_a_warning_at_a_line_is_shown_once() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for line in ("a.py:1", "a.py:1", "a.py:2"):
            warn_at("shown once a line", line)
    assert [(one.filename, one.lineno) for one in told] == [("a.py", 1), ("a.py", 2)]


@pytest.mark.parametrize(
    ("module", "ours"),
    [("cntk", True), ("cntk.layers", True), ("cntk_extras", False), ("mycntk.x", False), ("cntk.tests.test_utils", False), ("", False)],
)
def test_what_is_ours(module: str, ours: bool) -> None:
    assert is_ours(module) is ours
