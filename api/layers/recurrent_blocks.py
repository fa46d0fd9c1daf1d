"""Step functions of recurrences: from the previous state and an input to the new state.

Weights of several gates lie side by side in one matrix, so that a step takes one product with the input and one with the state.
"""

from __future__ import annotations

from typing import Any

from cntk import ops
from cntk.core.common.shape import as_shape
from cntk.core.common.user_frame import warn_user
from cntk.core.graph.arguments import FunctionLike, InitLike, ShapeLike
from cntk.core.types.arguments import checked
from cntk.default_options import default_override_or, get_default_override
from cntk.initializer import glorot_uniform
from cntk.layers.arguments import INFERRED, activation_for
from cntk.layers.basic_blocks import Stabilizer, identity
from cntk.ops import sigmoid, tanh
from cntk.ops.functions import BlockFunction, Function
from cntk.variables import Parameter


@checked
def RNNStep(
    shape: ShapeLike,
    cell_shape: ShapeLike | None = None,
    activation: FunctionLike | None = default_override_or(sigmoid),
    init: InitLike = default_override_or(glorot_uniform()),
    init_bias: InitLike = default_override_or(0),
    enable_self_stabilization: bool = default_override_or(False),
    name: str = "",
) -> Function:
    """The step of a plain recurrent network: h = activation(x · W + h' · H + b), with h' from the step before.

    Args:
        shape: dimension of h, an int or a tuple of one.
        cell_shape: where it is given, the step has this dimension and is projected to *shape* by a parameter ``P``.
        activation: function applied to the sum; None for none.
        init: initial value of ``W``, ``H`` and ``P``: a number or an initialiser.
        init_bias: initial value of ``b``: a number, an array or an initialiser.
        enable_self_stabilization: whether a :func:`Stabilizer` scales the previous state, and what is projected.
        name: name of the block.

    Returns:
        A function (h', x) → h of vectors, x dense or sparse; meant for :func:`Recurrence`, :func:`RecurrenceFrom` and :func:`Fold`.

    Raises:
        ValueError: *shape* or *cell_shape* has several axes, or none.

    >>> from cntk.layers import RNNStep, Recurrence
    >>> x = C.sequence.input_variable(2)
    >>> h = Recurrence(RNNStep(3, activation=C.relu))(x)
    >>> h.shape, h.W.shape, h.H.shape, h.b.shape
    ((3,), (2, 3), (3, 3), (3,))
    """
    activation = get_default_override(RNNStep, activation=activation)
    init = get_default_override(RNNStep, init=init)
    init_bias = get_default_override(RNNStep, init_bias=init_bias)
    stabilize = get_default_override(RNNStep, enable_self_stabilization=enable_self_stabilization)
    return _rnn_step(shape, cell_shape, activation, init, init_bias, stabilize, name)


@checked
def RNNUnit(
    shape: ShapeLike,
    cell_shape: ShapeLike | None = None,
    activation: FunctionLike | None = default_override_or(sigmoid),
    init: InitLike = default_override_or(glorot_uniform()),
    init_bias: InitLike = default_override_or(0),
    enable_self_stabilization: bool = default_override_or(False),
    name: str = "",
) -> Function:
    """The old name of :func:`RNNStep`.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter('always')
    ...     step = C.layers.RNNUnit(3)
    >>> print(said[0].message)
    RNNUnit is the old name of RNNStep
    """
    warn_user("RNNUnit is the old name of RNNStep", DeprecationWarning)
    activation = get_default_override(RNNUnit, activation=activation)
    init = get_default_override(RNNUnit, init=init)
    init_bias = get_default_override(RNNUnit, init_bias=init_bias)
    stabilize = get_default_override(RNNUnit, enable_self_stabilization=enable_self_stabilization)
    return _rnn_step(shape, cell_shape, activation, init, init_bias, stabilize, name)


def _rnn_step(shape: Any, cell_shape: Any, activation: Any, init: Any, init_bias: Any, stabilize: Any, name: str) -> Function:
    activation = activation_for("RNNStep", activation)
    size, cell = _sizes("RNNStep", shape, cell_shape)
    b = Parameter(cell, init=init_bias, name="b")
    W = Parameter((*INFERRED, cell), init=init, name="W")
    H = Parameter((size, cell), init=init, name="H")
    P = _projection_matrix(size, cell, cell_shape, init)
    scaled = _stabilizer("dh", stabilize)
    project = _projection(P, stabilize)

    @BlockFunction("RNNStep", name)
    def rnn_step(dh: Any, x: Any) -> Any:
        return project(activation(ops.times(x, W) + ops.times(scaled(dh), H) + b))

    return rnn_step


@checked
def GRU(
    shape: ShapeLike,
    cell_shape: ShapeLike | None = None,
    activation: FunctionLike | None = default_override_or(tanh),
    init: InitLike = default_override_or(glorot_uniform()),
    init_bias: InitLike = default_override_or(0),
    enable_self_stabilization: bool = default_override_or(False),
    name: str = "",
) -> Function:
    """The step of a gated recurrent unit.

    With h' from the step before, z, r and c the thirds of x · W + b, and hz and hr the halves of h' · H::

        z = sigmoid(z + hz)                         update gate
        r = sigmoid(r + hr)                         reset gate
        h = (1 - z)·activation(c + (r·h') · H1) + z·h'

    Args:
        shape: dimension of h, an int or a tuple of one.
        cell_shape: dimension of the gates where it is to be another: the block then has a second state of this dimension, c, which
            takes the place of h in the formulas of r·h' and of the result, and a parameter ``P`` projects it to h.
        activation: function in place of tanh; None for none.
        init: initial value of ``W``, ``H``, ``H1`` and ``P``: a number or an initialiser.
        init_bias: initial value of ``b``: a number, an array or an initialiser.
        enable_self_stabilization: whether a :func:`Stabilizer` scales the previous state, and what is projected.
        name: name of the block.

    Returns:
        A function (h', x) → h of vectors, x dense or sparse; with *cell_shape* (h', c', x) → (h, c), as :func:`LSTM`.

    Raises:
        ValueError: *shape* or *cell_shape* has several axes, or none.

    Source: K. Cho et al., "Learning phrase representations using RNN encoder-decoder for statistical machine translation",
    EMNLP 2014, with the roles of z and 1 - z as there.

    >>> from cntk.layers import GRU, Recurrence
    >>> x = C.sequence.input_variable(2)
    >>> h = Recurrence(GRU(3))(x)
    >>> h.shape, h.b.shape, h.W.shape, h.H.shape, h.H1.shape
    ((3,), (9,), (2, 9), (3, 6), (3, 3))
    """
    activation = activation_for("GRU", get_default_override(GRU, activation=activation))
    init = get_default_override(GRU, init=init)
    init_bias = get_default_override(GRU, init_bias=init_bias)
    stabilize = get_default_override(GRU, enable_self_stabilization=enable_self_stabilization)

    size, cell = _sizes("GRU", shape, cell_shape)
    b = Parameter(3 * cell, init=init_bias, name="b")
    W = Parameter((*INFERRED, 3 * cell), init=init, name="W")
    H = Parameter((size, 2 * cell), init=init, name="H")
    H1 = Parameter((cell, cell), init=init, name="H1")
    P = _projection_matrix(size, cell, cell_shape, init)
    scaled_h = _stabilizer("dh", stabilize)
    scaled_c = _stabilizer("dc", stabilize)
    project = _projection(P, stabilize)

    def gated(h: Any, c: Any, x: Any) -> Any:
        """The next hidden state from the previous one, *c*, and what the gates see of it, *h*."""
        x_part = b + ops.times(x, W)
        h_part = ops.times(h, H)
        z = ops.sigmoid(_part(x_part, 0, cell) + _part(h_part, 0, cell))
        r = ops.sigmoid(_part(x_part, 1, cell) + _part(h_part, 1, cell))
        candidate = activation(_part(x_part, 2, cell) + ops.times(c * r, H1))
        return (1 - z) * candidate + z * c

    def gru(dh: Any, x: Any) -> Any:
        state = scaled_h(dh)
        return gated(state, state, x)

    def projected_gru(dh: Any, dc: Any, x: Any) -> Any:
        c = gated(scaled_h(dh), scaled_c(dc), x)
        return project(c), c

    return BlockFunction("GRU", name)(gru if P is None else projected_gru)


@checked
def LSTM(
    shape: ShapeLike,
    cell_shape: ShapeLike | None = None,
    activation: FunctionLike | None = default_override_or(tanh),
    use_peepholes: bool = default_override_or(False),
    init: InitLike = default_override_or(glorot_uniform()),
    init_bias: InitLike = default_override_or(0),
    enable_self_stabilization: bool = default_override_or(False),
    name: str = "",
) -> Function:
    """The step of a long short-term memory.

    With h' and c' from the step before, and i, g, f, o the quarters of b + x · W + h' · H::

        c = sigmoid(f)·c' + sigmoid(i)·activation(g)
        h = sigmoid(o)·activation(c)

    Peepholes add Ci·c' to i, Cf·c' to f, and Co·c to o.

    Args:
        shape: dimension of h, an int or a tuple of one.
        cell_shape: dimension of c where it is to be another: a parameter ``P`` then projects h to *shape*.
        activation: function in place of tanh, in both places; None for none.
        use_peepholes: whether gates see the cell, through parameters ``Ci``, ``Cf`` and ``Co``.
        init: initial value of all weights: a number or an initialiser.
        init_bias: initial value of ``b``: a number, an array or an initialiser.
        enable_self_stabilization: whether a :func:`Stabilizer` scales the previous state, what peepholes see, and what is projected.
        name: name of the block.

    Returns:
        A function (h', c', x) → (h, c) of vectors, x dense or sparse; meant for :func:`Recurrence`, :func:`RecurrenceFrom` and
        :func:`Fold`.

    Raises:
        ValueError: *shape* or *cell_shape* has several axes, or none.

    Source: S. Hochreiter, J. Schmidhuber, "Long short-term memory", Neural Computation 9 (1997); peepholes: F. Gers,
    J. Schmidhuber, "Recurrent nets that time and count", IJCNN 2000; projection: H. Sak, A. Senior, F. Beaufays, "Long short-term
    memory recurrent neural network architectures for large scale acoustic modeling", Interspeech 2014.

    >>> from cntk.layers import LSTM, Recurrence
    >>> x = C.sequence.input_variable(2)
    >>> h = Recurrence(LSTM(3))(x)
    >>> h.shape, h.b.shape, h.W.shape, h.H.shape
    ((3,), (12,), (2, 12), (3, 12))
    """
    activation = activation_for("LSTM", get_default_override(LSTM, activation=activation))
    use_peepholes = get_default_override(LSTM, use_peepholes=use_peepholes)
    init = get_default_override(LSTM, init=init)
    init_bias = get_default_override(LSTM, init_bias=init_bias)
    stabilize = get_default_override(LSTM, enable_self_stabilization=enable_self_stabilization)

    size, cell = _sizes("LSTM", shape, cell_shape)
    b = Parameter(4 * cell, init=init_bias, name="b")
    W = Parameter((*INFERRED, 4 * cell), init=init, name="W")
    H = Parameter((size, 4 * cell), init=init, name="H")
    Ci, Cf, Co = (Parameter(cell, init=init, name=name) if use_peepholes else None for name in ("Ci", "Cf", "Co"))
    P = _projection_matrix(size, cell, cell_shape, init)
    scaled_h = _stabilizer("dh", stabilize)
    scaled_previous = _stabilizer("dc", stabilize)
    scaled_cell = _stabilizer("c", stabilize)
    project = _projection(P, stabilize)

    def peep(gate: Any, weights: Any, scaled: Any, c: Any) -> Any:
        return gate if weights is None else gate + weights * scaled(c)

    @BlockFunction("LSTM", name)
    def lstm(dh: Any, dc: Any, x: Any) -> Any:
        gates = b + ops.times(x, W) + ops.times(scaled_h(dh), H)
        i, g, f, o = (_part(gates, k, cell) for k in range(4))
        forget = ops.sigmoid(peep(f, Cf, scaled_previous, dc))
        take = ops.sigmoid(peep(i, Ci, scaled_previous, dc))
        c = forget * dc + take * activation(g)
        h = ops.sigmoid(peep(o, Co, scaled_cell, c)) * activation(c)
        return project(h), c

    return lstm


def _sizes(block: str, shape: Any, cell_shape: Any) -> tuple[int, int]:
    """Dimensions of the result and of the cell."""
    shape = as_shape(shape)
    cell = shape if cell_shape is None else as_shape(cell_shape)
    if len(shape) != 1 or len(cell) != 1:
        raise ValueError(f"{block}: state and cell are vectors; shape must be an int or a tuple of one, got {shape}, and cell_shape {cell}")
    return shape[0], cell[0]


def _part(stacked: Any, k: int, size: int) -> Any:
    """Part *k* of what lies side by side."""
    return ops.slice(stacked, -1, k * size, (k + 1) * size)


def _stabilizer(of: str, enabled: Any) -> Function:
    return Stabilizer(enable_self_stabilization=enabled, name=f"{of}_stabilizer")


def _projection_matrix(size: int, cell: int, cell_shape: Any, init: Any) -> Parameter | None:
    return None if cell_shape is None else Parameter((cell, size), init=init, name="P")


def _projection(P: Parameter | None, stabilize: Any) -> Any:
    """The function from a cell to the block's result."""
    if P is None:
        return identity
    scaled = _stabilizer("P", stabilize)
    return lambda cell: ops.times(scaled(cell), P)


__all__ = ["GRU", "LSTM", "RNNStep", "RNNUnit"]
