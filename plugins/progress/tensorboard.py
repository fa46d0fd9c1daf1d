"""The progress writer for TensorBoard: numbers, pictures, histograms and the model's graph in event files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.graph.function import Function
from .base import ProgressWriter, Span, Sums
from .event_file import EventFile, histogram, image, scalar
from .manual import average
from .model_graph import ModelGraph
from .png import COLOUR_TYPES


class TensorBoardProgressWriter(ProgressWriter):
    """Writes loss and metric as training and evaluation go on to a file that TensorBoard reads.

    The file is ``events.out.tfevents.<time>.<host>`` in *log_dir*; it is begun when there is something to write, and everything
    written is in it at once.  Numbers are shown under

    * ``minibatch/avg_loss`` and ``minibatch/avg_metric``, at the number of minibatches trained on: averages since the last time;
    * ``summary/avg_loss`` and ``summary/avg_metric``, at the number of summaries: averages over each;
    * ``minibatch/test_avg_metric``, at the number of minibatches trained on, or ``summary/test_avg_metric``, at the number of tests,
      if nothing was trained: the result of each test.

    Args:
        freq: how often training is written: after every *freq* minibatches; 0 for minibatches 1, 3, 7, 15, …; None for summaries only.
        log_dir: the folder, made if need be.
        rank: number of this worker; all but number 0 write nothing.
        model: function whose graph is to be shown.
        parameter_histograms: whether each summary of training writes the distributions of the model's parameters, under
            ``parameters/<name in the graph>``.

    Raises:
        TypeError: *model* is not a function, or *rank* is not a number.
        ValueError: the frequency is negative, or there are to be histograms of no model's parameters.

    Example:
        >>> import tempfile
        >>> z = C.layers.Dense(2, name='out')(C.input_variable(3))
        >>> writer = C.logging.TensorBoardProgressWriter(10, log_dir=tempfile.mkdtemp(), model=z, parameter_histograms=True)
        >>> writer.write_value('learning rate', 0.1, step=0)
        >>> writer.close()
    """

    def __init__(
        self,
        freq: int | None = None,
        log_dir: str = ".",
        rank: int | None = None,
        model: Function | None = None,
        parameter_histograms: bool = False,
    ) -> None:
        super().__init__(freq)
        if model is not None and not isinstance(model, Function):
            raise TypeError(f"TensorBoardProgressWriter: model must be a function, got {type(model).__name__} {model!r:.80}")
        if rank is not None and not isinstance(rank, int):
            raise TypeError(f"TensorBoardProgressWriter: rank is a worker's number, got {type(rank).__name__} {rank!r:.60}; use model=...")
        if parameter_histograms and model is None:
            raise ValueError("TensorBoardProgressWriter: parameter_histograms=True needs the model whose parameters are meant")
        self.closed = False
        self._log_dir = os.path.abspath(log_dir)
        self._writes = not rank
        self._model = model
        self._parameter_histograms = parameter_histograms
        self._file: EventFile | None = None

    def write_value(self, name: str, value: float, step: int) -> None:
        """Write a number at a time step.

        Args:
            name: what it is shown under.
            value: the number.
            step: 0 or more.

        Raises:
            RuntimeError: the writer is closed.
        """
        self._write(step, scalar(str(name), float(value)))

    def write_image(self, name: str, data: Mapping[Any, Any], step: int) -> None:
        """Write pictures at a time step, as ``<name>/image/0``, ``<name>/image/1``, ….

        Args:
            name: what they are shown under.
            data: batches of pictures by the variable they belong to, as given to a trainer: arrays of shape (pictures, channels,
                height, width) or lists of arrays of shape (channels, height, width).  One channel is grey; three are blue, green and
                red, as image readers give them; a fourth is opacity.  Values are 0 to 255; they are rounded, and those beyond are
                taken to the nearer end.
            step: 0 or more.

        Raises:
            RuntimeError: the writer is closed.
            TypeError: *data* is not a dictionary.
            ValueError: the data have another shape.

        >>> import tempfile
        >>> writer = C.logging.TensorBoardProgressWriter(log_dir=tempfile.mkdtemp())
        >>> x = C.input_variable((1, 28, 28))
        >>> writer.write_image('digits', {x: np.zeros((2, 1, 28, 28))}, step=0)
        >>> writer.close()
        """
        if not isinstance(data, Mapping):
            raise TypeError(f"write_image: expected a dictionary of variables and batches of pictures, got {type(data).__name__}")
        pictures = [picture for batch in data.values() for picture in _pictures(batch)]
        self._write(step, b"".join(image(f"{name}/image/{number}", picture) for number, picture in enumerate(pictures)))

    def write_histogram(self, name: str, values: Any, step: int) -> None:
        """Write the distribution of numbers at a time step.

        Args:
            name: what it is shown under.
            values: array of any shape, such as the value of a parameter; what is not finite in it is left out.
            step: 0 or more.

        Raises:
            RuntimeError: the writer is closed.
        """
        self._write(step, histogram(str(name), values))

    def flush(self) -> None:
        """Wait until everything that was written is on the disk.

        Raises:
            RuntimeError: the writer is closed.
        """
        if file := self._begun(self._model is not None):
            file.flush()

    def close(self) -> None:
        """As :meth:`flush`; then the writer cannot be used any more.

        Raises:
            RuntimeError: it is closed already.
        """
        self.flush()
        self.closed = self._writes

    def on_write_training_update(self, samples: Span, updates: Span, aggregate_loss: Sums, aggregate_metric: Sums) -> None:
        count = samples[1] - samples[0]
        loss, metric = (average(sums[1] - sums[0], count) for sums in (aggregate_loss, aggregate_metric))
        step = self.total_training_updates()
        self._write(step, scalar("minibatch/avg_loss", loss) + scalar("minibatch/avg_metric", metric))

    def on_write_training_summary(
        self,
        samples: int,
        updates: int,
        summaries: int,
        aggregate_loss: float,
        aggregate_metric: float,
        elapsed_milliseconds: int,
    ) -> None:
        loss, metric = average(aggregate_loss, samples), average(aggregate_metric, samples)
        self._write(summaries, scalar("summary/avg_loss", loss) + scalar("summary/avg_metric", metric))
        if self._parameter_histograms and self._model is not None and self._writes:
            names = ModelGraph(self._model).names
            parts = (histogram(f"parameters/{names[parameter]}", parameter.value) for parameter in self._model.parameters)
            self._write(summaries, b"".join(parts))

    def on_write_test_summary(self, samples: int, updates: int, summaries: int, aggregate_metric: float, elapsed_milliseconds: int) -> None:
        trained = self.total_training_updates()
        tag, step = ("minibatch/test_avg_metric", trained) if trained else ("summary/test_avg_metric", summaries)
        self.write_value(tag, average(aggregate_metric, samples), step)

    def on_write_test_update(self, samples: Span, updates: Span, aggregate_metric: Sums) -> None:
        """Not provided.

        Raises:
            NotImplementedError: always; this writer writes the results of whole tests.
        """
        raise NotImplementedError("TensorBoardProgressWriter writes no single minibatches of a test, only the results of whole tests")

    # Inside --------------------------------------------------------------------------------------------------------------------

    def _write(self, step: int, values: bytes) -> None:
        if not 0 <= step < 2**63:
            raise ValueError(f"TensorBoardProgressWriter: a step is a number from 0 to 2**63 - 1, got {step}")
        if file := self._begun():
            file.add_summary(int(step), values)

    def _begun(self, wanted: bool = True) -> EventFile | None:
        """The file, begun if it is wanted; None where there is none, as for all workers but one."""
        if self.closed:
            raise RuntimeError("TensorBoardProgressWriter: it is closed; make another to write more")
        if self._file is None and wanted and self._writes:
            self._file = EventFile(self._log_dir)
            if self._model is not None:
                self._file.add_graph(ModelGraph(self._model).definition())
        return self._file


def _pictures(batch: Any) -> Any:
    """Pictures as files have them, of shape (height, width, channels), from a batch of any kind."""
    values = np.asarray(batch.asarray() if hasattr(batch, "asarray") else batch)
    if values.ndim != 4 or values.shape[1] not in COLOUR_TYPES:
        raise ValueError(
            "write_image: expected arrays of shape (pictures, channels, height, width) with 1, 3 or 4 channels, "
            f"got one of shape {values.shape}"
        )
    values = np.floor(np.nan_to_num(values, nan=255.0, posinf=255.0, neginf=0.0).clip(0, 255) + 0.5).astype(np.uint8)
    blue_green_red = [0, 1, 2, 3] if values.shape[1] == 1 else [2, 1, 0, 3]
    return values[:, blue_green_red[: values.shape[1]]].transpose(0, 2, 3, 1)
