"""The backend protocol: what an array library must supply so that programs run on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Backend(Protocol):
    """An array library and the device it computes on.

    Attributes:
        name: registered name, e.g. ``'numpy'``.
        xp: array namespace with NumPy's names and ``out=`` arguments.
        dtypes: element types it computes in.
        sparse: whether it takes CSR operands; if not, they arrive made dense.

    It may also have ``passes``, a sequence of :class:`~cntk.core.passes.Pass` that all programs on it go through, after those of others.
    """

    name: str
    xp: Any
    dtypes: tuple[Any, ...]
    sparse: bool

    def unavailable(self) -> str:
        """Why the backend cannot be used here and how to mend it; empty when it can."""

    def describe(self) -> str:
        """One line on the library and the device."""

    def nbytes(self, shape: Sequence[int], dtype: Any) -> int:
        """Bytes that an array takes."""

    def allocate(self, nbytes: int) -> Any:
        """Raw memory, aligned for vector instructions, with an attribute ``nbytes``."""

    def view(self, memory: Any, offset: int, shape: Sequence[int], dtype: Any) -> Any:
        """An array inside raw memory, *offset* bytes from its start."""

    def empty(self, shape: Sequence[int], dtype: Any) -> Any:
        """An uninitialised array of its own."""

    def asarray(self, data: Any, dtype: Any) -> Any:
        """Bring host data to the device."""

    def to_numpy(self, array: Any) -> Any:
        """A copy on the host that nothing else refers to."""

    def uniform(self, out: Any, seed: int, draw: int) -> None:
        """Fill with uniform numbers in [0, 1), determined by *seed* and *draw*: the same on every backend."""

    def normal(self, out: Any, seed: int, draw: int) -> None:
        """Fill with standard normal numbers, determined by *seed* and *draw*."""

    def summing(self, full: Any, axes: tuple[int, ...], target: Any) -> Callable[[], Any]:
        """A function that writes the sum of *full* over *axes* into *target*, each time that it is called.

        The target has these axes with size 1 or, if they are the first ones, not at all.
        """

    def synchronize(self) -> None:
        """Wait until all work handed to the device is done."""

    def guard(self) -> Any:
        """Context manager around a pass: here a backend silences its floating-point warnings."""
