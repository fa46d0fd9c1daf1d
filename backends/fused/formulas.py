"""What element-wise operators compute, and their gradients, in operations of tapes.

A formula is given ``w``, which makes a value from an operation and operands, values or numbers: ``w(op.ADD, x, y)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

from ...core.extension.identity import ByClass
from ...core.operators.op import Op
from . import opcodes as op

Formula = Callable[..., Any]

LEAST_LOGARITHM = -85.1


def _clipped(w: Any, of: Op, x: Any, low: Any, high: Any) -> Any:
    return w(op.MINIMUM, w(op.MAXIMUM, x, low), high)


def _exponential_unit(w: Any, of: Any, x: Any) -> Any:
    below = w(op.MULTIPLY, w(op.EXPM1, w(op.MINIMUM, x, 0)), of.alpha)
    return w(op.ADD, below, w(op.MAXIMUM, x, 0))


def _smooth_rectifier(w: Any, of: Any, x: Any) -> Any:
    scaled = w(op.MULTIPLY, x, of.steepness)
    rest = w(op.LOG1P, w(op.EXP, w(op.NEGATE, w(op.ABS, scaled))))
    return w(op.MULTIPLY, w(op.ADD, rest, w(op.MAXIMUM, scaled, 0)), 1 / of.steepness)


def _soft_sign(w: Any, of: Any, x: Any) -> Any:
    scaled = w(op.MULTIPLY, x, of.steepness)
    return w(op.DIVIDE, scaled, w(op.ADD, w(op.ABS, scaled), 1))


def _hard_sigmoid(w: Any, of: Any, x: Any) -> Any:
    return w(op.MINIMUM, w(op.MAXIMUM, w(op.ADD, w(op.MULTIPLY, x, of.alpha), of.beta), 0), 1)


def _log_of_sum(w: Any, of: Op, x: Any, y: Any) -> Any:
    rest = w(op.LOG1P, w(op.EXP, w(op.NEGATE, w(op.ABS, w(op.SUBTRACT, x, y)))))
    return w(op.ADD, rest, w(op.MAXIMUM, x, y))


def _selected(w: Any, of: Op, flag: Any, if_true: Any, if_false: Any) -> Any:
    return w(op.ADD, w(op.WHERE, if_true, flag), w(op.WHERE_NOT, if_false, flag))


def _learned_slope(w: Any, of: Op, alpha: Any, x: Any) -> Any:
    return w(op.ADD, w(op.MULTIPLY, alpha, w(op.MINIMUM, x, 0)), w(op.MAXIMUM, x, 0))


def _sum(w: Any, of: Op, *inputs: Any) -> Any:
    return reduce(lambda total, x: w(op.ADD, total, x), inputs)


def _unary(kind: int) -> Formula:
    return lambda w, of, x: w(kind, x)


def _binary(kind: int) -> Formula:
    return lambda w, of, x, y: w(kind, x, y)


FORWARD = ByClass[Formula](
    {
        "cntk.plugins.ops.arithmetic:Plus": _binary(op.ADD),
        "cntk.plugins.ops.arithmetic:Minus": _binary(op.SUBTRACT),
        "cntk.plugins.ops.arithmetic:ElementTimes": _binary(op.MULTIPLY),
        "cntk.plugins.ops.arithmetic:ElementDivide": _binary(op.DIVIDE),
        "cntk.plugins.ops.maximum:ElementMax": _binary(op.MAXIMUM),
        "cntk.plugins.ops.maximum:ElementMin": _binary(op.MINIMUM),
        "cntk.plugins.ops.comparison:Greater": _binary(op.GREATER),
        "cntk.plugins.ops.comparison:GreaterEqual": _binary(op.AT_LEAST),
        "cntk.plugins.ops.comparison:Less": lambda w, of, x, y: w(op.GREATER, y, x),
        "cntk.plugins.ops.comparison:LessEqual": lambda w, of, x, y: w(op.AT_LEAST, y, x),
        "cntk.plugins.ops.comparison:Equal": _binary(op.EQUAL),
        "cntk.plugins.ops.comparison:NotEqual": lambda w, of, x, y: w(op.SUBTRACT, 1, w(op.EQUAL, x, y)),
        "cntk.plugins.ops.maximum:LogPlus": _log_of_sum,
        "cntk.plugins.ops.activation:PReLU": _learned_slope,
        "cntk.plugins.ops.arithmetic:Sum": _sum,
        "cntk.plugins.ops.arithmetic:Mean": lambda w, of, *inputs: w(op.MULTIPLY, _sum(w, of, *inputs), 1 / len(inputs)),
        "cntk.plugins.ops.elementary:Clip": _clipped,
        "cntk.plugins.ops.comparison:Select": _selected,
        "cntk.plugins.ops.arithmetic:Negate": _unary(op.NEGATE),
        "cntk.plugins.ops.arithmetic:Reciprocal": lambda w, of, x: w(op.DIVIDE, 1, x),
        "cntk.plugins.ops.arithmetic:Abs": _unary(op.ABS),
        "cntk.plugins.ops.elementary:Exp": _unary(op.EXP),
        "cntk.plugins.ops.elementary:Log": lambda w, of, x: w(op.MAXIMUM, w(op.LOG, x), LEAST_LOGARITHM),
        "cntk.plugins.ops.elementary:Sqrt": _unary(op.SQRT),
        "cntk.plugins.ops.elementary:Floor": _unary(op.FLOOR),
        "cntk.plugins.ops.elementary:Ceil": lambda w, of, x: w(op.NEGATE, w(op.FLOOR, w(op.NEGATE, x))),
        "cntk.plugins.ops.elementary:Round": lambda w, of, x: w(op.FLOOR, w(op.ADD, x, 0.5)),
        "cntk.plugins.ops.activation:Sigmoid": _unary(op.SIGMOID),
        "cntk.plugins.ops.activation:Tanh": _unary(op.TANH),
        "cntk.plugins.ops.activation:ReLU": _unary(op.RELU),
        "cntk.plugins.ops.activation:LeakyReLU": lambda w, of, x: w(op.MULTIPLY, x, w(op.SLOPE, x, of.alpha)),
        "cntk.plugins.ops.activation:ELU": _exponential_unit,
        "cntk.plugins.ops.activation:SELU": lambda w, of, x: w(op.MULTIPLY, _exponential_unit(w, of, x), of.gamma),
        "cntk.plugins.ops.activation:Softplus": _smooth_rectifier,
        "cntk.plugins.ops.activation:Softsign": _soft_sign,
        "cntk.plugins.ops.activation:HardSigmoid": _hard_sigmoid,
    }
)
"""For each operator its result, from operator and operands."""


def _of_quotient(w: Any, of: Op, i: int, dz: Any, z: Any, x: Any, y: Any) -> Any:
    dx = w(op.DIVIDE, dz, y)
    return dx if i == 0 else w(op.NEGATE, w(op.MULTIPLY, dx, z))


def _of_greater(w: Any, of: Op, i: int, dz: Any, z: Any, x: Any, y: Any) -> Any:
    return w(op.MULTIPLY, dz, w(op.GREATER, x, y) if i == 0 else w(op.AT_LEAST, y, x))


def _of_smaller(w: Any, of: Op, i: int, dz: Any, z: Any, x: Any, y: Any) -> Any:
    return w(op.MULTIPLY, dz, w(op.GREATER, y, x) if i == 0 else w(op.AT_LEAST, x, y))


def _of_log_of_sum(w: Any, of: Op, i: int, dz: Any, z: Any, *inputs: Any) -> Any:
    return w(op.DIVIDE, dz, w(op.ADD, w(op.EXP, w(op.SUBTRACT, inputs[1 - i], inputs[i])), 1))


def _of_logarithm(w: Any, of: Op, i: int, dy: Any, y: Any, x: Any) -> Any:
    return w(op.DIVIDE, dy, w(op.MAXIMUM, x, math.exp(LEAST_LOGARITHM)))


def _of_clipped(w: Any, of: Op, i: int, dy: Any, y: Any, x: Any, low: Any, high: Any) -> Any:
    return w(op.MULTIPLY, w(op.MULTIPLY, w(op.AT_LEAST, x, low), w(op.AT_LEAST, high, x)), dy)


def _of_selected(w: Any, of: Op, i: int, dy: Any, y: Any, flag: Any, *others: Any) -> Any:
    is_false = w(op.EQUAL, flag, 0)
    return w(op.MULTIPLY, dy, is_false if i == 2 else w(op.SUBTRACT, 1, is_false))


def _of_learned_slope(w: Any, of: Op, i: int, dy: Any, y: Any, alpha: Any, x: Any) -> Any:
    return w(op.MULTIPLY, w(op.MINIMUM, x, 0) if i == 0 else w(op.SLOPE, x, alpha), dy)


def _of_exponential_unit(w: Any, of: Any, i: int, dy: Any, y: Any, x: Any) -> Any:
    below = w(op.MULTIPLY, w(op.EXP, w(op.MINIMUM, x, 0)), of.alpha)
    return w(op.MULTIPLY, w(op.SLOPE, x, below), dy)


def _of_smooth_rectifier(w: Any, of: Any, i: int, dy: Any, y: Any, x: Any) -> Any:
    return w(op.MULTIPLY, w(op.NEGATE, w(op.EXPM1, w(op.MULTIPLY, y, -of.steepness))), dy)


def _of_soft_sign(w: Any, of: Any, i: int, dy: Any, y: Any, x: Any) -> Any:
    below = w(op.DIVIDE, 1, w(op.ADD, w(op.ABS, w(op.MULTIPLY, x, of.steepness)), 1))
    return w(op.MULTIPLY, w(op.MULTIPLY, w(op.MULTIPLY, below, below), of.steepness), dy)


def _of_hard_sigmoid(w: Any, of: Any, i: int, dy: Any, y: Any, x: Any) -> Any:
    is_inside = w(op.MULTIPLY, w(op.GREATER, y, 0), w(op.GREATER, 1, y))
    return w(op.MULTIPLY, w(op.MULTIPLY, is_inside, of.alpha), dy)


def _by_result(kind: int) -> Formula:
    return lambda w, of, i, dy, y, x: w(kind, dy, y)


GRADIENT = ByClass[Formula](
    {
        "cntk.plugins.ops.arithmetic:Plus": lambda w, of, i, dz, z, x, y: dz,
        "cntk.plugins.ops.arithmetic:Minus": lambda w, of, i, dz, z, x, y: w(op.NEGATE, dz) if i else dz,
        "cntk.plugins.ops.arithmetic:ElementTimes": lambda w, of, i, dz, z, x, y: w(op.MULTIPLY, dz, x if i else y),
        "cntk.plugins.ops.arithmetic:ElementDivide": _of_quotient,
        "cntk.plugins.ops.maximum:ElementMax": _of_greater,
        "cntk.plugins.ops.maximum:ElementMin": _of_smaller,
        "cntk.plugins.ops.maximum:LogPlus": _of_log_of_sum,
        "cntk.plugins.ops.activation:PReLU": _of_learned_slope,
        "cntk.plugins.ops.arithmetic:Sum": lambda w, of, i, dz, z, *inputs: dz,
        "cntk.plugins.ops.arithmetic:Mean": lambda w, of, i, dz, z, *inputs: w(op.MULTIPLY, dz, 1 / len(inputs)),
        "cntk.plugins.ops.elementary:Clip": _of_clipped,
        "cntk.plugins.ops.comparison:Select": _of_selected,
        "cntk.plugins.ops.arithmetic:Negate": lambda w, of, i, dy, y, x: w(op.NEGATE, dy),
        "cntk.plugins.ops.arithmetic:Reciprocal": lambda w, of, i, dy, y, x: w(op.MULTIPLY, w(op.NEGATE, w(op.MULTIPLY, y, y)), dy),
        "cntk.plugins.ops.arithmetic:Abs": lambda w, of, i, dy, y, x: w(op.MULTIPLY, dy, w(op.SIGN, x)),
        "cntk.plugins.ops.elementary:Exp": _by_result(op.MULTIPLY),
        "cntk.plugins.ops.elementary:Log": _of_logarithm,
        "cntk.plugins.ops.elementary:Sqrt": lambda w, of, i, dy, y, x: w(op.WHERE, w(op.QUOTIENT, dy, w(op.MULTIPLY, y, 2)), dy),
        "cntk.plugins.ops.activation:Sigmoid": _by_result(op.SIGMOID_GRADIENT),
        "cntk.plugins.ops.activation:Tanh": _by_result(op.TANH_GRADIENT),
        "cntk.plugins.ops.activation:ReLU": _by_result(op.RELU_GRADIENT),
        "cntk.plugins.ops.activation:LeakyReLU": lambda w, of, i, dy, y, x: w(op.MULTIPLY, w(op.SLOPE, x, of.alpha), dy),
        "cntk.plugins.ops.activation:ELU": _of_exponential_unit,
        "cntk.plugins.ops.activation:SELU": lambda w, of, i, dy, y, x: w(op.MULTIPLY, _of_exponential_unit(w, of, i, dy, y, x), of.gamma),
        "cntk.plugins.ops.activation:Softplus": _of_smooth_rectifier,
        "cntk.plugins.ops.activation:Softsign": _of_soft_sign,
        "cntk.plugins.ops.activation:HardSigmoid": _of_hard_sigmoid,
    }
)
"""For each operator the gradient of operand i, from operator, i, the result's gradient, result and operands; what the operator does not
keep is None."""
