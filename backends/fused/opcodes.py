"""Operations and columns of tapes, which :mod:`~cntk.backends.fused.tape` runs."""

from __future__ import annotations

COPY, ADD_TO, ADD, SUBTRACT, MULTIPLY, NEGATE = range(6)
ADD_NUMBER, SUBTRACT_NUMBER, SUBTRACT_FROM_NUMBER, MULTIPLY_NUMBER = range(6, 10)
SIGMOID, SIGMOID_GRADIENT, TANH, TANH_GRADIENT, RELU, RELU_GRADIENT = range(10, 16)
PRODUCT = 16
"""Operations z = f(x, y) on a row; of those with a number y is a single element, of gradients x is that of the result y."""

DIVIDE, DIVIDE_NUMBER, DIVIDE_BY_NUMBER, QUOTIENT, MAXIMUM, MAXIMUM_NUMBER, MINIMUM, MINIMUM_NUMBER = range(17, 25)
GREATER, GREATER_NUMBER, LESS_NUMBER, AT_LEAST, AT_LEAST_NUMBER, AT_MOST_NUMBER, EQUAL, EQUAL_NUMBER = range(25, 33)
SLOPE, SLOPE_NUMBER, WHERE, WHERE_NUMBER, WHERE_NOT, WHERE_NOT_NUMBER = range(33, 39)
EXP, EXPM1, LOG, LOG1P, SQRT, ABS, SIGN, FLOOR, FILL, ROW_SUM = range(39, 49)
"""Operations of chains alone.  Quotients by 0 are 0, but those of QUOTIENT; comparisons give 1 and 0; SLOPE is y where x is negative and 1
elsewhere; WHERE is x where y is not 0, and -0 elsewhere; FILL gives a number to all of a row, ROW_SUM a number for a row."""

KIND, SIZE, BACK, DEPTH = range(4)
Z, Z_STRIDE, Z_PASSES, X, X_STRIDE, X_PASSES, Y, Y_STRIDE, Y_PASSES, TERM, TERM_STRIDE, TERM_PASSES = range(4, 16)
"""Columns of a tape: the operation, elements of a row of the result, how many steps back a delay looks (0 for none), and of a product the
elements of a row of x.  Then of each operand where row 0 is, how many bytes a row takes, and whether that is row 0 of each step, whose rows
are gone with the step.  The last operand is a term that is added to a product, if its address is not 0."""

JOINED = 2
Z_AT, X_AT, Y_AT = range(3, 24, 7)
PLACE, OUTER, MIDDLE, ROW, STRIDE, THREAD, PART = range(7)
"""Columns of a chain's tape, after the operation and the elements of a row: whether the rows of a group are done as one, and where the
columns of each operand begin.  These are where it is, how many bytes it is further on with each index of a group, from row to row within
one, and with each thread and part of the work."""
