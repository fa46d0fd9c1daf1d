"""What a tape is made of: see :mod:`~cntk.backends.fused.tape`, which runs it."""

from __future__ import annotations

COPY, ADD_TO, ADD, SUBTRACT, MULTIPLY, NEGATE = range(6)
ADD_NUMBER, SUBTRACT_NUMBER, SUBTRACT_FROM_NUMBER, MULTIPLY_NUMBER = range(6, 10)
SIGMOID, SIGMOID_GRADIENT, TANH, TANH_GRADIENT, RELU, RELU_GRADIENT = range(10, 16)
PRODUCT = 16
"""Operations z = f(x, y) on a row; of those with a number y is a single element, of gradients x is that of the result y."""

KIND, SIZE, BACK, DEPTH = range(4)
Z, Z_STRIDE, Z_PASSES, X, X_STRIDE, X_PASSES, Y, Y_STRIDE, Y_PASSES = range(4, 13)
"""Columns of a tape: the operation, elements of a row of the result, how many steps back a delay looks (0 for none), and of a product the
elements of a row of x.  Then of each operand where row 0 is, how many bytes a row takes, and whether that is row 0 of each step, whose rows
are gone with the step."""
