"""Convolution, its transpose and pooling against PyTorch in double precision, on all paths and in all element types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import paths
from bounds import UNIT, check, sum_unit

import cntk as C

NEEDS = ("torch",)

ROUNDINGS = 12
"""Errors may be so many roundings of the sum of the terms' magnitudes."""

CHANNELS = (1, 1, 2, 3, 4, 8, 15, 16, 17, 31, 32, 33)
ROWS = (1, 1, 2, 3, 7, 16, 33)
DIMS = {1: (1, 2, 3, 5, 8, 17, 33, 57, 100), 2: (1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 17, 28, 57), 3: (1, 2, 3, 4, 5, 7, 8)}
MOST = 2e7
"""Products of a case, at most."""


@dataclass
class Geometry:
    """How filters or windows slide: numbers for each axis."""

    dims: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padded: tuple[bool, ...]

    @property
    def pads(self) -> list[int]:
        """Zeros before and behind each axis, the last one first as PyTorch has them; negative where elements are left out."""
        axes = list(zip(self.dims, self.kernel, self.strides, self.dilation, self.padded, strict=True))
        return [pad for *sizes, padded in reversed(axes) for pad in (padding(*sizes) if padded else (0, 0))]

    @property
    def span(self) -> tuple[int, ...]:
        return tuple((kernel - 1) * dilation + 1 for kernel, dilation in zip(self.kernel, self.dilation, strict=True))


def padding(dim: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """Automatic padding, with which there are ceil(dim / stride) places."""
    out = -(-dim // stride)
    span = (kernel - 1) * dilation + 1
    before = (span - 1) // 2 - (dim - 1 - (out - 1) * stride) // 2
    return before, (out - 1) * stride + span - before - dim


def trial(random: np.random.Generator) -> str:
    """A convolution, a transposed one, one along sequences or a pooling."""
    path = str(random.choice(paths.PATHS))
    dtype = (np.float32, np.float32, np.float64, np.float16)[random.integers(4)]
    kind = (convolution, convolution, transposed, sequential, pooling)[random.integers(5)]
    with paths.on(path):
        kind(random, dtype)
    return f"{kind.__name__}, {path}"


# ---- drawing ----


def drawn_geometry(random: np.random.Generator, dilates: bool = True) -> Geometry:
    """Sizes of which many are odd, small or just beyond a tile; a third of all as networks have them, 3 wide, padded and by 1."""
    rank = int(random.choice([1, 2, 2, 2, 3]))
    is_usual = random.random() < 1 / 3
    axes = []
    for _ in range(rank):
        kernel, stride, dilation = 3, 1, 1
        if not is_usual:
            kernel, stride, dilation = (int(random.choice(of)) for of in ([1, 2, 3, 4, 5, 7], [1, 1, 2, 3], [1, 1, 2]))
        if not dilates:
            dilation = 1
        padded = is_usual or bool(random.random() < 0.5)
        dim = int(random.choice(DIMS[rank]))
        axes.append((max(dim, kernel if padded else (kernel - 1) * dilation + 1), kernel, stride, dilation, padded))
    return Geometry(*zip(*axes, strict=True))


def numbers(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """Numbers around 0 or another place, of any size that sums of squares do not leave."""
    scale = 1.0 if dtype is np.float16 else 10.0 ** random.integers(-3, 4)
    return ((random.standard_normal(shape) + random.choice([0, 0, 1, 3])) * scale).astype(dtype)


def signs(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """Gradients of results."""
    return random.standard_normal(shape).astype(dtype)


# ---- trials ----


def convolution(random: np.random.Generator, dtype: Any) -> None:
    """Values and gradients of a convolution, with bias and ReLU or without."""
    import torch

    g = drawn_geometry(random)
    groups = int(random.choice([1, 1, 1, 2, 3, 16]))
    channels, maps = (groups * int(random.choice(CHANNELS)) for _ in range(2)) if groups < 16 else (16, 16 * int(random.choice([1, 2])))
    rows = _rows(random, channels * maps // groups * prod(g.kernel) * prod(g.dims))
    x, w = numbers(random, (rows, channels, *g.dims), dtype), signs(random, (maps, channels // groups, *g.kernel), dtype)
    has_bias, rectify = random.random(2) < 0.4
    b = signs(random, (maps, *[1] * len(g.dims)), dtype) * has_bias
    slide = (torch.conv1d, torch.conv2d, torch.conv3d)[len(g.dims) - 1]

    def right(x: Any, w: Any) -> Any:
        return slide(torch.nn.functional.pad(x, g.pads), w, stride=g.strides, dilation=g.dilation, groups=groups)

    def ours(x: Any, w: Any) -> Any:
        settings = {"strides": (channels // groups, *g.strides), "auto_padding": [False, *g.padded], "dilation": (1, *g.dilation)}
        return C.convolution(w, x, groups=groups, **settings)

    _compare(random, ours, right, x, w, b if has_bias else None, bool(rectify))


def transposed(random: np.random.Generator, dtype: Any) -> None:
    """Values and gradients of a transposed convolution."""
    import torch

    g = drawn_geometry(random)
    channels, maps = (int(random.choice(CHANNELS)) for _ in range(2))
    rows = _rows(random, channels * maps * prod(g.kernel) * prod(g.dims))
    x, w = numbers(random, (rows, channels, *g.dims), dtype), signs(random, (channels, maps, *g.kernel), dtype)
    spread = (torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d)[len(g.dims) - 1]
    axes = zip(g.dims, g.strides, g.span, g.padded, strict=True)
    whole = tuple((dim - 1) * stride + (1 if padded else span) for dim, stride, span, padded in axes)
    back = Geometry(whole, g.kernel, g.strides, g.dilation, g.padded)

    def right(x: Any, w: Any) -> Any:
        full = spread(x, w, stride=g.strides, dilation=g.dilation)
        return torch.nn.functional.pad(full, [-pad for pad in back.pads])

    def ours(x: Any, w: Any) -> Any:
        return C.convolution_transpose(w, x, strides=(1, *g.strides), auto_padding=[False, *g.padded], dilation=(1, *g.dilation))

    _compare(random, ours, right, x, w, None, False)


def sequential(random: np.random.Generator, dtype: Any) -> None:
    """Values and gradients of a convolution along the steps of ragged sequences, of vectors or of images."""
    import torch

    g = drawn_geometry(random)
    channels, maps = (int(random.choice(CHANNELS)) for _ in range(2))
    longest = g.dims[0]
    shortest = min(longest, g.kernel[0] if g.padded[0] else g.span[0])
    count = _rows(random, channels * maps * prod(g.kernel) * prod(g.dims))
    all_of = [replace(g, dims=(int(steps), *g.dims[1:])) for steps in random.integers(shortest, longest + 1, count)]
    x = [numbers(random, (one.dims[0], channels, *g.dims[1:]), dtype) for one in all_of]
    w = signs(random, (maps, channels, *g.kernel), dtype)
    slide = (torch.conv1d, torch.conv2d, torch.conv3d)[len(g.dims) - 1]

    def right(images: list[Any], w: Any) -> list[Any]:
        """Steps as the first axis of an image, and back."""
        padded = [torch.nn.functional.pad(image.movedim(0, 1)[None], one.pads) for image, one in zip(images, all_of, strict=True)]
        return [slide(image, w, stride=g.strides, dilation=g.dilation)[0].movedim(1, 0) for image in padded]

    unit = ROUNDINGS * sum_unit(dtype)
    wide = [torch.tensor(one.astype(np.float64), requires_grad=True) for one in x]
    filters = torch.tensor(w.astype(np.float64), requires_grad=True)
    sizes, large = [one.detach().abs().requires_grad_() for one in wide], _largest_of_channel(filters).requires_grad_()
    z, z_size = right(wide, filters), right(sizes, large)
    dy = [signs(random, tuple(one.shape), dtype) for one in z]
    up = [torch.tensor(one.astype(np.float64)) for one in dy]
    expected = torch.autograd.grad(z, [*wide, filters], up)
    bounds = torch.autograd.grad(z_size, [*sizes, large], [unit * one.abs() for one in up])
    rounded = UNIT[dtype] / sum_unit(dtype)  # a step's gradients from the windows that it is in are rounded before they are added

    v, p = C.sequence.input_variable(x[0].shape[1:], dtype, needs_gradient=True), C.parameter(init=w, dtype=dtype)
    settings = {"strides": (channels, *g.strides), "auto_padding": [False, *g.padded], "dilation": (1, *g.dilation)}
    y = C.convolution(p, v, sequential=True, **settings)
    weight = C.input_variable(y.shape, dtype, dynamic_axes=y.dynamic_axes)
    gradients, value = (y * weight).grad({v: x, weight: dy}, wrt=[v, p], outputs=[y.output])
    what = f"sequential convolution {np.dtype(dtype)} of {[one.shape for one in x]} by {w.shape} {g}"
    for number in range(count):
        check(what, value[number], z[number].detach(), unit * z_size[number].detach())
        check(f"{what}: gradient of sequence {number}", gradients[v][number], expected[number], bounds[number] * rounded)
    check(f"{what}: gradient of filters", gradients[p], expected[-1], _largest_of_channel(bounds[-1]))


def pooling(random: np.random.Generator, dtype: Any) -> None:
    """Values and gradients of the largest or the mean of windows."""
    import torch

    g = drawn_geometry(random, dilates=False)
    rank, rows = len(g.dims), int(random.choice(ROWS))
    shape = (rows, int(random.choice(CHANNELS)), *g.dims)
    is_maximum, include_pad = random.random(2) < 0.5
    x = random.permutation(prod(shape)).reshape(shape).astype(dtype)  # no two alike
    if dtype is np.float16:
        x = x % 2048
    tensor = torch.tensor(x.astype(np.float64), requires_grad=True)
    functional = torch.nn.functional
    padded = functional.pad(tensor, g.pads, value=-np.inf if is_maximum else 0)
    if is_maximum:
        right = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)[rank - 1](padded, g.kernel, g.strides)
    else:
        mean = (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)[rank - 1]
        share = 1 if include_pad else mean(functional.pad(torch.ones_like(tensor), g.pads), g.kernel, g.strides).detach()
        right = mean(padded, g.kernel, g.strides) / share
    dy = signs(random, tuple(right.shape), dtype)
    v, weight = C.input_variable(shape[1:], dtype, needs_gradient=True), C.input_variable(dy.shape[1:], dtype)
    kind = C.MAX_POOLING if is_maximum else C.AVG_POOLING
    y = C.pooling(v, kind, g.kernel, g.strides, [False, *g.padded], include_pad=bool(include_pad))
    what = f"pooling {'MAX' if is_maximum else 'AVG'} {np.dtype(dtype)} {shape} {g} include_pad={include_pad}"
    data = {v: x, weight: dy}
    gradients, value = (y * weight).grad(data, wrt=[v], outputs=[y.output])
    unit = ROUNDINGS * sum_unit(dtype)
    right.backward(torch.tensor(dy.astype(np.float64)))
    expected = right.detach().numpy()
    check(what, value, expected, 0 if is_maximum else unit * np.abs(expected))
    if dtype is not np.float16 or not is_maximum:  # float16 has too few numbers for no two alike
        check(f"gradient of {what}", gradients, tensor.grad.numpy(), unit * len(g.dims) * prod(g.kernel))


# ---- comparing ----


def _rows(random: np.random.Generator, products: int) -> int:
    return max(1, min(int(random.choice(ROWS)), int(MOST / products)))


Graph = Callable[[Any, Any], Any]
"""What images and filters give."""


def _compare(random: np.random.Generator, ours: Graph, right: Graph, x: Any, w: Any, b: Any, rectify: bool) -> None:
    """Compare values and gradients; each error is bounded by roundings of the magnitudes that were summed.

    Minimal filtering multiplies sums of neighbouring weights, so that the magnitude of a weight counts as that of the largest one of its
    filter's channel.
    """
    import torch

    dtype = x.dtype.type
    unit = ROUNDINGS * sum_unit(dtype)
    wide = [torch.tensor(array.astype(np.float64), requires_grad=True) for array in (x, w)]
    sizes = [torch.tensor(array.detach().abs().numpy(), requires_grad=True) for array in (wide[0], _largest_of_channel(wide[1]))]
    z, z_size = right(*wide), right(*sizes)
    shift = 0 if b is None else torch.tensor(b.astype(np.float64))
    z_bound = unit * (z_size + abs(shift)).detach() + UNIT[dtype] * z.detach().abs()
    total = (z + shift).detach()
    dy = signs(random, tuple(z.shape), dtype)
    mask, doubt = (total > 0, total.abs() <= z_bound) if rectify else (torch.ones_like(total), torch.zeros_like(total))
    dz, dz_bound = torch.tensor(dy.astype(np.float64)) * mask, torch.tensor(np.abs(dy).astype(np.float64)) * (unit * mask + doubt * 1.0)
    expected = torch.autograd.grad(z, wide, dz)
    bounds = list(torch.autograd.grad(z_size, sizes, dz_bound))
    bounds[1] = _largest_of_channel(bounds[1])

    v, weight = C.input_variable(x.shape[1:], dtype, needs_gradient=True), C.input_variable(dy.shape[1:], dtype)
    p = C.parameter(init=w, dtype=dtype)
    wanted = [v, p]
    y = ours(v, p)
    if b is not None:
        q = C.parameter(init=b, dtype=dtype)
        wanted.append(q)
        y = y + q
    y = C.relu(y) if rectify else y
    what = f"{ours.__qualname__.split('.')[0]} {np.dtype(dtype)} {x.shape} by {w.shape}{' bias' * (b is not None)}{' relu' * rectify}"
    gradients, value = (y * weight).grad({v: x, weight: dy}, wrt=wanted, outputs=[y.output])
    check(what, value, torch.relu(total) if rectify else total, z_bound)
    check(f"{what}: gradient of images", gradients[v], expected[0], bounds[0])
    check(f"{what}: gradient of filters", gradients[p], expected[1], bounds[1])
    if b is not None:
        over = (0, *range(2, dz.ndim))
        check(f"{what}: gradient of biases", gradients[q].reshape(-1), dz.sum(over), dz_bound.sum(over))


def _largest_of_channel(filters: Any) -> Any:
    """For each weight the largest magnitude of the weights for its filter and channel."""
    largest = filters.detach().abs().flatten(2).amax(2)
    return largest.reshape(*largest.shape, *[1] * (filters.ndim - 2)).expand(filters.shape).clone()
