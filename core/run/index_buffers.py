"""Index arrays that recorded work reads: at places that stay, filled for each minibatch by one copy.

How sequences lie differs from minibatch to minibatch.  Where an operator's work depends on that only through the contents of index arrays,
which it asks its context for, the work is recorded with arrays that stay, and these are filled before it is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import proxy

import numpy as np

from ..common.shape import size_of
from ..types.context import Context
from ..types.layout import Index, Layout

if TYPE_CHECKING:
    from ..extension.backend import Array, Backend


@dataclass(frozen=True)
class OfLayout:
    """What gives an index array of a layout.

    Attributes:
        position: which of a context's layouts: 0 for the result's, 1 for the first operand's and so on.
        name: the array's name.
    """

    position: int
    name: str

    def __call__(self, ctx: Context) -> Index:
        found: Index = getattr(_layouts(ctx)[self.position], self.name)
        return found


Asked = tuple[Context, Callable[[Context], Index]]
"""A context that asked for an index array, and what makes the array."""


class RecordableContext(Context):
    """The context of an instruction whose calls may be recorded.

    Args:
        buffers: gives the index arrays while calls are recorded.
        arguments: those of a context.
    """

    __slots__ = ("_buffers",)

    def __init__(self, buffers: IndexBuffers, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._buffers: IndexBuffers = proxy(buffers)  # which holds contexts

    def index(self, layout: Layout, name: str) -> Array:
        positions = [position for position, known in enumerate(_layouts(self)) if known is layout]
        array = self._buffers.array(self, OfLayout(positions[0], name)) if positions else None
        return super().index(layout, name) if array is None else array

    def index_from(self, make: Callable[[Context], Index]) -> Array:
        array = self._buffers.array(self, make)
        return super().index_from(make) if array is None else array


class IndexBuffers:
    """The index arrays of a binding's recordings.

    Args:
        backend: where they are.
        before: those of the bindings of earlier stages.
    """

    def __init__(self, backend: Backend, before: Sequence[IndexBuffers] = ()) -> None:
        self._backend, self._before = backend, before
        self._asked: dict[Asked, None] = {}  # what has no place yet
        self._arrays: dict[Asked, Array] = {}
        self._blocks: list[_Block] = []
        self._is_recording = self._was_asked = False
        self._is_filled = self._fits = False

    @property
    def stages(self) -> Sequence[IndexBuffers]:
        """Those of earlier stages, and these."""
        return *self._before, self

    def array(self, ctx: Context, make: Callable[[Context], Index]) -> Array | None:
        """The array to record with; None while calls are made as they are, which shows what they ask for."""
        self._was_asked = True
        if self._is_recording:
            return self._arrays.get((ctx, make))
        if (ctx, make) not in self._arrays:
            self._asked[ctx, make] = None
        return None

    def place(self) -> bool:
        """Give all index arrays that have been asked for a place; they are filled later.

        Returns:
            whether all have one: some cannot be made for every minibatch.
        """
        return all(stage._place() for stage in self.stages)

    def _place(self) -> bool:
        if self._asked:
            indices = _made(self._asked)
            if indices is None:
                return False
            self._blocks.append(_Block(self._backend, dict(zip(self._asked, indices, strict=True))))
            self._arrays.update(self._blocks[-1].arrays)
            self._asked.clear()
            self._is_filled = False
        return True

    @contextmanager
    def recording(self) -> Iterator[Callable[[], bool]]:
        """A time in which contexts give arrays that stay; the function tells whether any was asked for."""
        with ExitStack() as recorded:
            for stage in self.stages:
                stage._is_recording, stage._was_asked = True, False
                recorded.callback(setattr, stage, "_is_recording", False)
            yield lambda: any(stage._was_asked for stage in self.stages)

    def outdate(self) -> None:
        """Sequences lie otherwise from now on."""
        self._is_filled = False

    def fill(self) -> bool:
        """Have the arrays hold those of the minibatch at hand; False where these have other shapes, or cannot be made."""
        return all(stage._fill() for stage in self.stages)

    def _fill(self) -> bool:
        if not self._is_filled:
            self._fits = all(block.fill(self._backend) for block in self._blocks)
            self._is_filled = True
        return self._fits

    def clear(self) -> None:
        """Let go of all arrays and contexts."""
        self._asked.clear()
        self._arrays.clear()
        self._blocks.clear()


class _Block:
    """Index arrays side by side in memory, one for those who ask for the same array of the host.

    Args:
        backend: where they are.
        indices: who asked for what, and the host's arrays at present.

    Attributes:
        arrays: the array for each.
    """

    def __init__(self, backend: Backend, indices: Mapping[Asked, Index]) -> None:
        shared: dict[int, list[Asked]] = {}
        for one, index in indices.items():
            shared.setdefault(id(index), []).append(one)
        self._parts = [(indices[asked[0]].shape, asked) for asked in shared.values()]
        self._memory = backend.empty((sum(size_of(shape) for shape, _ in self._parts),), np.intp)
        self.arrays: dict[Asked, Array] = {}
        start = 0
        for shape, asked in self._parts:
            array = self._memory[start : start + size_of(shape)].reshape(shape)
            start += array.size
            self.arrays.update(dict.fromkeys(asked, array))

    def fill(self, backend: Backend) -> bool:
        """Copy the minibatch's arrays, all at once; False where they have other shapes, or those who shared one do not any more."""
        found: list[Index] = []
        for shape, asked in self._parts:
            indices = _made(asked)
            if indices is None or indices[0].shape != shape or any(index is not indices[0] for index in indices):
                return False
            found.append(indices[0].reshape(-1))
        backend.load(self._memory, np.concatenate(found))
        return True


def _made(asked: Iterable[Asked]) -> list[Index] | None:
    """The host's arrays; None where one cannot be made, which its operator says when it is called."""
    try:
        return [make(ctx) for ctx, make in asked]
    except (ValueError, RuntimeError):
        return None


def _layouts(ctx: Context) -> Sequence[Layout | None]:
    return ctx.layout, *ctx.layouts
