"""Random numbers as values: uniform, normal, Gumbel and Bernoulli distributions.

Numbers come from a stream that a node's seed determines, as in CNTK: each evaluation goes on where the last one stopped, so that two
evaluations of n numbers give what one of 2n gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...core.common.dtypes import as_dtype
from ...core.common.options import default_override_or, get_default_override
from ...core.common.random import AUTO_SEED, choose_seed
from ...core.common.shape import Shape, as_shape, is_concrete
from ...core.common.twister import Twister
from ...core.graph.arguments import DTypeLike, ShapeLike, TensorLike
from ...core.graph.function import Function
from ...core.operators.op import Traits
from ...core.operators.samples import operator, sample
from ...core.types.arguments import Seed
from ...core.types.context import Context
from ...core.types.spec import Spec
from .drawing import Drawing

DTYPE = default_override_or(np.float32)


class RandomDistribution(Drawing):
    """Base of random values.  Subclasses draw; the values have the shape and rows of an operand, or a shape of their own."""

    op_name = "RandomDistribution"
    kind: ClassVar[str]
    traits = Traits(layout_inputs=(0,))
    sparse_inputs = (0,)
    gradient_inputs = ()
    stream_type = Twister

    def __init__(self, arguments: Sequence[float], rng_seed: int, new_shape: Shape | None = None, new_data_type: Any = None) -> None:
        super().__init__(rng_seed=rng_seed)
        self.arguments, self.new_shape, self.new_data_type = tuple(map(float, arguments)), new_shape, new_data_type

    @property
    def attributes(self) -> dict[str, Any]:
        own = {} if self.new_shape is None else {"newShape": self.new_shape, "newDataType": self.new_data_type}
        return {
            "randomDistributionType": self.kind,
            "randomDistributionArgs": list(self.arguments),
            **super().attributes,
            **own,
        }

    def copy(self) -> RandomDistribution:
        return type(self)(self.arguments, self.rng_seed, self.new_shape, self.new_data_type)

    def infer(self, *inputs: Spec) -> Spec:
        if inputs:
            return inputs[0].but()
        return Spec(self.new_shape, self.new_data_type, ())

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        precision = np.promote_types(out.dtype, np.float32).type
        numbers = self.draw(out.size, *(float(precision(argument)) for argument in self.arguments))
        out[...] = ctx.backend.asarray(numbers.reshape(out.shape), out.dtype)

    def draw(self, count: int, *arguments: float) -> Any:
        """The next numbers of the stream, on the host."""
        raise NotImplementedError(f"{type(self).__name__}.draw")


class Uniform(RandomDistribution):
    """Uniform numbers between two bounds, the upper one excluded."""

    kind = "uniform"

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        super().forward(ctx, out, *inputs)
        low, high = (out.dtype.type(bound) for bound in self.arguments)
        ctx.xp.minimum(out, np.nextafter(high, low), out=out)  # rounding may have reached the bound

    def draw(self, count: int, *arguments: float) -> Any:
        low, high = arguments
        numbers = self._stream.uniform(count)
        numbers *= high - low
        numbers += low
        return numbers


class Normal(RandomDistribution):
    """Normal numbers of a mean and a standard deviation."""

    kind = "normal"

    def draw(self, count: int, *arguments: float) -> Any:
        mean, scale = arguments
        numbers = self._stream.normal(count)
        numbers *= scale
        numbers += mean
        return numbers


class Gumbel(RandomDistribution):
    """Gumbel numbers of a location and a scale, by inverting the distribution function."""

    kind = "gumbel"

    def draw(self, count: int, *arguments: float) -> Any:
        location, scale = arguments
        numbers = np.maximum(self._stream.uniform(count), 2.0**-54)  # of 0 the logarithm's logarithm is infinite
        return location - scale * np.log(-np.log1p(-numbers))


class Bernoulli(RandomDistribution):
    """1 with a probability, otherwise 0."""

    kind = "bernoulli"

    def draw(self, count: int, *arguments: float) -> Any:
        (mean,) = arguments
        return self._stream.uniform(count) >= 1 - mean


# ---- arguments -------------------------------------------------------------------------------------


def _range(low: float, high: float) -> tuple[float, float]:
    if not low < high:
        raise RuntimeError(f"random.uniform: the lower bound must be below the upper one, got low={low} and high={high}")
    return low, high


def _width(name: str, centre: float, scale: float) -> tuple[float, float]:
    if not scale >= 0:
        raise RuntimeError(f"random.{name}: the scale must not be negative, got {scale}")
    return centre, scale


def _probability(mean: float) -> tuple[float]:
    if not 0 <= mean <= 1:
        raise RuntimeError(f"random.bernoulli: the mean is a probability in [0, 1], got {mean}")
    return (mean,)


def _values(distribution: type[RandomDistribution], arguments: Sequence[float], shape: Any, dtype: Any, seed: int, name: str) -> Function:
    """Values of a shape of their own."""
    dims = as_shape(shape)
    if not is_concrete(dims):
        raise ValueError(f"random.{distribution.kind}: the shape {dims} has a dimension that is not known; give its size")
    element = as_dtype(get_default_override(None, dtype=dtype) or np.float32)
    return distribution(arguments, choose_seed(seed, per_worker=True), dims, element)(name=name)


def _values_like(distribution: type[RandomDistribution], arguments: Sequence[float], x: Any, seed: int, name: str) -> Function:
    """Values of the shape, element type and rows of *x*."""
    return distribution(arguments, choose_seed(seed, per_worker=True))(x, name=name)


def _plus(*arguments: float) -> Any:
    """A sample's call: its operand, plus numbers of a distribution without width."""
    return lambda f, x: x + f(x.shape, x.dtype, *arguments)


def _plus_like(*arguments: float) -> Any:
    return lambda f, x: x + f(x, *arguments)


# ---- public functions ------------------------------------------------------------------------------


@operator(
    sample((2, 3), call=_plus(2, 2 + 1e-15), expected=lambda x: x + 2),
    sample((), call=_plus(-1, -1 + 1e-15), expected=lambda x: x - 1),
)
def uniform(
    shape: ShapeLike, dtype: DTypeLike = DTYPE, low: float = 0.0, high: float = 1.0, seed: Seed = AUTO_SEED, name: str = ""
) -> Function:
    """Uniform random numbers in [*low*, *high*), drawn anew at every evaluation.

    Args:
        shape: shape of the result, which has no dynamic axes.
        dtype: float32 (the default), float64, float16 or bfloat16.
        low: lower bound.
        high: upper bound, which is not reached.
        seed: seed of the numbers; by default one is chosen.  Nodes of one seed give the same numbers, evaluation by evaluation.
        name: name of the Function.

    Raises:
        RuntimeError: *low* is not below *high*.
        ValueError: the shape has an unknown dimension, or the element type is not a floating-point type.

    >>> C.random.uniform((2, 3), low=1, high=2, seed=1).eval().round(4)
    array([[1.1339, 1.1364, 1.4512],
           [1.021 , 1.3509, 1.9114]], dtype=float32)
    """
    return _values(Uniform, _range(low, high), shape, dtype, seed, name)


@operator(
    sample((2, 3), call=_plus(2, 0), expected=lambda x: x + 2),
    sample((), call=_plus(-1, 0), expected=lambda x: x - 1),
)
def normal(
    shape: ShapeLike, dtype: DTypeLike = DTYPE, mean: float = 0.0, scale: float = 1.0, seed: Seed = AUTO_SEED, name: str = ""
) -> Function:
    """Normal random numbers, drawn anew at every evaluation.

    Args:
        shape: shape of the result, which has no dynamic axes.
        dtype: float32 (the default), float64, float16 or bfloat16.
        mean: mean of the numbers.
        scale: their standard deviation.
        seed: seed of the numbers; by default one is chosen.  Nodes of one seed give the same numbers, evaluation by evaluation.
        name: name of the Function.

    Raises:
        RuntimeError: the scale is negative.
        ValueError: the shape has an unknown dimension, or the element type is not a floating-point type.

    Source:
        Marsaglia and Tsang, *The ziggurat method for generating random variables*, 2000.

    >>> C.random.normal((2, 3), mean=10, seed=1).eval().round(4)
    array([[ 9.7723,  9.7406,  9.3872],
           [ 9.9698,  9.2622, 11.7795]], dtype=float32)
    """
    return _values(Normal, _width("normal", mean, scale), shape, dtype, seed, name)


@operator(
    sample((2, 3), call=_plus(2, 0), expected=lambda x: x + 2),
    sample((), call=_plus(-1, 0), expected=lambda x: x - 1),
)
def gumbel(
    shape: ShapeLike, dtype: DTypeLike = DTYPE, loc: float = 0.0, scale: float = 1.0, seed: Seed = AUTO_SEED, name: str = ""
) -> Function:
    r"""Random numbers of the Gumbel distribution, :math:`P(X \le x) = e^{-e^{-(x - loc) / scale}}`, drawn anew at every evaluation.

    The place of the largest of some numbers plus Gumbel numbers is distributed as the softmax of the numbers says.

    Args:
        shape: shape of the result, which has no dynamic axes.
        dtype: float32 (the default), float64, float16 or bfloat16.
        loc: location, the most probable number.
        scale: width.
        seed: seed of the numbers; by default one is chosen.  Nodes of one seed give the same numbers, evaluation by evaluation.
        name: name of the Function.

    Raises:
        RuntimeError: the scale is negative.
        ValueError: the shape has an unknown dimension, or the element type is not a floating-point type.

    >>> C.random.gumbel((2, 3), seed=1).eval().round(4)
    array([[ 1.9398,  1.9197,  0.5107],
           [ 3.8515,  0.8389, -0.8851]], dtype=float32)
    """
    return _values(Gumbel, _width("gumbel", loc, scale), shape, dtype, seed, name)


@operator(
    sample((2, 3), call=_plus(1), expected=lambda x: x + 1),
    sample((), call=_plus(0), expected=lambda x: x),
)
def bernoulli(shape: ShapeLike, dtype: DTypeLike = DTYPE, mean: float = 0.5, seed: Seed = AUTO_SEED, name: str = "") -> Function:
    """Random numbers that are 1 with probability *mean* and else 0, drawn anew at every evaluation.

    Args:
        shape: shape of the result, which has no dynamic axes.
        dtype: float32 (the default), float64, float16 or bfloat16.
        mean: probability of a 1.
        seed: seed of the numbers; by default one is chosen.  Nodes of one seed give the same numbers, evaluation by evaluation.
        name: name of the Function.

    Raises:
        RuntimeError: the mean is outside [0, 1].
        ValueError: the shape has an unknown dimension, or the element type is not a floating-point type.

    >>> C.random.bernoulli((2, 3), mean=0.4, seed=1).eval()
    array([[0., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    return _values(Bernoulli, _probability(mean), shape, dtype, seed, name)


@operator(
    sample((2, 3), call=_plus_like(2, 2 + 1e-15), expected=lambda x: x + 2),
    sample((), call=_plus_like(-1, -1 + 1e-15), expected=lambda x: x - 1),
)
def uniform_like(x: TensorLike, low: float = 0.0, high: float = 1.0, seed: Seed = AUTO_SEED, name: str = "") -> Function:
    """Uniform random numbers in [*low*, *high*) of the shape, element type and dynamic axes of *x*; see :func:`uniform`.

    Args:
        x: what the result is like; its values do not matter and no gradient flows to it.
        low: lower bound.
        high: upper bound, which is not reached.
        seed: seed of the numbers; by default one is chosen.
        name: name of the Function.

    Raises:
        RuntimeError: *low* is not below *high*.

    >>> x = C.input_variable(2)
    >>> C.random.uniform_like(x, seed=1).eval({x: np.zeros((3, 2), np.float32)}).round(4)
    array([[0.1339, 0.1364],
           [0.4512, 0.021 ],
           [0.3509, 0.9114]], dtype=float32)
    """
    return _values_like(Uniform, _range(low, high), x, seed, name)


@operator(
    sample((2, 3), call=_plus_like(2, 0), expected=lambda x: x + 2),
    sample((), call=_plus_like(-1, 0), expected=lambda x: x - 1),
)
def normal_like(x: TensorLike, mean: float = 0.0, scale: float = 1.0, seed: Seed = AUTO_SEED, name: str = "") -> Function:
    """Normal random numbers of the shape, element type and dynamic axes of *x*; see :func:`normal`.

    Args:
        x: what the result is like; its values do not matter and no gradient flows to it.
        mean: mean of the numbers.
        scale: their standard deviation.
        seed: seed of the numbers; by default one is chosen.
        name: name of the Function.

    Raises:
        RuntimeError: the scale is negative.

    >>> x = C.input_variable(2)
    >>> noisy = x + C.random.normal_like(x, scale=0.1)
    >>> noisy.eval({x: np.zeros((3, 2), np.float32)}).shape
    (3, 2)
    """
    return _values_like(Normal, _width("normal_like", mean, scale), x, seed, name)


@operator(
    sample((2, 3), call=_plus_like(2, 0), expected=lambda x: x + 2),
    sample((), call=_plus_like(-1, 0), expected=lambda x: x - 1),
)
def gumbel_like(x: TensorLike, loc: float = 0.0, scale: float = 1.0, seed: Seed = AUTO_SEED, name: str = "") -> Function:
    """Random numbers of the Gumbel distribution of the shape, element type and dynamic axes of *x*; see :func:`gumbel`.

    Args:
        x: what the result is like; its values do not matter and no gradient flows to it.
        loc: location, the most probable number.
        scale: width.
        seed: seed of the numbers; by default one is chosen.
        name: name of the Function.

    Raises:
        RuntimeError: the scale is negative.

    >>> scores = C.input_variable(3)
    >>> drawn = C.hardmax(scores + C.random.gumbel_like(scores))  # a class as softmax(scores) says
    >>> drawn.eval({scores: [[9, -9, -9]]})
    array([[1., 0., 0.]], dtype=float32)
    """
    return _values_like(Gumbel, _width("gumbel_like", loc, scale), x, seed, name)


@operator(
    sample((2, 3), call=_plus_like(1), expected=lambda x: x + 1),
    sample((), call=_plus_like(0), expected=lambda x: x),
)
def bernoulli_like(x: TensorLike, mean: float = 0.5, seed: Seed = AUTO_SEED, name: str = "") -> Function:
    """Random numbers, 1 with probability *mean* and else 0, of the shape, element type and dynamic axes of *x*; see :func:`bernoulli`.

    Args:
        x: what the result is like; its values do not matter and no gradient flows to it.
        mean: probability of a 1.
        seed: seed of the numbers; by default one is chosen.
        name: name of the Function.

    Raises:
        RuntimeError: the mean is outside [0, 1].

    >>> x = C.input_variable(2)
    >>> kept = x * C.random.bernoulli_like(x, mean=1)
    >>> kept.eval({x: [[5, 6]]})
    array([[5., 6.]], dtype=float32)
    """
    return _values_like(Bernoulli, _probability(mean), x, seed, name)
