"""The evaluator: a metric over minibatches, without training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cntk.core.common.tracebacks import end_at_user
from cntk.core.graph.block import combine
from cntk.core.graph.function import Function
from cntk.core.graph.inference import as_variable
from cntk.core.graph.variable import Variable
from cntk.debugging.profiler import timing_of
from cntk.plugins.progress.base import ProgressWriter
from cntk.train.communicator import world
from cntk.train.criterion import function_of
from cntk.train.measure import measure
from cntk.train.progress import Progress


class Evaluator:
    """Averages a metric over minibatches.

    Args:
        eval_function: a function or variable with one output.
        progress_writers: a progress writer, several, or None.

    Raises:
        RuntimeError: the function has several outputs.
        TypeError: *eval_function* or a progress writer is something else.

    >>> x = C.input_variable(2)
    >>> C.Evaluator(C.reduce_sum(x)).test_minibatch({x: np.array([[1, 2], [3, 4]], np.float32)})
    5.0
    """

    def __init__(
        self, eval_function: Function | Variable, progress_writers: ProgressWriter | Sequence[ProgressWriter] | None = None
    ) -> None:
        self._metric = as_variable(eval_function, op_name="Evaluator")
        self._function = combine([self._metric])
        self._progress = Progress(progress_writers)

    def test_minibatch(self, arguments: Any, device: Any = None, distributed: bool = False) -> float:
        """Average of the metric over one minibatch, per sample.

        Args:
            arguments: data by input variable or name, or one input's data where there is one input.
            device: where to compute; the default device where None.
            distributed: whether to average over the samples of all workers, who all call this; ``{}`` stands for no samples then.

        Raises:
            ValueError: data that does not fit the inputs.

        >>> x, y = C.input_variable(2), C.input_variable(2)
        >>> evaluator = C.Evaluator(C.classification_error(x, y))
        >>> evaluator.test_minibatch({x: np.float32([[1, 0], [3, 2]]), y: np.float32([[1, 0], [0, 1]])})
        0.5
        """
        try:
            average, samples = measure(self._function, self._metric, arguments, device, world() if distributed else None)
        except Exception as error:
            end_at_user(error)
            raise
        self._progress.count_test(average, samples)
        return average

    def print_node_timing(self) -> None:
        """Print how long operators have taken on average since :func:`cntk.debugging.set_node_timing` was switched on."""
        print(timing_of(self._function), end="")

    @property
    def evaluation_function(self) -> Function:
        """The metric."""
        return function_of(self._metric)

    def summarize_test_progress(self) -> None:
        """Let the progress writers summarise the tests since the last summary."""
        self._progress.summarize_test()


__all__ = ["Evaluator"]
