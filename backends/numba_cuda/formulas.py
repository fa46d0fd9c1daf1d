"""Formulas in Python, for kernels of numbers of one type: ``real`` makes one, ``zero`` and ``one`` are two, functions have C's names."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from ...core.formulas.formula import Primitive as P
from ...core.formulas.source import Language
from .compiler import SIMULATED

EXPRESSIONS: dict[P, str] = {
    P.ADD: "{0} + {1}",
    P.SUBTRACT: "{0} - {1}",
    P.MULTIPLY: "{0} * {1}",
    P.DIVIDE: "{0} / {1} if {1} != zero else {0} * zero",
    P.QUOTIENT: "{0} / {1}",
    P.POWER: "zero if {0} == zero and {1} < zero else pow({0}, {1})",
    P.HYPOT: "hypot({0}, {1})",
    P.MAXIMUM: "{0} if {0} >= {1} or {0} != {0} else {1}",
    P.MINIMUM: "{0} if {0} <= {1} or {0} != {0} else {1}",
    P.GREATER: "one if {0} > {1} else zero",
    P.GREATER_EQUAL: "one if {0} >= {1} else zero",
    P.EQUAL: "one if {0} == {1} else zero",
    P.WHERE: "{1} if {0} != zero else {2}",
    P.NEGATE: "-{0}",
    P.ABS: "fabs({0})",
    P.SIGN: "one if {0} > zero else -one if {0} < zero else {0} * zero",
    P.FLOOR: "floor({0})",
    P.EXP: "exp({0})",
    P.EXPM1: "expm1({0})",
    P.LOG: "log(zero if {0} < zero else {0})",
    P.LOG1P: "log1p({0})",
    P.SQRT: "sqrt(zero if {0} < zero else {0})",
    P.SIGMOID: "one if {0} > 80 else exp({0}) / (exp({0}) + one)",
    P.TANH: "tanh({0})",
    P.SIN: "sin({0})",
    P.COS: "cos({0})",
    P.TAN: "tan({0})",
    P.ARCSIN: "asin({0})",
    P.ARCCOS: "acos({0})",
    P.ARCTAN: "atan({0})",
    P.SINH: "sinh({0})",
    P.COSH: "cosh({0})",
    P.ARCSINH: "asinh({0})",
    P.ARCTANH: "atanh({0})",
}
"""For each primitive an expression of names and numbers."""

OTHERWISE_NAMED = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "atanh": "arctanh", "pow": "power"}
"""NumPy's names of functions, where they are not C's."""

FUNCTIONS = (
    *("fabs", "floor", "exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "hypot"),
    *OTHERWISE_NAMED,
)
"""C's names of the functions that expressions call."""


def names_for(dtype: Any) -> dict[str, Any]:
    """The global names that expressions need for numbers of a type."""
    real = np.dtype(dtype).type
    names: dict[str, Any] = {"np": np, "real": real, "zero": real(0), "one": real(1)}
    if SIMULATED:
        return names | {name: getattr(np, OTHERWISE_NAMED.get(name, name)) for name in FUNCTIONS}
    from numba.cuda import libdevice

    return names | {name: getattr(libdevice, f"{name}f" if real is np.float32 else name) for name in FUNCTIONS}


def _expression(primitive: P, parts: Sequence[str]) -> str:
    return EXPRESSIONS[primitive].format(*parts)


def _number(value: float) -> str:
    return f"real({value!r})" if isfinite(value) else "real(np.nan)" if value != value else f"real({'-' if value < 0 else ''}np.inf)"


LANGUAGE = Language(_expression, _number, lambda name, value: f"{name} = {value}")
"""Python, as kernels are written in."""
