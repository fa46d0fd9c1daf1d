"""The environment of the process: variables that configure the package, and processors.

Values of variables are checked; an empty variable counts as unset unless documented otherwise.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping


def number_in(name: str, default: float, environment: Mapping[str, str] = os.environ) -> float:
    """The value of a variable, a number not less than 0.

    Raises:
        ValueError: it holds something else.
    """
    text = environment.get(name, "").strip()
    try:
        number = float(text) if text else default
    except ValueError:
        number = math.nan
    if not number >= 0:
        raise ValueError(f"the environment variable {name} must hold a number, 0 or more, got {text!r}; correct or unset it")
    return number


def whole_in(name: str, environment: Mapping[str, str] = os.environ) -> int | None:
    """The value of a variable, a whole number not less than 0; None if it is unset.

    Raises:
        ValueError: it holds something else.
    """
    text = environment.get(name, "").strip()
    if text and not (text.isascii() and text.isdigit()):
        raise ValueError(f"the environment variable {name} must hold a whole number, 0 or more, got {text!r}; correct or unset it")
    return int(text) if text else None


def switch_in(name: str, default: bool, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a variable is 1, and not 0.

    Raises:
        ValueError: it holds something else.
    """
    text = environment.get(name, "").strip()
    if text not in ("", "0", "1"):
        raise ValueError(f"the environment variable {name} must be 0 or 1, got {text!r}; correct or unset it")
    return text == "1" if text else default


def names_in(name: str, environment: Mapping[str, str] = os.environ) -> tuple[str, ...] | None:
    """The names in a variable, separated by commas: none where it is empty, None where it is not set."""
    text = environment.get(name)
    return None if text is None else tuple(one.strip() for one in text.split(",") if one.strip())


def processors() -> int:
    """Number of processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
