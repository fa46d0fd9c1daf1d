"""Initialisers of parameters.

The fans of a parameter of shape ``(*input, *output, *filter)`` are the numbers of values that meet in one output and that one
input goes to: ``fan_in = size(input) * size(filter)`` and ``fan_out = size(output) * size(filter)``.  *filter_rank* axes at the
end are the filter, *output_rank* axes before them the outputs; a negative *output_rank* puts the outputs first.

Values are drawn in float64 and then rounded, so that equal seeds give equal values up to rounding in every element type: those that
CNTK draws on the CPU, to the last bit in float32 and float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ..core.common.random import AUTO_SEED, choose_seed
from ..core.common.shape import Shape, size_of
from ..core.common.thresholds import thresholds
from ..core.common.twister import CHUNK, Loops, Twister
from ..core.extension import plugins
from ..core.extension.compiled import Unusable
from ..core.graph.initial_values import Array, ConstantInitializer, Initializer
from ..core.machine.self_check import are_usable
from ..core.types.arguments import Seed, checked

TWISTER = "Twister", "numpy"
"""The place of the loops that draw numbers."""

INFER_RANK = 2**31 - 1
"""Rank argument that means: the default, one output axis and no filter axis."""


@dataclass(frozen=True)
class BilinearInitializer(Initializer):
    """Weights of a transposed convolution that scales images up by bilinear interpolation, channel by channel."""

    kernel_width: int
    kernel_height: int

    def fill(self, shape: Shape, dtype: Any) -> Array:
        size = self.kernel_width
        if self.kernel_height != size or len(shape) != 4 or shape[0] != shape[1] or shape[2:] != (size, size):
            raise ValueError(
                f"{self!r}: cannot fill a parameter of shape {shape}; bilinear filters are square and need "
                "a parameter of shape (channels, channels, kernel_height, kernel_width)"
            )
        factor = (size + 1) // 2
        centre = factor - 1 if size % 2 else factor - 0.5
        row = 1 - np.abs(np.arange(size) - centre) / factor
        values = np.zeros(shape, dtype)
        channels = np.arange(shape[0])
        values[channels, channels] = np.outer(row, row)
        return values

    def __repr__(self) -> str:
        return f"bilinear({self.kernel_width}, {self.kernel_height})"


# ---- random initialisers -------------------------------------------------------------------------


def _draw_uniform(stream: Twister, values: Array, width: float) -> None:
    stream.fill_uniform(values, 2 * width, -width)


def _draw_normal(stream: Twister, values: Array, width: float) -> None:
    _fill_normal(stream, values, width, np.inf)


def _draw_truncated_normal(stream: Twister, values: Array, width: float) -> None:
    _fill_normal(stream, values, width, 2)


def _fill_normal(stream: Twister, values: Array, width: float, limit: float) -> None:
    for start in range(0, len(values), CHUNK):
        part = values[start : start + CHUNK]
        part[:] = stream.normal(len(part), limit) * width


def _loops(count: int) -> Loops | None:
    """The compiled loops that draw so many numbers; None if there are none, or too few numbers for them."""
    if count < thresholds.initial_values_compiled or TWISTER not in plugins.engines or not are_usable():
        return None
    try:
        loops: Loops = plugins.engines.get(TWISTER)
    except Unusable:
        return None
    return loops


@dataclass(frozen=True)
class Distribution:
    """How a kind of random initialiser draws.

    Attributes:
        draw: fills a flat array with values of a width from a stream.
        width: function of fan-in and fan-out that the scale is multiplied by, None for a kind without ranks.
    """

    draw: Callable[[Twister, Array, float], None]
    width: Callable[[int, int], float] | None = None


DISTRIBUTIONS: dict[str, Distribution] = {
    "uniform": Distribution(_draw_uniform),
    "normal": Distribution(_draw_normal, lambda fan_in, fan_out: 1.0),
    "truncated_normal": Distribution(_draw_truncated_normal),
    "xavier": Distribution(_draw_uniform, lambda fan_in, fan_out: math.sqrt(3 / fan_in)),
    "glorot_uniform": Distribution(_draw_uniform, lambda fan_in, fan_out: math.sqrt(6 / (fan_in + fan_out))),
    "glorot_normal": Distribution(_draw_normal, lambda fan_in, fan_out: math.sqrt(2 / (fan_in + fan_out))),
    "he_uniform": Distribution(_draw_uniform, lambda fan_in, fan_out: math.sqrt(6 / fan_in)),
    "he_normal": Distribution(_draw_normal, lambda fan_in, fan_out: math.sqrt(2 / fan_in)),
}


@dataclass(frozen=True)
class RandomInitializer(Initializer):
    """Random numbers.

    Attributes:
        kind: a key of :data:`DISTRIBUTIONS`.
        scale: factor on the width of the distribution.
        output_rank, filter_rank: how many axes are outputs and filter, or :data:`INFER_RANK`.
        seed: seed, or :data:`~cntk.core.common.random.AUTO_SEED`.
    """

    kind: str
    scale: float
    output_rank: int = INFER_RANK
    filter_rank: int = INFER_RANK
    seed: int = AUTO_SEED

    def __post_init__(self) -> None:
        if not self.scale > 0:
            raise ValueError(f"{self.kind}: the scale must be positive, got {self.scale}")
        if self.seed < 0:
            raise ValueError(f"{self.kind}: a seed is 0 or more, got {self.seed}")

    def seeded(self) -> RandomInitializer:
        return replace(self, seed=choose_seed(self.seed))

    def with_rank(self, output_rank: int, filter_rank: int) -> RandomInitializer:
        if DISTRIBUTIONS[self.kind].width is None:
            return self
        return replace(
            self,
            output_rank=self._override("output_rank", output_rank),
            filter_rank=self._override("filter_rank", filter_rank),
        )

    def fill(self, shape: Shape, dtype: Any) -> Array:
        count = size_of(shape)
        values = np.empty(count, dtype)
        stream = Twister(choose_seed(self.seed), _loops(count))
        if count:
            width = np.promote_types(dtype, np.float32).type(self._width(shape))
            DISTRIBUTIONS[self.kind].draw(stream, values, float(width))
        return values.reshape(shape)

    def _override(self, name: str, rank: int) -> int:
        given: int = getattr(self, name)
        if rank == INFER_RANK:
            return given
        if given != INFER_RANK:
            raise ValueError(f"{self!r}: {name} is {given} already and cannot be overridden by {rank}; leave it out")
        return rank

    def _width(self, shape: Shape) -> float:
        width = DISTRIBUTIONS[self.kind].width
        return self.scale if width is None else self.scale * width(*self._fans(shape))

    def _fans(self, shape: Shape) -> tuple[int, int]:
        output_rank = 1 if self.output_rank == INFER_RANK else self.output_rank
        filter_rank = 0 if self.filter_rank == INFER_RANK else self.filter_rank
        plain = len(shape) - filter_rank
        if filter_rank < 0 or abs(output_rank) > plain:
            raise ValueError(
                f"{self!r}: {abs(output_rank)} output and {filter_rank} filter axes do not fit a parameter of shape {shape}; "
                "give output_rank and filter_rank, whose sum is at most the number of axes"
            )
        first = 0 if output_rank < 0 else plain - output_rank
        last = first + abs(output_rank)
        elements = size_of(shape[plain:])
        fan_in = size_of(shape[:first] + shape[last:plain]) * elements
        return fan_in, size_of(shape[first:last]) * elements

    def __repr__(self) -> str:
        given = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self)[2:] if getattr(self, f.name) != f.default]
        return f"{self.kind}({', '.join([repr(self.scale), *given])})"


# ---- public functions ----------------------------------------------------------------------------


@checked
def constant(value: float) -> Initializer:
    """Fill with one number."""
    return ConstantInitializer(value)


@checked
def uniform(scale: float, seed: Seed | None = None) -> Initializer:
    """Draw uniformly from [-*scale*, *scale*].

    Args:
        scale: half the width of the interval, above 0.
        seed: non-negative seed; one is chosen for every parameter where it is None.

    Raises:
        ValueError: *scale* is not positive or *seed* is negative.

    >>> p = C.Parameter((1000,), init=C.initializer.uniform(2, seed=1))
    >>> bool((abs(p.value) <= 2).all())
    True
    """
    return _random("uniform", scale, seed=seed)


@checked
def normal(scale: float, output_rank: int = INFER_RANK, filter_rank: int = INFER_RANK, seed: Seed | None = None) -> Initializer:
    """Draw from the normal distribution of mean 0 and standard deviation *scale*; the fans do not matter.

    Args:
        scale: standard deviation, above 0.
        output_rank, filter_rank: numbers of output and filter axes; only checked against the shape.
        seed: non-negative seed; one is chosen for every parameter where it is None.

    Raises:
        ValueError: *scale* is not positive or *seed* is negative.

    >>> p = C.Parameter((100, 100), init=C.initializer.normal(0.1, seed=1))
    >>> print(f'{p.value.std():.2f}')
    0.10
    """
    return _random("normal", scale, output_rank, filter_rank, seed)


@checked
def xavier(scale: float = 1, output_rank: int = INFER_RANK, filter_rank: int = INFER_RANK, seed: Seed | None = None) -> Initializer:
    """Draw uniformly from ±scale·sqrt(3 / fan_in).

    Args:
        scale: factor, above 0.
        output_rank: number of output axes, the last before the filter axes; the first if negative. Default 1.
        filter_rank: number of filter axes, at the end. Default 0.
        seed: non-negative seed; one is chosen for every parameter where it is None.

    Raises:
        ValueError: *scale* is not positive or *seed* is negative.

    >>> p = C.Parameter((300, 10), init=C.initializer.xavier())
    >>> bool((abs(p.value) <= 0.1).all())
    True
    """
    return _random("xavier", scale, output_rank, filter_rank, seed)


@checked
def glorot_uniform(scale: float = 1, output_rank: int = INFER_RANK, filter_rank: int = INFER_RANK, seed: Seed | None = None) -> Initializer:
    """Draw uniformly from ±scale·sqrt(6 / (fan_in + fan_out)): the default of most layers.

    Args:
        scale: factor, above 0.
        output_rank: number of output axes, the last before the filter axes; the first if negative. Default 1.
        filter_rank: number of filter axes, at the end. Default 0.
        seed: non-negative seed; one is chosen for every parameter where it is None.

    Raises:
        ValueError: *scale* is not positive or *seed* is negative.

    Source: X. Glorot, Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010.

    >>> p = C.Parameter((200, 400), init=C.glorot_uniform())
    >>> bool((abs(p.value) <= 0.1).all())
    True
    """
    return _random("glorot_uniform", scale, output_rank, filter_rank, seed)


@checked
def glorot_normal(scale: float = 1, output_rank: int = INFER_RANK, filter_rank: int = INFER_RANK, seed: Seed | None = None) -> Initializer:
    """Draw from the normal distribution of standard deviation scale·sqrt(2 / (fan_in + fan_out)).

    Args:
        scale: factor, above 0.
        output_rank: number of output axes, the last before the filter axes; the first if negative. Default 1.
        filter_rank: number of filter axes, at the end. Default 0.
        seed: non-negative seed; one is chosen for every parameter where it is None.

    Raises:
        ValueError: *scale* is not positive or *seed* is negative.

    Source: X. Glorot, Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010.

    >>> p = C.Parameter((100, 100), init=C.glorot_normal(seed=1))
    >>> print(f'{p.value.std():.1f}')
    0.1
    """
    return _random("glorot_normal", scale, output_rank, filter_rank, seed)


@checked
def he_uniform(scale: float = 1, output_rank: int = INFER_RANK, filter_rank: int = INFER_RANK, seed: Seed | None = None) -> Initializer:
    """Draw uniformly from ±scale·sqrt(6 / fan_in): suits rectified linear units.

    Args:
        scale: factor, above 0.
        output_rank: number of output axes, the last before the filter axes; the first if negative. Default 1.
        filter_rank: number of filter axes, at the end. Default 0.
        seed: non-negative seed; one is chosen for every parameter where it is None.

    Raises:
        ValueError: *scale* is not positive or *seed* is negative.

    Source: K. He, X. Zhang, S. Ren, J. Sun, "Delving deep into rectifiers", ICCV 2015.

    >>> p = C.Parameter((600, 10), init=C.he_uniform())
    >>> bool((abs(p.value) <= 0.1).all())
    True
    """
    return _random("he_uniform", scale, output_rank, filter_rank, seed)


@checked
def he_normal(scale: float = 1, output_rank: int = INFER_RANK, filter_rank: int = INFER_RANK, seed: Seed | None = None) -> Initializer:
    """Draw from the normal distribution of standard deviation scale·sqrt(2 / fan_in): suits rectified linear units.

    Args:
        scale: factor, above 0.
        output_rank: number of output axes, the last before the filter axes; the first if negative. Default 1.
        filter_rank: number of filter axes, at the end. Default 0.
        seed: non-negative seed; one is chosen for every parameter where it is None.

    Raises:
        ValueError: *scale* is not positive or *seed* is negative.

    Source: K. He, X. Zhang, S. Ren, J. Sun, "Delving deep into rectifiers", ICCV 2015.

    >>> p = C.Parameter((200, 100), init=C.he_normal(seed=1))
    >>> print(f'{p.value.std():.1f}')
    0.1
    """
    return _random("he_normal", scale, output_rank, filter_rank, seed)


@checked
def truncated_normal(stdev: float, seed: Seed | None = None) -> Initializer:
    """Draw from a normal distribution of mean 0 that is cut off at ±2·\\ *stdev*; the result has standard deviation 0.88·\\ *stdev*.

    Args:
        stdev: standard deviation before the cut, above 0.
        seed: non-negative seed; one is chosen for every parameter where it is None.

    Raises:
        ValueError: *stdev* is not positive or *seed* is negative.

    >>> p = C.Parameter((100, 100), init=C.truncated_normal(0.5))
    >>> bool((abs(p.value) <= 1).all())
    True
    """
    return _random("truncated_normal", stdev, seed=seed)


@checked
def bilinear(kernel_width: int, kernel_height: int) -> Initializer:
    """Fill with filters of bilinear interpolation, for a transposed convolution that scales images up.

    The parameter has the shape (channels, channels, kernel_height, kernel_width); each channel is scaled by itself.

    Args:
        kernel_width, kernel_height: size of the filter, equal to one another.

    Raises:
        ValueError: when the parameter is filled, if it has another shape.

    >>> C.Parameter((1, 1, 2, 2), init=C.bilinear(2, 2)).value[0, 0]
    array([[0.25, 0.25],
           [0.25, 0.25]], dtype=float32)
    """
    return BilinearInitializer(kernel_width, kernel_height)


@checked
def initializer_with_rank(initializer: Initializer, output_rank: int | None = None, filter_rank: int | None = None) -> Initializer:
    """Give an initialiser the ranks that it was made without.

    Args:
        initializer: an initialiser; one without ranks is returned as it is.
        output_rank, filter_rank: numbers of output and filter axes; None leaves a rank as it is.

    Raises:
        TypeError: *initializer* is something else, such as an array.
        ValueError: the initialiser has that rank already.

    >>> C.initializer_with_rank(C.he_normal(), output_rank=-1, filter_rank=2)
    he_normal(1, output_rank=-1, filter_rank=2)
    """
    if not isinstance(initializer, Initializer):
        raise TypeError(f"initializer_with_rank: expected an initializer such as glorot_uniform(), got {type(initializer).__name__}")
    return initializer.with_rank(_rank(output_rank), _rank(filter_rank))


def _rank(rank: int | None) -> int:
    return INFER_RANK if rank is None else rank


def _random(kind: str, scale: float, output_rank: int = INFER_RANK, filter_rank: int = INFER_RANK, seed: Seed | None = None) -> Initializer:
    return RandomInitializer(kind, scale, output_rank, filter_rank, AUTO_SEED if seed is None else seed)
