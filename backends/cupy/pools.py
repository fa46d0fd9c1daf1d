"""Generated kernels of pooling: maxima and averages of windows, their gradients, and values put back to where maxima came from.

A window's maximum is told by a tap, the number of its element in the window.  Gradients are gathered: each element adds up what the windows
that meet it give, in a fixed order, so that every element is written once.  Orders, ties and NaN are those of the operators, which go
through windows axis by axis, the last axis first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...core.common.shape import Shape, size_of
from ...core.common.windows import Windows
from ...core.types.context import Context
from .compiler import BLOCKS, INDEX_NAMES, THREADS, blocks_for, compile, index_type
from .prelude import STORED, prelude

TAPS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int"}
"""C types of taps by their size in bytes."""

LARGEST = 2**31
"""Planes of fewer elements are indexed by int."""


def can_pool(*arrays: Any, windows: Windows) -> bool:
    """Whether the kernels can pool such arrays: contiguous ones of floats, in planes that are not enormous."""
    return size_of(windows.dims) < LARGEST and all(array.flags.c_contiguous and array.dtype.name in STORED for array in arrays)


def tap_type(w: Windows) -> Any:
    """Return the type of taps: the smallest that numbers the elements of a window."""
    return np.min_scalar_type(size_of(w.kernel) - 1)


def taps_of(ctx: Context, x: Any, w: Windows) -> Any:
    """Return the array for the taps of maxima in *x*, which an operator keeps from forward to backward."""
    return ctx.keep("taps", (x.size // size_of(w.dims), *w.out), tap_type(w))


# ---- launches ----


def maxima(x: Any, w: Windows, out: Any, taps: Any, rectify: bool = False) -> Callable[[], None]:
    """Return a function that finds the maximum of each window.

    Args:
        x: contiguous planes, ``(*planes, *w.dims)``.
        w: the windows.
        out: contiguous array for the maxima, ``(*planes, *w.out)``; None if they are not wanted.
        taps: contiguous array for their taps; None if they are not wanted.
        rectify: whether negative maxima become zero.
    """
    return _launch("rectified_maxima" if rectify else "maxima", w, x, x, taps, out)


def send_back(grad: Any, taps: Any, w: Windows, dx: Any, out: Any = None) -> Callable[[], None]:
    """Return a function that gives each element the sum of the gradients of the maxima that it is.

    Args:
        grad: contiguous gradient of the maxima, ``(*planes, *w.out)``.
        taps: taps of the maxima.
        w: the windows.
        dx: contiguous array for the gradient of the planes, ``(*planes, *w.dims)``.
        out: the maxima, contiguous, if they are rectified.
    """
    return _launch("send_back" if out is None else "send_back_rectified", w, dx, grad, taps, dx, out)


def put_back(values: Any, taps: Any, w: Windows, out: Any) -> Callable[[], None]:
    """Return a function that puts values where maxima came from, the last where several meet, and zeros elsewhere.

    Args:
        values: contiguous array ``(*planes, *w.out)``.
        taps: taps of the maxima.
        w: the windows.
        out: contiguous array ``(*planes, *w.dims)``.
    """
    return _launch("put_back", w, out, values, taps, out)


def picked(x: Any, taps: Any, w: Windows, out: Any) -> Callable[[], None]:
    """Return a function that picks the element of each window that a tap tells, 0 where that is padding.

    Args:
        x: contiguous planes, ``(*planes, *w.dims)``.
        taps: the taps, ``(*planes, *w.out)``.
        w: the windows.
        out: contiguous array ``(*planes, *w.out)``.
    """
    return _launch("picked", w, x, x, taps, out)


def averages(x: Any, w: Windows, include_pad: bool, out: Any) -> Callable[[], None]:
    """Return a function that computes the average of each window.

    Args:
        x: contiguous planes, ``(*planes, *w.dims)``.
        w: the windows.
        include_pad: whether padding counts, as zeros.
        out: contiguous array ``(*planes, *w.out)``.
    """
    return _launch("averages_of_all" if include_pad else "averages", w, x, x, None, out)


def spread(grad: Any, w: Windows, include_pad: bool, dx: Any) -> Callable[[], None]:
    """Return a function that gives each element its shares of the gradients of averages.

    Args:
        grad: contiguous gradient of the averages, ``(*planes, *w.out)``.
        w: the windows.
        include_pad: whether padding counts, as zeros.
        dx: contiguous array for the gradient of the planes, ``(*planes, *w.dims)``.
    """
    return _launch("spread_over_all" if include_pad else "spread", w, dx, grad, None, dx)


def _launch(name: str, w: Windows, planes: Any, x: Any, taps: Any, out: Any, y: Any = None) -> Callable[[], None]:
    """Return a function that launches a kernel; *planes* is the one of the arrays that windows slide over."""
    number, elements = planes.size // size_of(w.dims), size_of(w.dims if name in OVER_PLANES else w.out)
    size = index_type(number * max(size_of(w.dims), size_of(w.out)))
    launch = compile(text(name, planes.dtype, INDEX_NAMES[size], w), "pool")
    return launch.bound(blocks_for(number * elements), THREADS, x, y, taps, out, size(number * elements))


# ---- texts ----


class _Axis(NamedTuple):
    """An axis along which windows slide.

    Attributes:
        number: its number.
        dim, out, kernel, stride, lower: sizes, as :class:`~cntk.core.common.windows.Windows` has them.
        is_padded: whether windows reach into padding.
        step: distance between neighbours in a plane.
        out_step: distance between neighbouring windows' results.
        weight: what a step along the axis adds to a tap.
    """

    number: int
    dim: int
    out: int
    kernel: int
    stride: int
    lower: int
    is_padded: bool
    step: int
    out_step: int
    weight: int


def _axes(w: Windows) -> list[_Axis]:
    def behind(sizes: Shape, axis: int) -> int:
        return size_of(sizes[axis + 1 :])

    sizes = enumerate(zip(w.dims, w.out, w.kernel, w.strides, w.lower, strict=True))
    return [
        _Axis(axis, *own, own[-1] > 0 or w.upper[axis] > 0, behind(w.dims, axis), behind(w.out, axis), behind(w.kernel, axis))
        for axis, own in sizes
    ]


def text(name: str, dtype: Any, index: str, w: Windows) -> str:
    """Return the source of a kernel, ``pool``, which takes an array, rectified maxima, taps, the result and the number of its elements.

    Args:
        name: a key of :data:`BODIES`.
        dtype: the type of the arrays other than taps.
        index: the C type of indices.
        w: the windows.
    """
    shape = w.dims if name in OVER_PLANES else w.out
    places = [f"const int i{axis} = at / {size_of(shape[axis + 1 :])} % {length};" for axis, length in enumerate(shape)]
    lines = "\n".join(f"        {line}" for line in (f"const size plane = at / {size_of(shape)};", *places, *BODIES[name](w)))
    return f"""{prelude(dtype, index)}
typedef {TAPS[tap_type(w).itemsize]} tap;

__device__ __forceinline__ void consider(real &best, unsigned int &number, bool is_first, real value, unsigned int its) {{
    if (is_first || value > best) {{
        best = value;
        number = its;
    }} else if (value != value) {{
        best = value;
    }}
}}

__device__ __forceinline__ int inside(int begin, int kernel, int dim) {{
    const int first = begin > 0 ? begin : 0, end = begin + kernel < dim ? begin + kernel : dim;
    return end > first ? end - first : 0;
}}

extern "C" __global__ void __launch_bounds__({THREADS}, {BLOCKS})
pool(const stored *x, const stored *y, tap *taps, stored *out, size count) {{
    for (size at = blockIdx.x * (size)blockDim.x + threadIdx.x; at < count; at += (size)gridDim.x * blockDim.x) {{
{lines}
    }}
}}
"""


def _maxima(w: Windows, value: str = "best0") -> list[str]:
    axes = _axes(w)

    def found(number: int) -> list[str]:
        """Statements that find the maximum along an axis, of those along the axes behind it."""
        if number == len(axes):
            return [f"const real best{number} = value_of(x[plane * {size_of(w.dims)}{_places('p', axes)}]);"]
        axis = axes[number]
        its = f"k{number} * {axis.weight}" + (f" + number{number + 1}" if number + 1 < len(axes) else "")
        inner = [*found(number + 1), f"consider(best{number}, number{number}, k{number} == 0, best{number + 1}, {its});"]
        return [f"real best{number} = -INFINITY;", f"unsigned int number{number} = 0;", *_over_window(axis, inner)]

    return [*found(0), "if (out)", f"    store(out[at], {value});", "if (taps)", "    taps[at] = number0;"]


def _gathered(w: Windows, operation: str, value: str = "value_of(x[window])") -> list[str]:
    axes = _axes(w)
    number = " + ".join(f"(q{a.number} - o{a.number} * {a.stride}) * {a.weight}" for a in axes)
    lines = [f"const size window = plane * {size_of(w.out)}{_places('o', axes, 'out_step')};"]
    lines += [f"if (taps[window] == {number})", f"    sum {operation} {value};"]
    for axis in reversed(axes):
        lines = _over_windows(axis, lines)
    return ["real sum = 0;", *lines, "store(out[at], sum);"]


def _picked(w: Windows) -> list[str]:
    axes = _axes(w)
    places = [f"const int p{a.number} = i{a.number} * {a.stride} - {a.lower} + (int)(taps[at] / {a.weight} % {a.kernel});" for a in axes]
    inside = " && ".join(f"p{a.number} >= 0 && p{a.number} < {a.dim}" for a in axes if a.is_padded) or "true"
    value = f"value_of(x[plane * {size_of(w.dims)}{_places('p', axes)}])"
    return [*places, f"store(out[at], {inside} ? {value} : (real)0);"]


def _averages(w: Windows, include_pad: bool) -> list[str]:
    axes = _axes(w)
    lines = [f"const real sum{len(axes)} = value_of(x[plane * {size_of(w.dims)}{_places('p', axes)}]);"]
    for axis in reversed(axes):
        inner = [*lines, f"sum{axis.number} += sum{axis.number + 1};"]
        lines = [f"real sum{axis.number} = 0;", *_over_window(axis, inner)]
    return [*lines, f"store(out[at], sum0 / {_count(w, include_pad, 'i')});"]


def _spread(w: Windows, include_pad: bool) -> list[str]:
    axes = _axes(w)
    share = f"value_of(x[plane * {size_of(w.out)}{_places('o', axes, 'out_step')}]) / {_count(w, include_pad, 'o')}"
    lines = [f"const real share{len(axes)} = {share};"]
    for level, axis in reversed(list(enumerate(reversed(axes)))):
        inner = [*lines, f"share{level} += share{level + 1};"]
        lines = [f"real share{level} = 0;", *_over_windows(axis, inner, backwards=True)]
    return [*lines, "store(out[at], share0);"]


def _over_window(axis: _Axis, inner: Sequence[str]) -> list[str]:
    """Return a loop over the elements ``k`` of window ``i`` along an axis, at the places ``p`` of the plane."""
    a = axis.number
    place = [f"const int p{a} = i{a} * {axis.stride} - {axis.lower} + k{a};"]
    if axis.is_padded:
        place += [f"if (p{a} < 0 || p{a} >= {axis.dim})", "    continue;"]
    return [f"for (int k{a} = 0; k{a} < {axis.kernel}; ++k{a}) {{", *_indented([*place, *inner]), "}"]


def _over_windows(axis: _Axis, inner: Sequence[str], backwards: bool = False) -> list[str]:
    """Return a loop over the windows ``o`` that meet element ``i`` along an axis, which is at ``q`` in the padded plane."""
    a, stride, last = axis.number, axis.stride, axis.out - 1
    begin = [
        f"const int q{a} = i{a} + {axis.lower};",
        f"const int first{a} = q{a} < {axis.kernel} ? 0 : (q{a} - {axis.kernel}) / {stride} + 1;",
        f"const int last{a} = q{a} < 0 ? -1 : q{a} / {stride} < {last} ? q{a} / {stride} : {last};",
    ]
    head = f"int o{a} = last{a}; o{a} >= first{a}; --o{a}" if backwards else f"int o{a} = first{a}; o{a} <= last{a}; ++o{a}"
    return [*begin, "#pragma unroll 1", f"for ({head}) {{", *_indented(inner), "}"]  # mostly one or two windows


def _count(w: Windows, include_pad: bool, window: str) -> str:
    """Return an expression for the number of elements over which a window is averaged."""
    if include_pad or not w.is_padded:
        return f"(real){size_of(w.kernel)}"
    counts = [f"inside({window}{a.number} * {a.stride} - {a.lower}, {a.kernel}, {a.dim})" for a in _axes(w)]
    return f"(real)({' * '.join(counts)})"


def _places(name: str, axes: Sequence[_Axis], step: str = "step") -> str:
    return "".join(f" + (size){name}{axis.number} * {getattr(axis, step)}" for axis in axes)


def _indented(lines: Sequence[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)


BODIES: dict[str, Callable[[Windows], list[str]]] = {
    "maxima": _maxima,
    "rectified_maxima": partial(_maxima, value="best0 <= 0 ? (real)0 : best0"),
    "send_back": partial(_gathered, operation="+="),
    "send_back_rectified": partial(_gathered, operation="+=", value="(real)(value_of(y[window]) > 0) * value_of(x[window])"),
    "put_back": partial(_gathered, operation="="),
    "picked": _picked,
    "averages": partial(_averages, include_pad=False),
    "averages_of_all": partial(_averages, include_pad=True),
    "spread": partial(_spread, include_pad=False),
    "spread_over_all": partial(_spread, include_pad=True),
}
"""What a kernel does for element i of its result, by name."""

OVER_PLANES = {"send_back", "send_back_rectified", "put_back", "spread", "spread_over_all"}
"""Kernels whose results are planes; the others have a result for each window."""
