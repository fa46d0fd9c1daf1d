"""What a format of model files is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ...core.extension.device import DeviceDescriptor
    from ...core.graph.function import Function


class Format(Protocol):
    """What reads and writes model files of one kind.

    More members are for some: ``only_by_name = True`` where files are those of another format too, which reads them unless this one is
    asked for; ``holds_functions = True`` where a file has all of a function, its values as they are and the states of its operators;
    ``restore(function, data, source)``, where the file is not a whole function, which gives the values to *function*; ``read_file(path,
    device)``, where a file is better read in parts than as a whole; ``write_files(function, path, external, **options)``, where a model
    may be several files, which gives their paths and pieces, the model's own last; and ``described(data, source)``, which gives lines
    about a file, for ``cntk show`` to print before the function's layers.

    >>> from cntk.extend import Format, hookimpl, register_plugin, unregister_plugin
    >>> class Values:
    ...     '''Files that have the values of parameters, as text.'''
    ...     def recognises(self, data):
    ...         return False
    ...
    ...     def write(self, function):
    ...         return (f'{p.name} {p.value.tolist()}'.encode() for p in function.parameters)
    ...
    ...     def read(self, data, device, source):
    ...         raise ValueError(f'{source} has no function')
    >>> format: Format = Values()
    >>> z = C.layers.Dense(2, init=1)(C.input_variable(1))
    >>> b', '.join(format.write(z))
    b'W [[1.0, 1.0]], b [0.0, 0.0]'
    """

    def recognises(self, data: Any) -> bool:
        """Whether bytes begin as a file of this format."""

    def write(self, function: Function) -> Iterable[Any]:
        """The bytes of the file, in pieces.  Options that ``save`` takes for the format are further arguments, by keyword only."""

    def read(self, data: Any, device: DeviceDescriptor | None, source: str) -> Function:
        """The function that a file has.

        Args:
            data: the bytes of the file.
            device: where its parameters are to live; None for the default device.
            source: what errors call the file.

        Raises:
            ValueError: the file is broken.
        """
