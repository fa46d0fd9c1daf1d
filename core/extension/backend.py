"""The backend protocol: what an array library must supply so that programs run on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

Array: TypeAlias = Any
"""An array of the backend's own, with the attributes and operators of NumPy's arrays; its memory need not be reachable from the host."""

Memory: TypeAlias = Any
"""Raw memory of the backend, with an attribute ``nbytes``."""

DType: TypeAlias = type[np.generic] | None
"""An element type: NumPy's, whatever the backend.  It may be None, not known yet, where graphs are built, but never in a program."""


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
        sparse: whether it takes CSR operands; if not, they arrive made dense.

    It may also have ``passes``, a sequence of :class:`~cntk.core.program.passes.Pass` that all programs on it go through, after those of
    others; ``for_tests``, which is True where nobody is to compute on it but who asks for it by name; and ``fewest_for_learners``, from how
    many elements of parameters on a learner's kernel gains, if that is other than in the host's memory.
    """

    name: str
    kind: int
    xp: Any
    dtypes: tuple[type[np.generic], ...]
    sparse: bool

    def unavailable(self) -> str:
        """Why the backend cannot be used here and how to fix that; empty when it can."""

    def describe(self) -> str:
        """One line on the library and the device."""

    def device_count(self) -> int:
        """How many devices there are; asked only where the backend can be used."""

    def properties(self) -> Any:
        """What ``cntk.device.get_gpu_properties`` tells of the device; asked only of GPUs."""

    def nbytes(self, shape: Sequence[int], dtype: DType) -> int:
        """Bytes that an array takes."""

    def allocate(self, nbytes: int) -> Memory:
        """Raw memory, aligned for vector instructions."""

    def view(self, memory: Memory, offset: int, shape: Sequence[int], dtype: DType) -> Array:
        """An array inside raw memory, *offset* bytes from its start."""

    def empty(self, shape: Sequence[int], dtype: DType) -> Array:
        """An uninitialised array of its own."""

    def asarray(self, data: npt.ArrayLike, dtype: DType) -> Array:
        """Bring host data to the device, in an array of its own."""

    def load(self, array: Array, data: npt.ArrayLike) -> None:
        """Bring host data into an array that is there, broadcast to its shape and converted to its element type."""

    def on_device(self, *data: npt.NDArray[Any]) -> Sequence[Array]:
        """Host arrays as arrays of the device, which are read only and until the host changes them: the same where the memory is."""

    def to_numpy(self, array: Array) -> npt.NDArray[Any]:
        """A copy on the host that nothing else refers to."""

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
