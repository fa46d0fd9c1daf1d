"""Training and evaluation logged to a run of MLflow."""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from numbers import Real
from time import monotonic, time
from types import TracebackType
from typing import Any

import numpy as np

from .base import NEVER, ProgressWriter, Span, Sums
from .manual import average

LARGEST_BATCH = 1000
"""Values that MLflow takes at a time."""
SECONDS_PER_BATCH = 5.0


class MLflowProgressWriter(ProgressWriter):
    """Logs loss, metric, learning rates and test results to a run of MLflow.

    It logs to the active run, or starts one of its own, which it ends by :meth:`close`, at the end of a ``with`` statement or with the
    program. Where runs are kept, and the experiment that they belong to, is told to MLflow: ``mlflow.set_tracking_uri`` and
    ``mlflow.set_experiment``, or its environment variables. Values are sent together: every few seconds, when training or a test is
    summed up, and by :meth:`flush`.

    The names are those that TensorBoard shows: ``minibatch/avg_loss`` and ``minibatch/avg_metric``, averages since the last time, and
    ``minibatch/test_avg_metric``, by the number of the minibatch; ``summary/avg_loss`` and ``summary/avg_metric``, by the number of the
    summary; ``summary/test_avg_metric`` where nothing has been trained; and ``Learning rate per minibatch`` or the like where it changes.

    Args:
        freq: how often training is logged: after every *freq* minibatches; 0 for minibatches 1, 3, 7, 15, …; None for summaries only.
        run_name: name of the run, where one is started.
        params: what is logged as the run's parameters, such as the size of the network.
        rank: number of this worker; those but 0 log nothing.

    Attributes:
        run_id: the run's id; None where nothing is logged.

    Raises:
        ImportError: MLflow is not installed.
        ValueError: *freq* is negative.

    Example:
        >>> import mlflow                                                    # doctest: +SKIP
        >>> mlflow.set_experiment('digits')                                  # doctest: +SKIP
        >>> with C.logging.MLflowProgressWriter(freq=10) as writer:          # doctest: +SKIP
        ...     loss.train(data, parameter_learners=[learner], callbacks=[writer])
    """

    def __init__(
        self, freq: int | None = None, run_name: str | None = None, params: Mapping[str, Any] | None = None, rank: int | None = None
    ) -> None:
        super().__init__(NEVER if freq is None else freq)
        self._lengths: dict[str, int] = {}
        self._run = None if rank else _Run(run_name)
        self.run_id = None if self._run is None else self._run.id
        if self._run is not None:
            weakref.finalize(self, self._run.end, "FINISHED")
            self._run.log_params(params or {})

    def __enter__(self) -> MLflowProgressWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._run is not None:
            self._run.end("FINISHED" if kind is None else "FAILED")

    def close(self) -> None:
        """Send what has been logged, and end the run if the writer started it."""
        if self._run is not None:
            self._run.end("FINISHED")

    def flush(self) -> None:
        """Send what has been logged."""
        if self._run is not None:
            self._run.flush()

    def log(self, name: str, values: float | Sequence[float]) -> None:
        """Log a value or a list of values under a name, each as a step after those logged before.

        A list is also drawn, where matplotlib is installed; the figure is an artifact of the run.

        Args:
            name: name of the metric; MLflow takes letters, digits, blanks and ``_ - . : /``.
            values: the values.
        """
        if self._run is None:
            return
        listed = np.ravel(np.asarray(values, dtype=float)).tolist()
        first = self._lengths.get(name, 0)
        self._lengths[name] = first + len(listed)
        for step, value in enumerate(listed, first):
            self._run.log(name, value, step)
        self._run.flush()
        if np.ndim(values) and find_spec("matplotlib"):
            self._run.log_figure(_curve(name, range(first, first + len(listed)), listed), f"{re.sub(r'[:/]', '_', name)}.png")

    def write(self, key: str, value: Any) -> None:
        """Log a number, such as a learning rate, at the current minibatch; anything else as a tag of the run."""
        if self._run is not None:
            if isinstance(value, Real):
                self._run.log(key, float(value), self.total_training_updates() + 1)
            else:
                self._run.set_tag(key, value)

    def on_write_training_update(self, samples: Span, updates: Span, aggregate_loss: Sums, aggregate_metric: Sums) -> None:
        """Log the averages since the last time."""
        if self._run is not None:
            count, step = samples[1] - samples[0], self.total_training_updates()
            self._run.log("minibatch/avg_loss", average(aggregate_loss[1] - aggregate_loss[0], count), step)
            self._run.log("minibatch/avg_metric", average(aggregate_metric[1] - aggregate_metric[0], count), step)

    def on_write_training_summary(
        self,
        samples: int,
        updates: int,
        summaries: int,
        aggregate_loss: float,
        aggregate_metric: float,
        elapsed_milliseconds: int,
    ) -> None:
        """Log the averages of an epoch."""
        if self._run is not None:
            self._run.log("summary/avg_loss", average(aggregate_loss, samples), summaries)
            self._run.log("summary/avg_metric", average(aggregate_metric, samples), summaries)
            self._run.flush()

    def on_write_test_summary(self, samples: int, updates: int, summaries: int, aggregate_metric: float, elapsed_milliseconds: int) -> None:
        """Log the result of a test."""
        if self._run is not None:
            trained = self.total_training_updates()
            name, step = ("minibatch/test_avg_metric", trained) if trained else ("summary/test_avg_metric", summaries)
            self._run.log(name, average(aggregate_metric, samples), step)
            self._run.flush()


class _Run:
    """A run of MLflow: the active one, or one that is started. Metrics are collected and sent in batches."""

    def __init__(self, name: str | None) -> None:
        try:
            import mlflow
        except ImportError:
            raise ImportError("MLflowProgressWriter needs MLflow: pip install 'opencntk[mlflow]'") from None
        active = mlflow.active_run()
        self._is_ours = active is None
        self._client = mlflow.MlflowClient()
        self.id = (active or mlflow.start_run(run_name=name)).info.run_id
        self._metrics: list[Any] = []
        self._sent = monotonic()

    def log(self, name: str, value: float, step: int) -> None:
        from mlflow.entities import Metric

        self._metrics.append(Metric(name, value, int(time() * 1000), step))
        if len(self._metrics) >= LARGEST_BATCH or monotonic() - self._sent > SECONDS_PER_BATCH:
            self.flush()

    def flush(self) -> None:
        metrics, self._metrics, self._sent = self._metrics, [], monotonic()
        if metrics:
            self._client.log_batch(self.id, metrics=metrics)

    def log_params(self, params: Mapping[str, Any]) -> None:
        for name, value in params.items():
            self._client.log_param(self.id, name, value)

    def set_tag(self, name: str, value: Any) -> None:
        self._client.set_tag(self.id, name, str(value))

    def log_figure(self, figure: Any, name: str) -> None:
        self._client.log_figure(self.id, figure, name)

    def end(self, status: str) -> None:
        """Send what is left and, if the run was started here, end it; calls after the first do only the former."""
        self.flush()
        if self._is_ours:
            import mlflow

            self._is_ours = False
            active = mlflow.active_run()
            if active is not None and active.info.run_id == self.id:
                mlflow.end_run(status)
            else:
                self._client.set_terminated(self.id, status)


def _curve(name: str, steps: Iterable[int], values: Sequence[float]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5))
    axes = figure.add_subplot()
    axes.plot(np.asarray(steps), np.asarray(values))
    axes.set_xlabel("step")
    axes.set_ylabel(name, parse_math=False)
    return figure
