"""Drawing classes at random with given weights, as sampled losses do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.common.random import AUTO_SEED, choose_seed
from ...core.common.twister import Twister
from ...core.graph.arguments import TensorLike
from ...core.operators.samples import Operand, operator, sample
from ...core.types.arguments import Seed
from ...core.types.spec import Spec
from .drawing import Drawing

if TYPE_CHECKING:
    from ...core.graph.function import Function
    from ...core.types.context import Context

CONVERGED = 1e-12
"""Relative change of a number of draws that counts as none."""


class RandomSampleBase(Drawing):
    """Base of operators on the weights of classes to sample from."""

    num_samples: int
    allow_duplicates: bool
    stream_type = Twister
    gradient_inputs = ()

    def __init__(self, num_samples: int, allow_duplicates: bool, rng_seed: int) -> None:
        super().__init__(num_samples=int(num_samples), allow_duplicates=bool(allow_duplicates), rng_seed=rng_seed)

    def copy(self) -> RandomSampleBase:
        return type(self)(self.num_samples, self.allow_duplicates, self.rng_seed)

    def check(self, weights: Spec) -> int:
        """Number of classes.

        Raises:
            ValueError: the weights are no vector, or the number of samples does not go with them.
        """
        classes = weights.dims[-1] if weights.dims else 1
        if any(dim != 1 for dim in weights.dims[:-1]):
            raise ValueError("the weights must be one vector, with a weight for each class")
        if self.num_samples <= 0:
            raise ValueError(f"the number of samples must be positive, got {self.num_samples}")
        if not self.allow_duplicates and 0 <= classes <= self.num_samples:
            raise ValueError(
                f"{self.num_samples} samples without duplicates need more than {self.num_samples} classes, there are {classes}; "
                "draw fewer, or allow duplicates"
            )
        return classes

    def vector(self, ctx: Context, weights: Any) -> Any:
        """The weights in double precision.

        Raises:
            RuntimeError: there are several vectors of them.
            ValueError: a weight is negative, or too few are positive.
        """
        if ctx.layouts[0] is not None and len(weights) != 1:
            raise RuntimeError(f"one vector of weights must serve for the whole minibatch, but there are {len(weights)} rows of weights")
        vector = ctx.scratch("weights", (weights.size,), np.float64)
        vector[...] = weights.reshape(-1)
        if not bool((vector >= 0).all()):
            raise ValueError(f"weights must not be negative, got {float(vector.min())}")
        positive, needed = int((vector > 0).sum()), 1 if self.allow_duplicates else self.num_samples
        if positive < needed:
            raise ValueError(f"{self.num_samples} samples need {needed} classes with positive weights, there are {positive}")
        return vector


class RandomSample(RandomSampleBase):
    """One-hot rows, each of a class drawn at random."""

    op_name = "RandomSample"

    def infer(self, weights: Spec) -> Spec:
        return Spec((self.num_samples, self.check(weights)), weights.dtype, (), sparse=True)

    def forward(self, ctx: Context, out: Any, weights: Any) -> None:
        count = self.num_samples
        draw = self._draw_again if self.allow_duplicates else self._draw_once
        classes = draw(ctx.backend.to_numpy(self.vector(ctx, weights)))
        ones, starts = ctx.keep("ones", (count,), out.dtype), ctx.keep("starts", (count + 1,), np.intp)
        ones.fill(1)
        starts[...] = ctx.xp.arange(count + 1)
        out.set(ones, ctx.backend.asarray(classes, np.intp), starts)

    def _draw_again(self, weights: Any) -> Any:
        """Classes of independent draws, by inverting the distribution function."""
        ends = np.cumsum(weights)
        numbers = self._stream.uniform(self.num_samples) * ends[-1]
        return np.searchsorted(ends, np.maximum(numbers, np.nextafter(0, 1)))  # 0 would fall to a class of weight 0

    def _draw_once(self, weights: Any) -> Any:
        """Classes in the order in which they are drawn, one after the other, from those that are left.

        Each class has an alarm clock that rings after an exponential time, the sooner the larger its weight; those that ring first
        are the sample (Efraimidis and Spirakis, *Weighted random sampling with a reservoir*, 2006).
        """
        numbers = self._stream.uniform(len(weights))
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.where(weights > 0, -np.log1p(-numbers) / weights, np.inf)
        first = np.argpartition(times, self.num_samples - 1)[: self.num_samples]
        return first[np.argsort(times[first])]


class RandomSampleInclusionFrequency(RandomSampleBase):
    """How often each class is to be expected in a sample."""

    op_name = "RandomSampleInclusionFrequency"

    def infer(self, weights: Spec) -> Spec:
        self.check(weights)
        return Spec(weights.shape, weights.dtype, ())

    def forward(self, ctx: Context, out: Any, weights: Any) -> None:
        vector = self.vector(ctx, weights)
        probabilities = vector / vector.sum()
        if self.allow_duplicates:
            out[...] = (probabilities * self.num_samples).reshape(out.shape)
        else:
            out[...] = _inclusion(ctx.xp, probabilities, self.num_samples).reshape(out.shape)


def _inclusion(xp: Any, probabilities: Any, count: int) -> Any:
    """Probabilities that *count* draws without duplicates contain each class: as if drawing went on for the same time for all.

    In t draws with duplicates a class is drawn with probability 1 - (1 - p)^t.  With the t for which *count* classes are to be
    expected this is its probability in a sample of *count* different ones, asymptotically (Rosén, *Asymptotic theory for order
    sampling*, 1997).  The expected number is concave in t, so that Newton's method climbs to the solution from below.
    """
    if int((probabilities > 0).sum()) == count:
        return (probabilities > 0).astype(probabilities.dtype)
    missed = xp.log1p(-xp.minimum(probabilities, 1 - 2.0**-53))  # logarithm of the chance to be passed over by a draw
    time, step = float(count), float(count)
    while abs(step) > CONVERGED * time:
        passed_over = xp.exp(missed * time)
        step = float((count - (1 - passed_over).sum()) / -(passed_over * missed).sum())
        time += step
    return -xp.expm1(missed * time)


def _drawn(count: int, allow_duplicates: bool, seed: int = 1) -> Any:
    """A sample's call: how often each class is drawn."""

    def call(f: Any, weights: Any) -> Any:
        from .product import times
        from .reduction import reduce_sum

        return reduce_sum(times(f(weights, count, allow_duplicates, seed), np.eye(weights.shape[-1], dtype=weights.dtype)), 0)

    return call


@operator(
    sample(
        Operand(np.array([1.0, 3.0, 0.0, 2.0]), kind="static", gradient=False),
        call=_drawn(3, False),
        expected=lambda w: np.array([[1.0, 1.0, 0.0, 1.0]]),
    ),
    sample(
        Operand(np.array([0.0, 3.0, 0.0]), kind="parameter", gradient=False),
        call=_drawn(5, True),
        expected=lambda w: np.array([[0.0, 5.0, 0.0]]),
    ),
)
def random_sample(weights: TensorLike, num_samples: int, allow_duplicates: bool, seed: Seed = AUTO_SEED, name: str = "") -> Function:
    """Draw classes at random, each with a probability proportional to its weight; every evaluation draws anew.

    Args:
        weights: a vector with a weight for each of n classes, not negative; the same for the whole minibatch.
        num_samples: how many to draw.
        allow_duplicates: whether a class may be drawn again; else fewer are drawn than there are classes, each from those left.
        seed: seed of the draws; by default one is chosen.
        name: name of the Function.

    Returns:
        a sparse matrix ``(num_samples, n)`` of one-hot rows, in the order drawn, without dynamic axes.  No gradient flows through it.

    Raises:
        ValueError: a number of samples that is not positive, or not below the number of classes where duplicates are not allowed; a
            negative weight; too few classes with positive weights.
        RuntimeError: the minibatch has several vectors of weights.

    >>> C.times(C.random_sample([1, 0, 0], 2, True), np.eye(3, dtype=np.float32)).eval()
    array([[1., 0., 0.],
           [1., 0., 0.]], dtype=float32)
    """
    return RandomSample(num_samples, allow_duplicates, choose_seed(seed, per_worker=True))(weights, name=name)


@operator(
    sample(
        Operand(np.array([1.0, 2.0, 5.0, 0.0]), kind="static", gradient=False),
        num_samples=4,
        allow_duplicates=True,
        expected=lambda w: 4 * w / w.sum(),
    ),
    sample(
        Operand(np.array([1.0, 2.0, 5.0, 0.0]), kind="parameter", gradient=False),
        num_samples=3,
        allow_duplicates=False,
        expected=lambda w: np.array([1.0, 1.0, 1.0, 0.0]),
    ),
    sample(
        Operand(np.full((1, 8), 3.0), kind="static", gradient=False),
        num_samples=2,
        allow_duplicates=False,
        expected=lambda w: np.full((1, 8), 0.25),
    ),
)
def random_sample_inclusion_frequency(
    weights: TensorLike, num_samples: int, allow_duplicates: bool, seed: Seed = AUTO_SEED, name: str = ""
) -> Function:
    """How often to expect each class in what :func:`random_sample` draws: ``num_samples * weights / sum(weights)`` with duplicates.

    Without duplicates it is the probability that a class is in the sample, by an approximation that is the better the more classes
    there are.  The results add up to *num_samples*.

    Args:
        weights: a vector with a weight for each class, not negative; the same for the whole minibatch.
        num_samples: how many are drawn.
        allow_duplicates: whether a class may be drawn again.
        seed: seed of the node; the result does not depend on it.
        name: name of the Function.

    Returns:
        an expected count for each class, of the weights' shape, without dynamic axes.  No gradient flows through it.

    Raises:
        ValueError: a number of samples that is not positive, or not below the number of classes where duplicates are not allowed; a
            negative weight; too few classes with positive weights.
        RuntimeError: the minibatch has several vectors of weights.

    Source:
        Rosén, *Asymptotic theory for order sampling*, 1997.

    >>> C.random_sample_inclusion_frequency([100, 100, 1, 1], 2, True).eval().round(4)
    array([0.9901, 0.9901, 0.0099, 0.0099], dtype=float32)
    >>> C.random_sample_inclusion_frequency([100, 100, 1, 1], 2, False).eval().round(4)
    array([0.9739, 0.9739, 0.0261, 0.0261], dtype=float32)
    """
    return RandomSampleInclusionFrequency(num_samples, allow_duplicates, choose_seed(seed, per_worker=True))(weights, name=name)
