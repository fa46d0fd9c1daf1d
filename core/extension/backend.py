"""The backend protocol: what an array library must supply so that programs run on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..types.layout import Layout

Array: TypeAlias = Any
"""An array of the backend's own, with the attributes and operators of NumPy's arrays; its memory need not be reachable from the host."""

Memory: TypeAlias = Any
"""Raw memory of the backend, with an attribute ``nbytes``."""

DType: TypeAlias = type[np.generic] | None
"""An element type: NumPy's, whatever the backend.  It may be None, not known yet, where graphs are built, but never in a program."""


class Need(NamedTuple):
    """A piece that a backend computes with, or would: what ``cntk doctor`` shows of it.

    Attributes:
        name: what it is, such as ``'cuDNN'``.
        found: its version, or where it is; empty where it is missing.
        purpose: what it is for, or what is done without it.
        remedy: how to get it, or a version that will do: a sentence, which may name a command.
    """

    name: str
    found: str
    purpose: str
    remedy: str


class Backend(Protocol):
    """An array library and one device that it computes on.

    The registered class is called with the number of a device, 0 where it is left out, once for each device; an instance's arrays are on
    its device.  ``cntk.backends.numpy.backend.NumpyBackend`` is one to derive from, where arrays are NumPy's.

    The host's arrays come and go through ``asarray``, ``load``, ``on_device`` and ``to_numpy`` alone, single numbers by ``float``:
    nothing else reads or writes memory of the device from outside.

    Attributes:
        name: registered name, e.g. ``'numpy'``.
        kind: kind of its devices, a :class:`~cntk.core.extension.device.DeviceKind` or its number: 0 for the CPU, 1 for GPUs.
        xp: array namespace with NumPy's names and ``out=`` arguments.
        dtypes: element types it computes in.
        sparse: whether it takes CSR operands; if not, it gets dense ones.
        alignment: byte boundary at which arrays that share memory begin.
        block_bytes: bytes of an array in a block of rows, if chains of operators run block by block to stay in a cache; None if they
            do not.

    It may also have ``passes``, a sequence of :class:`~cntk.core.program.passes.Pass` that all programs on it go through, after those of
    others; ``for_tests``, which is True if it is used only when it is asked for by name; ``needs()``, which returns the pieces that it
    computes with, each a :class:`Need`, whether it can be used or not; and ``fewest_for_learners``, the number of elements of parameters
    from which on a learner's kernel is used, if it is not that of the host.

    >>> from cntk.extend import Backend, NumpyBackend
    >>> class Counting(NumpyBackend):
    ...     name = 'counting'
    ...     allocated = 0
    ...
    ...     def allocate(self, nbytes):
    ...         self.allocated += nbytes
    ...         return super().allocate(nbytes)
    >>> backend: Backend = Counting()
    >>> memory = backend.allocate(backend.nbytes((2, 3), np.float32))
    >>> backend.allocated, backend.view(memory, 0, (2, 3), np.float32).shape
    (24, (2, 3))
    """

    name: str
    kind: int
    xp: Any
    dtypes: tuple[type[np.generic], ...]
    sparse: bool
    alignment: int
    block_bytes: int | None

    def unavailable(self) -> str:
        """Why the backend cannot be used here and how to fix that; empty when it can."""

    def describe(self) -> str:
        """One line on the library and the device."""

    def device_count(self) -> int:
        """How many devices there are; asked only where the backend can be used."""

    def properties(self) -> Any:
        """The device's properties for ``cntk.device.get_gpu_properties``; asked only of GPUs."""

    def nbytes(self, shape: Sequence[int], dtype: DType) -> int:
        """Bytes that an array takes."""

    def allocate(self, nbytes: int) -> Memory:
        """Raw memory, aligned for vector instructions."""

    def view(self, memory: Memory, offset: int, shape: Sequence[int], dtype: DType) -> Array:
        """An array inside raw memory, *offset* bytes from its start."""

    def empty(self, shape: Sequence[int], dtype: DType) -> Array:
        """An uninitialised array of its own."""

    def asarray(self, data: npt.ArrayLike, dtype: DType) -> Array:
        """Copy host data to the device, into a new array."""

    def load(self, array: Array, data: npt.ArrayLike) -> None:
        """Copy host data into an existing array, broadcast to its shape and converted to its element type."""

    def on_device(self, *data: npt.NDArray[Any]) -> Sequence[Array]:
        """Host arrays as arrays of the device, which are read only and until the host changes them: the same where the memory is."""

    def index(self, layout: Layout, name: str) -> Array:
        """An index array of a layout, by the name of its attribute, as an array of the device; it is brought there once."""

    def to_numpy(self, array: Array) -> npt.NDArray[Any]:
        """A copy on the host that nothing else refers to."""

    def take(self, array: Array, places: Array, axis: int | None, out: Array, mode: str, /) -> Any:
        """What NumPy's ``take`` does, with all its arguments and no work beside: for operators that are small."""

    def uniform(self, out: Array, seed: int, draw: int) -> None:
        """Fill with uniform numbers in [0, 1), determined by *seed* and *draw*: the same on every backend."""

    def normal(self, out: Array, seed: int, draw: int) -> None:
        """Fill with standard normal numbers, determined by *seed* and *draw*."""

    def summing(self, full: Array, axes: tuple[int, ...], target: Array) -> Callable[[], Any]:
        """A function that writes the sum of *full* over *axes* into *target*, each time that it is called.

        The target has these axes with size 1 or, if they are the first ones, not at all.
        """

    def synchronize(self) -> None:
        """Wait until all work handed to the device is done."""

    def guard(self) -> AbstractContextManager[Any]:
        """Context manager around a pass: here a backend silences its floating-point warnings."""


@runtime_checkable
class Asynchronous(Protocol):
    """A backend whose device works off a queue of its own, while Python goes on."""

    def later(self, *numbers: Array) -> Callable[[], Sequence[float]]:
        """Begin to fetch numbers, arrays without axes of one element type; what is returned waits for them and gives them.

        What is written to the arrays afterwards does not change them.
        """

    def record(self, calls: Callable[[], None]) -> Callable[[], None] | None:
        """What does once more all the work that *calls* hands over to the device, such as a CUDA graph.

        The work is on the same memory each time, which is kept as long as what is returned.

        Args:
            calls: hands over the work; it has done so before, so that nothing is compiled any more.  Data of the host and the index arrays
                of layouts cannot be part of it: :meth:`Backend.on_device` and :meth:`Backend.index` raise a RuntimeError meanwhile.

        Returns:
            A function that has the work done, which this method has not; None where it cannot be recorded.
        """
