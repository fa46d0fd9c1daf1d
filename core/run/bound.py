"""Bound functions: a function at sizes that are known beforehand, with input and output arrays of its own."""

from __future__ import annotations

import operator
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..common.tracebacks import answers
from ..graph.function import Function
from ..graph.variable import Variable
from ..types.layout import Layout
from ..types.sparse import SparseRows
from ..values.feed import feed, match_arguments
from .evaluate import Outputs, program_for
from .workspace import Run, Workspace


class BoundFunction:
    """A function for one size of minibatch: calling it does nothing but copy numbers and compute; see :meth:`Function.bind`.

    It follows the function's parameters as they change.  It serves one thread at a time; threads need one each, and share parameters.
    Pickled, it is the function and the shapes.

    Attributes:
        inputs: the array of each argument, ``(samples, *shape)``, with a sequence axis ``(samples, steps, *shape)``; fill them, then call.
        outputs: the array of each output, of the same kind; the next call overwrites them.
    """

    def __init__(self, function: Function, shapes: Any, device: Any = None) -> None:
        self._function, self._device = function, device
        self._program = program = program_for(function, list(function.outputs), device)
        self._shapes = match_arguments(program.arguments, shapes if program.arguments else {}, function)
        packed = [_input(variable, self._shapes[variable]) for variable in program.arguments]
        self._sources = [rows for rows, _ in packed]
        self.inputs: dict[Variable, Any] = dict(zip(program.arguments, (array for _, array in packed), strict=True))
        self._is_read_in_place = program.backend.xp is np
        self.outputs = Outputs()
        self._lock = threading.Lock()
        self._only = next(iter(self.inputs.values())) if len(self.inputs) == 1 else None
        self._run: Run | None = None
        self._results: dict[Variable, Any] = {}
        self._start()
        for root in function.outputs:
            self.outputs[root] = self._output(root)
        self._answer = next(iter(self.outputs.values())) if len(self.outputs) == 1 else self.outputs

    def __reduce__(self) -> Any:
        shapes = [self._shapes.get(variable) for variable in self._function.arguments]
        return _again, (self._function, shapes, self._device)

    @answers
    def __call__(self, arguments: Any = None) -> Any:
        """Compute the outputs.

        Args:
            arguments: arrays to copy into :attr:`inputs`, by argument or name, or just one's; None takes what is there.

        Returns:
            The array of the output, or for several a dictionary by output: those in :attr:`outputs`, which the next call overwrites.

        Raises:
            ValueError: an array does not have the shape that the argument is bound to.
            TypeError: its numbers cannot be those of the argument.
            RuntimeError: another thread is in a call.
        """
        if not self._lock.acquire(False):
            raise RuntimeError(f"{self._function} is at work in another thread; bind the function once for each thread")
        try:
            if arguments is not None:
                self._fill(arguments)
            self._compute()
        finally:
            self._lock.release()
        return self._answer

    def _fill(self, arguments: Any) -> None:
        if type(arguments) is np.ndarray and self._only is not None and arguments.shape == self._only.shape:
            if arguments.dtype == self._only.dtype:
                self._only[...] = arguments
            else:
                np.copyto(self._only, arguments, casting="same_kind")
            return
        given = match_arguments(self._program.arguments, arguments, self._function)
        for variable, array in self.inputs.items():
            data = np.asarray(getattr(given[variable], "value_to_feed", given[variable]))
            if data.shape != array.shape:
                raise ValueError(
                    f"{variable!r} is bound to the shape {array.shape}, got {data.shape}; bind the function to that, too, or use eval"
                )
            np.copyto(array, data, casting="same_kind")

    def _compute(self) -> None:
        run = self._run
        if run is None or run.workspace.is_outdated:
            run = self._start()
        try:
            self._program.refresh()
            with run.guard():
                self._run_all(run)
        except MemoryError:
            self._run = None  # the workspace has given its memory back
            raise

    def _run_all(self, run: Run) -> None:
        if not self._is_read_in_place:
            run.binding.load(self._sources)
        run.forward()
        for root, array in self.outputs.items():
            known = self._results.get(root)
            array[...] = _on_samples(root, self._read(run, root), run.layout(root)) if known is None else known
        run.finish()

    def _start(self) -> Run:
        """Take memory, and arrange the program in it."""
        feeds = [feed(variable, list(array) if len(variable.dynamic_axes) == 2 else array) for variable, array in self.inputs.items()]
        given = dict(zip(self._program.inputs, self._sources, strict=True)) if self._is_read_in_place else None
        workspace = Workspace(self._program, given)
        self._run = run = Run(self._program, workspace, workspace.load(feeds))
        if not run.binding.is_last:
            raise ValueError(f"bind: how many steps {self._function} has depends on its data, so that its sizes cannot be bound; use eval")
        self._results = {
            root: _on_samples(root, run.value(root), run.layout(root))
            for root in self._function.outputs
            if isinstance(run.value(root), np.ndarray)
        }
        return run

    def _output(self, root: Variable) -> Any:
        assert self._run is not None
        value = self._run.value(root)
        if isinstance(value, SparseRows):
            raise ValueError(f"bind: {root!r} is sparse, and bound outputs are dense; use eval, or make it dense")
        layout = self._run.layout(root)
        if layout is not None and layout.lengths is not None and (layout.lengths != layout.lengths[0]).any():
            raise ValueError(f"bind: {root!r} has sequences of {layout.lengths[:8].tolist()} steps, which are no array; use eval")
        return np.zeros(_on_samples(root, np.empty(value.shape, value.dtype), layout).shape, value.dtype)

    def _read(self, run: Run, root: Variable) -> Any:
        value = run.value(root)
        return value if isinstance(value, np.ndarray) else run.binding.backend.to_numpy(value)


def _input(variable: Variable, shape: Any) -> tuple[Any, Any]:
    """Zeros for an argument, as rows and as users see them, in the same memory.

    Raises:
        ValueError: the shape does not fit the argument, which may be sparse.
    """
    spec = variable.spec
    axes = len(spec.axes or ())
    if variable.is_sparse:
        raise ValueError(f"bind: {variable!r} is sparse, and how many numbers its data has is known with the data alone; use eval")
    sizes = _sizes(variable, shape)
    static = sizes[axes:]
    expected = tuple(dim if isinstance(dim, int) and dim > 0 else -1 for dim in spec.dims)
    if (
        len(static) != len(expected)
        or any(want not in (-1, got) for want, got in zip(expected, static, strict=True))
        or min(sizes, default=1) < 1
    ):
        leading = ("samples", "steps")[:axes]
        wanted = ", ".join([*leading, *("any size" if size < 0 else str(size) for size in expected)])
        raise ValueError(f"bind: the shape of {variable!r} is to be ({wanted}), of positive sizes; got {shape!r}")
    if axes < 2:
        rows = np.zeros(sizes, variable.dtype)
        return rows, rows
    samples, steps = sizes[:2]
    by_step = np.zeros((steps, samples, *static), variable.dtype)
    return by_step.reshape(steps * samples, *static), by_step.swapaxes(0, 1)


def _sizes(variable: Variable, shape: Any) -> tuple[int, ...]:
    sizes: Any = (shape,) if np.isscalar(shape) else shape
    try:
        return tuple(map(operator.index, sizes))
    except TypeError:
        raise ValueError(f"bind: expected the shape of {variable!r} with its samples, such as (1, 784), got {shape!r:.80}") from None


def _on_samples(variable: Variable, rows: Any, layout: Layout | None) -> Any:
    """Rows as users see them: steps, of which all samples have as many, behind the samples."""
    if layout is None or layout.lengths is None or len(variable.spec.axes or ()) < 2:
        return rows
    return rows.reshape(-1, layout.samples, *rows.shape[1:]).swapaxes(0, 1)


def _again(function: Function, shapes: Sequence[Any], device: Any) -> BoundFunction:
    return BoundFunction(function, {v: shape for v, shape in zip(function.arguments, shapes, strict=True) if shape is not None}, device)
