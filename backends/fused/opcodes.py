"""What a tape is made of: see :mod:`~cntk.backends.fused.tape`, which runs it."""

from __future__ import annotations

COPY, ADD_TO, ADD, SUBTRACT, MULTIPLY, NEGATE = range(6)
ADD_NUMBER, SUBTRACT_NUMBER, SUBTRACT_FROM_NUMBER, MULTIPLY_NUMBER = range(6, 10)
SIGMOID, SIGMOID_GRADIENT, TANH, TANH_GRADIENT, RELU, RELU_GRADIENT = range(10, 16)
PRODUCT = 16
"""Operations z = f(x, y) on a row; of those with a number y is a single element, of gradients x is that of the result y."""

KIND, Z, Z_STRIDE, X, X_STRIDE, Y, Y_STRIDE, SIZE, BACK, DEPTH = range(10)
"""Columns of a tape: the operation, where row 0 of each operand is and how many bytes a row takes, elements of a row of the result, how
many steps back a delay looks (0 for none), and of a product the elements of a row of x."""
