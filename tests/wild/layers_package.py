"""A package of layers by third parties: gated units, highways, residual blocks, attention and normalisation, written as CNTK's own are.

It is written against the names that CNTK's layers are written with, and a model of its layers is trained below.
"""

from __future__ import division, print_function
from functools import reduce
import numpy as np
import cntk as C
from cntk import placeholder, combine, alias, Axis
from cntk.variables import Constant, Parameter, Record, Variable
from cntk.ops import times, slice, sigmoid, tanh, softplus, splice, element_select, plus, reduce_mean, sqrt, square
from cntk.ops.functions import Function, BlockFunction
from cntk.internal import _as_tuple, sanitize_input, typemap
from cntk.internal.sanitize import sanitize_axis, sanitize_shape, sanitize_dtype_cntk
from cntk.initializer import glorot_uniform
from cntk.default_options import get_default_override, default_override_or, is_default_override
from cntk.layers.blocks import _initializer_for, _get_initial_state_or_default, _INFERRED, _inject_name, UntestedBranchError
from cntk.layers.sequence import Recurrence, RecurrenceFrom, Delay, PastValueWindow, UnfoldFrom
from cntk.layers import *
from cntk.layers.typing import *
from _cntk_py import InferredDimension

C.cntk_py.set_fixed_random_seed(21)


# -- helpers ------------------------------------------------------------------------------------------------------------------------
def _require(condition, text):
    if not condition:
        raise ValueError(text)


def _parameter(shape, init, name, rank_params=None):
    return Parameter(shape, init=_initializer_for(init, rank_params), name=name)


def _with_self(f, **members):
    """The function, which owns its parameters as attributes."""
    for name, value in members.items():
        setattr(f, name, value)
    return f


# -- layers -------------------------------------------------------------------------------------------------------------------------
def Projection(
    shape,
    activation=default_override_or(identity),
    init=default_override_or(glorot_uniform()),
    bias=default_override_or(True),
    init_bias=default_override_or(0),
    scale=1,
    name="",
):
    activation = get_default_override(Projection, activation=activation)
    init = get_default_override(Projection, init=init)
    bias = get_default_override(Projection, bias=bias)
    init_bias = get_default_override(Projection, init_bias=init_bias)
    output_shape = _as_tuple(shape)
    output_rank = len(output_shape)
    W = _parameter(_INFERRED + output_shape, init, "W", dict(output_rank=output_rank))
    b = _parameter(output_shape, init_bias, "b") if bias else None

    @BlockFunction("Projection", name)
    def projection(x):
        r = times(x, W, output_rank=output_rank, infer_input_rank_to_map=-1)
        if b is not None:
            r = r + b
        if scale != 1:
            r = scale * r
        return activation(r)

    return projection


def Highway(transform, carry_bias=-1, name=""):
    """y = g * transform(x) + (1 - g) * x"""

    def highway_of(dim):
        Wg = _parameter(_INFERRED + _as_tuple(dim), glorot_uniform(seed=31), "Wg")
        bg = _parameter(dim, carry_bias, "bg")

        @Function
        def highway(x):
            g = sigmoid(times(x, Wg) + bg, name="gate")
            h = transform(x)
            return g * h + (1 - g) * x

        return _inject_name(highway, name)

    return highway_of


def MeanVarianceNormalization(axis=-1, epsilon=1e-5, name=""):
    scale = _parameter(_INFERRED, 1, "scale")
    bias = _parameter(_INFERRED, 0, "bias")

    @BlockFunction("MeanVarianceNormalization", name)
    def normalise(x):
        mean = reduce_mean(x, axis=axis)
        x0 = x - mean
        std = sqrt(reduce_mean(square(x0), axis=axis))
        return x0 / (std + epsilon) * scale + bias

    return normalise


def MinimalGatedUnit(
    shape,
    activation=default_override_or(tanh),
    init=default_override_or(glorot_uniform()),
    init_bias=default_override_or(0),
    enable_self_stabilization=default_override_or(False),
    name="",
):
    """A recurrent block with one gate."""
    activation = get_default_override(MinimalGatedUnit, activation=activation)
    init = get_default_override(MinimalGatedUnit, init=init)
    init_bias = get_default_override(MinimalGatedUnit, init_bias=init_bias)
    stabilise = get_default_override(MinimalGatedUnit, enable_self_stabilization=enable_self_stabilization)
    cell_shape = _as_tuple(shape)
    _require(len(cell_shape) == 1, "MinimalGatedUnit: the state must be a vector")
    dim = cell_shape[-1]
    Sdh = Stabilizer(enable_self_stabilization=stabilise, name="dh_stabilizer")
    W = _parameter(_INFERRED + (dim * 2,), init, "W")
    H = _parameter((dim, dim * 2), init, "H")
    b = _parameter((dim * 2,), init_bias, "b")

    @BlockFunction("MinimalGatedUnit", name)
    def mgu(dh, x):
        dhs = Sdh(dh)
        projected = times(x, W) + b
        forget = sigmoid(slice(projected, -1, 0, dim) + times(dhs, slice(H, 1, 0, dim)))
        candidate = activation(slice(projected, -1, dim, 2 * dim) + times(forget * dhs, slice(H, 1, dim, 2 * dim)))
        return (1 - forget) * dh + forget * candidate

    return mgu


def PeepholePair(shape, name=""):
    """A block with two states, the second of which is what others see."""
    dim = _as_tuple(shape)[-1]
    W = _parameter(_INFERRED + (3 * dim,), glorot_uniform(seed=41), "W")
    R = _parameter((dim, 3 * dim), glorot_uniform(seed=42), "R")
    p = _parameter((dim,), 0.1, "p")

    def pair(c_before, h_before, x):
        z = times(x, W) + times(h_before, R)
        i, f, o = (slice(z, -1, k * dim, (k + 1) * dim) for k in range(3))
        gate = sigmoid(f + p * c_before)
        c = gate * c_before + (1 - gate) * tanh(i)
        h = sigmoid(o) * tanh(c)
        return (c, h)

    return _inject_name(BlockFunction("PeepholePair", name)(pair), name)


def BiRecurrence(forward, backward, name=""):
    f, b = Recurrence(forward), Recurrence(backward, go_backwards=True)
    x = placeholder()
    return _inject_name(splice(f(x), b(x)), name)


def MyRecurrence(step_function, go_backwards=False, initial_state=default_override_or(0), name=""):
    """A recurrence of one's own: a placeholder, a delay, and the loop closed."""
    initial_state = get_default_override(MyRecurrence, initial_state=initial_state)
    initial_state = _get_initial_state_or_default(initial_state)
    step_function = step_function if isinstance(step_function, Function) else Function(step_function)

    @Function
    def recurrence(x):
        states = [placeholder(name=s.name) for s in step_function.outputs]
        before = [C.sequence.future_value(s, initial_state) if go_backwards else C.sequence.past_value(s, initial_state) for s in states]
        out = step_function(*(before + [x]))
        for s, o in zip(states, out.outputs):
            out.replace_placeholders({s: o})
        return out.outputs[-1] if len(out.outputs) > 1 else out

    return _inject_name(recurrence, name)


def SelfAttention(dim, name=""):
    """A vector of a sequence: its steps weighted by what a query that is learned finds in them."""
    with default_options(bias=False):
        key = Projection(dim, init=glorot_uniform(seed=51))
    query = _parameter((dim, 1), glorot_uniform(seed=52), "query")

    @Function
    def attention(x):
        scores = times(tanh(key(x)), query, name="scores")
        weights = C.sequence.softmax(scores, name="weights")
        return C.sequence.reduce_sum(C.element_times(weights, x), name="context")

    return _inject_name(attention, name)


def Repeat(n, make, name=""):
    layers = [make(i) for i in range(n)]

    def apply(x):
        return reduce(lambda value, layer: layer(value), layers, x)

    return apply


def Residual(f, name=""):
    return Sequential([(f, identity), plus], name=name)


@typemap
def shifted_softplus(x, shift=0.5, name=""):
    x = sanitize_input(x)
    return alias(softplus(x) - shift, name=name)


@typemap
def flattened(x, axis=-1):
    x = sanitize_input(x)
    axis = sanitize_axis(axis)
    return C.reshape(x, sanitize_shape((C.InferredDimension,)))


# -- how defaults reach them ------------------------------------------------------------------------------------------------------
def report_defaults():
    with default_options(activation=sigmoid, init=0.5):
        a = Projection(2)(Constant(np.ones(2, dtype=np.float32)))
        with C.default_options_for(Projection, bias=False, activation=tanh):
            b = Projection(2)(Constant(np.ones(2, dtype=np.float32)))
            c = Dense(2)(Constant(np.ones(2, dtype=np.float32)))
    print("defaults", ["%.4f" % v.eval().sum() for v in (a, b, c)], [len(v.parameters) for v in (a, b, c)])
    print("override", is_default_override(default_override_or(3)), get_default_override(Projection, scale=5))
    for wrong in (lambda: get_default_override(Projection, nonsense=1), lambda: _initializer_for(None)):
        try:
            wrong()
        except (TypeError, ValueError) as e:
            print("refused", type(e).__name__)


def report_helpers():
    r = Record(x=13, y="a")
    print("record", r.x, r["y"], sorted(r), isinstance(r, dict), hasattr(r, "z"))
    try:
        r.x = 3
    except AttributeError:
        print("records stay as they are")
    print("tuples", _as_tuple(3), _as_tuple((1, 2)), _as_tuple([4]), _INFERRED == (InferredDimension,))
    state = _get_initial_state_or_default(None)
    print(
        "states",
        state.value.tolist(),
        _get_initial_state_or_default(0.5).shape,
        [type(s).__name__ for s in _get_initial_state_or_default((None, 1))],
    )
    x = C.input_variable(4, name="x")
    print(
        "sanitised",
        type(sanitize_input(np.ones(2))).__name__,
        sanitize_input(x) is x,
        sanitize_shape(3),
        isinstance(sanitize_axis(-1), Axis),
    )
    named = _inject_name(C.relu(x), "named")
    print("named", named.name, named.shape, _inject_name(x * 2, "").name == "")
    print("block", BlockFunction("Op", "me")(lambda a, b: a + b)(x, x).root_function.op_name, flattened(C.input_variable((2, 3))).shape)
    print("shifted", "%.4f" % shifted_softplus(np.float32([0.0])).eval().sum(), shifted_softplus(x, name="soft").name)
    signature = Signature(Tensor[3], ParameterTensor[3, 2])

    @Function
    @signature
    def affine(x, W):
        return times(x, W)

    print("signature", [a.name for a in affine.arguments], affine.shape)
    tensor = SequenceOver[Axis("words")][SparseTensor[9]]
    print("types", tensor.shape, tensor.is_sparse, len(tensor.dynamic_axes))
    f = Function(lambda a, b: (a + b, a * b))
    print("python", [a.name for a in f.arguments], len(f.outputs))


# -- a model of these layers ------------------------------------------------------------------------------------------------------
VOCABULARY, CLASSES, DIM = 12, 3, 8


def create_model():
    with default_options(init=glorot_uniform(seed=17)):
        return Sequential(
            [
                Embedding(DIM, init=C.uniform(0.5, seed=3)),
                Label("embedded"),
                BiRecurrence(MinimalGatedUnit(DIM), MinimalGatedUnit(DIM, enable_self_stabilization=True), name="both"),
                Projection(DIM, activation=tanh),
                Residual(Highway(Projection(DIM, activation=C.relu))(DIM), name="residual"),
                MeanVarianceNormalization(name="normalised"),
                MyRecurrence(PeepholePair(DIM), name="pair"),
                SelfAttention(5, name="attended"),
                Repeat(2, lambda i: Projection(DIM, activation=sigmoid, scale=i + 1)),
                Dropout(0.0),
                Projection(CLASSES, name="scores"),
            ]
        )


def data(n, rng):
    sequences, labels = [], []
    for _ in range(n):
        words = rng.randint(0, VOCABULARY, rng.randint(2, 7))
        sequences.append(np.eye(VOCABULARY, dtype=np.float32)[words])
        labels.append(np.eye(CLASSES, dtype=np.float32)[words.sum() % CLASSES])
    return sequences, np.array(labels)


report_defaults()
report_helpers()
model = create_model()


@Function
@Signature(Sequence[Tensor[VOCABULARY]], Tensor[CLASSES])
def criterion(words, label):
    z = model(words)
    return (C.cross_entropy_with_softmax(z, label), C.classification_error(z, label))


print("criterion", [a.name for a in criterion.arguments], len(criterion.outputs), len(criterion.parameters))
learner = C.adam(criterion.parameters, C.learning_parameter_schedule(0.02), C.momentum_schedule(0.9), unit_gain=False)
trainer = C.Trainer(None, criterion, [learner])
rng = np.random.RandomState(0)
words, labels = criterion.arguments
for i in range(8):
    sequences, targets = data(12, rng)
    trainer.train_minibatch({words: sequences, labels: targets})
    if i % 2:
        print("minibatch %d loss %.3f" % (i + 1, trainer.previous_minibatch_loss_average))

for name in ("embedded", "both", "residual", "normalised", "pair", "attended", "weights", "gate"):
    node = criterion.find_by_name(name, -1)
    print(name, None if node is None else (node.shape, len(node.output.dynamic_axes) if hasattr(node, "output") else 0))
sequences, _ = data(3, rng)
x = C.sequence.input_variable(VOCABULARY, name="words")
z = model(x)
print("evaluated", ["%.2f" % v for v in z.eval({x: sequences}).sum(axis=0)])
print("shapes", sorted(str(p.shape) for p in z.parameters))
shared = model.clone(C.CloneMethod.share, {model.arguments[0]: C.sequence.input_variable(VOCABULARY)})
frozen = Projection(3)(C.input_variable(4)).clone("freeze")
print("clones", len(shared.parameters), len(frozen.parameters), len(frozen.constants))
print("same", np.allclose(shared.eval({shared.arguments[0]: sequences}), z.eval({x: sequences})))
z.save("package.model")
loaded = Function.load("package.model")
print("loaded", np.allclose(loaded.eval({loaded.arguments[0]: sequences}), z.eval({x: sequences}), atol=1e-5))
