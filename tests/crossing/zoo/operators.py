"""Operators by family, random ones, assignments and user functions."""

import cntk as C
from cntk.ops.functions import UserFunction

from .model import model, numbers, steps


def tensor(*shape, **options):
    return C.input_variable(shape, name="x"), {"x": numbers(2, *shape, **options)}


@model
def activations():
    x, data = tensor(5)
    plain = [C.relu, C.elu, C.selu, C.leaky_relu, C.softplus, C.softsign, C.sigmoid, C.tanh, C.hardmax, C.straight_through_impl]
    with_numbers = [C.hard_sigmoid(x, 0.3, 0.4), C.elu(x, 0.5), C.leaky_relu(x, 0.2), C.softplus(x, 2), C.param_relu(C.constant(0.1), x)]
    return C.combine([f(x) for f in plain] + with_numbers), data


@model
def elementary():
    x, data = tensor(4, low=0.1, high=0.9)
    plain = [C.exp, C.log, C.sqrt, C.square, C.abs, C.floor, C.ceil, C.round, C.reciprocal, C.negate]
    plain += [C.sin, C.cos, C.tan, C.asin, C.acos, C.atan, C.sinh, C.cosh, C.asinh, C.atanh]
    return C.combine([f(x) for f in plain] + [C.clip(x, 0.2, 0.7), C.pow(x, 2)]), data


@model
def comparisons():
    x, data = tensor(4)
    y = C.constant(numbers(4)[::-1].copy())
    plain = [C.equal, C.not_equal, C.less, C.less_equal, C.greater, C.greater_equal, C.element_max, C.element_min, C.log_add_exp]
    more = [C.element_and, C.element_or, C.element_xor, C.element_divide, C.minus]
    return C.combine([f(x, y) for f in plain + more] + [C.element_not(x), C.element_select(x, y, 1)]), data


@model
def reductions():
    x, data = tensor(2, 3, 4)
    plain = [C.reduce_sum, C.reduce_mean, C.reduce_max, C.reduce_min, C.reduce_prod, C.reduce_log_sum_exp, C.reduce_l1, C.reduce_l2]
    results = [f(x, axis=k % 3) for k, f in enumerate(plain)]
    results += [C.reduce_sum(x, axis=[0, 2]), C.reduce_max(x, axis=(0, 1), keepdims=False), C.reduce_sum_square(x, axis=1)]
    return C.combine([*results, C.argmax(x, axis=1), C.argmin(x, axis=0), C.reduce_mean(x)]), data


@model
def shapes():
    x, data = tensor(2, 3, 4)
    results = [C.reshape(x, (4, 6)), C.reshape(x, (3, 2), 0, 2), C.transpose(x, (2, 0, 1)), C.swapaxes(x, 0, 2), C.flatten(x, 2)]
    results += [C.slice(x, [0, 2], [0, 1], [1, 3]), C.slice(x, 1, 0, 3, 2), C.slice(x, -1, -3, -1), C.expand_dims(x, 1)]
    return C.combine([*results, C.squeeze(C.reshape(x, (1, 6, 1, 4))), C.splice(x, 2 * x, axis=1), C.splice(x, x, axis=-4)]), data


@model
def products():
    x, data = tensor(3, 2)
    W = C.parameter((2, 4, 2), init=numbers(2, 4, 2), name="W")
    results = [C.times(x, W, output_rank=2), C.times_transpose(x, C.constant(numbers(5, 2))), C.times(C.constant(numbers(2, 3)), x)]
    return C.combine(results), data


@model
def softmaxes():
    x, data = tensor(3, 4)
    results = [C.softmax(x), C.softmax(x, axis=0), C.log_softmax(x), C.log_softmax(x, axis=0), C.hardmax(x)]
    return C.combine([*results, C.mean_variance_normalization(x), C.mean(x, x + 1), C.sum(x, x, x)]), data


@model
def lookups():
    x = C.input_variable((2,), name="x")
    table = C.parameter((5, 3), init=numbers(5, 3), name="table")
    data = {"x": [[0, 4], [2, 1]]}
    return C.combine([C.gather(table, x), C.one_hot(x, 5), C.one_hot(x, 5, axis=0)]), data


@model
def best_few():
    x, data = tensor(3, 5)
    return C.combine(list(C.top_k(x, 2).outputs) + list(C.top_k(x, 3, axis=0).outputs)), data


@model
def filled():
    x, data = tensor(3, 2)
    return C.combine([C.ones_like(x), C.zeros_like(x), C.eye_like(C.constant(numbers(3, 2)), sparse_output=False)]), data


@model
def batch_as_an_axis():
    x, data = tensor(3)
    alone = C.unpack_batch(x)
    return C.combine([alone, C.to_batch(alone * 2), C.stop_gradient(x)]), data


@model
def random_numbers():
    """Which have been drawn from already."""
    x, data = tensor(2)
    drawn = [C.random.uniform((3,), low=1, high=2, seed=1), C.random.normal((4,), seed=2), C.random.gumbel((2,), seed=3)]
    drawn += [C.random.bernoulli((5,), mean=0.4, seed=4), C.random.uniform_like(x, seed=5), C.random.normal_like(x, seed=6)]
    drawn += [C.random.gumbel_like(x, seed=7), C.random.bernoulli_like(x, seed=8)]
    function = C.combine(drawn)
    for _ in range(2):
        function.eval({function.arguments[0]: numbers(3, 2)})
    return function, data


@model
def assigned():
    x, data = tensor(2)
    held = C.parameter((2,), init=1.0, name="held")
    return C.combine([C.assign(held, C.constant([3.0, 4.0])), x + 1]), data


class Scaled(UserFunction):
    """A user function with a state."""

    def __init__(self, x, factor, name="scaled"):
        super().__init__([x], name=name)
        self.factor = factor

    def infer_outputs(self):
        x = self.inputs[0]
        return [C.output_variable(x.shape, x.dtype, x.dynamic_axes)]

    def forward(self, x, device=None, outputs_to_retain=None):
        return None, self.factor * x

    def backward(self, state, root_gradients):
        return self.factor * root_gradients

    def serialize(self):
        return {"factor": self.factor, "notes": ["a", 1, None]}

    @staticmethod
    def deserialize(inputs, name, state):
        return Scaled(inputs[0], state["factor"], name)


@model
def user_function():
    x, data = tensor(3)
    return C.user_function(Scaled(x, 3.0)) + 1, data


@model
def user_function_on_sequences():
    x = C.sequence.input_variable(2, name="x")
    return C.sequence.last(C.user_function(ScaledSequence(x))), {"x": steps(2)}


class ScaledSequence(UserFunction):
    """A user function on sequences."""

    def __init__(self, x, name="sequences"):
        super().__init__([x], name=name)

    def infer_outputs(self):
        x = self.inputs[0]
        return [C.output_variable(x.shape, x.dtype, x.dynamic_axes)]

    def forward(self, x, device=None, outputs_to_retain=None):
        return None, [2 * part for part in x]

    def serialize(self):
        return {}

    @staticmethod
    def deserialize(inputs, name, state):
        return ScaledSequence(inputs[0], name)
