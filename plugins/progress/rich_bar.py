"""A progress bar for terminals and notebooks."""

from __future__ import annotations

import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ...core.common.launch import launched_rank
from .manual import average
from .printer import ProgressPrinter

if TYPE_CHECKING:
    from rich.console import Console


class RichProgressBar(ProgressPrinter):
    """Prints what :class:`ProgressPrinter` prints, above a bar that shows how far training or evaluation is.

    The bar has the samples of this epoch, their number per second and the time that is left, loss and metric on average since the epoch
    began, and the learning rate. It goes when the epoch is summed up, and its line takes its place. What the program prints meanwhile
    appears above the bar. Where the output is no terminal or notebook there are the lines alone, as of a :class:`ProgressPrinter`.

    The bar also goes when the program ends, when an error ends it, and by :meth:`close`, or at the end of a ``with`` statement.

    Args:
        freq, first, tag: as for :class:`ProgressPrinter`.
        rank: number of this worker, by default as ``mpiexec`` has it; those but 0 show nothing.
        num_epochs: number of epochs that training will take, where it is known.
        epoch_size: number of samples of an epoch; that of the epoch before where it is left out.
        test_freq, test_first, metric_is_pct: as for :class:`ProgressPrinter`.
        console: a ``rich.console.Console`` to show the bar on; rich's own where it is left out.

    Raises:
        ImportError: rich is not installed.
        ValueError: a frequency or number is negative.

    Example:
        >>> x, y = C.input_variable(1), C.input_variable(1)
        >>> loss = C.squared_error(C.layers.Dense(1, init=0)(x), y)
        >>> X = np.ones((64, 1), np.float32)
        >>> bar = C.logging.RichProgressBar(num_epochs=2, epoch_size=64)
        >>> summary = loss.train((X, 2 * X), parameter_learners=[C.sgd(loss.parameters, 0.1)], max_epochs=2, callbacks=[bar])
        Learning rate per minibatch: 0.1
        Finished Epoch[1 of 2]: loss = 2.720000 * 64, metric = 0.00% * 64 ...s (... samples/s);
        Finished Epoch[2 of 2]: loss = 0.352512 * 64, metric = 0.00% * 64 ...s (... samples/s);
    """

    def __init__(
        self,
        freq: int | None = None,
        first: int = 0,
        tag: str = "",
        rank: int | None = None,
        num_epochs: int | None = None,
        epoch_size: int | None = None,
        test_freq: int | None = None,
        test_first: int = 0,
        metric_is_pct: bool = True,
        console: Console | None = None,
    ) -> None:
        try:
            from .live import Bar, display_of
        except ImportError:
            raise ImportError("RichProgressBar needs the package rich: pip install 'opencntk[rich]'") from None
        super().__init__(freq, first, tag, None, rank, False, num_epochs, test_freq, test_first, metric_is_pct)
        self._epoch_size = epoch_size
        self._test_size: int | None = None
        self._learning_rates: dict[str, float] = {}
        display = None if self._is_silent else display_of(console)
        self._training_bar, self._test_bar = Bar(display), Bar(display)
        for bar in (self._training_bar, self._test_bar):
            weakref.finalize(self, bar.hide)

    def __enter__(self) -> RichProgressBar:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Take the bar away; the next minibatch brings it back."""
        self._training_bar.hide()
        self._test_bar.hide()

    def write(self, key: str, value: Any) -> None:
        """Print the line ``key: value``; a learning rate also stands beside the bar."""
        super().write(key, value)
        if key.startswith("Learning rate"):
            self._learning_rates[key] = value

    def update_training(self, samples: int, loss: float, metric: float) -> None:
        """Report a training minibatch: number of samples, sum of the losses and of the metrics."""
        super().update_training(samples, loss, metric)
        if self._training_bar.is_due():
            self._show_training()

    def update_test(self, samples: int, metric: float) -> None:
        """Report a test minibatch: number of samples and sum of the metrics."""
        super().update_test(samples, metric)
        if self._test_bar.is_due():
            test = self._test
            self._test_bar.show(f"{self.tag}Evaluation", test.samples, self._test_size, 0, self._metric(test.metric, test.samples))

    def on_write_training_summary(
        self,
        samples: int,
        updates: int,
        summaries: int,
        aggregate_loss: float,
        aggregate_metric: float | None,
        elapsed_milliseconds: int,
    ) -> None:
        """Print the line on an epoch, in place of the bar."""
        self._training_bar.hide()
        self._epoch_size = self._epoch_size or samples
        super().on_write_training_summary(samples, updates, summaries, aggregate_loss, aggregate_metric, elapsed_milliseconds)

    def on_write_test_summary(self, samples: int, updates: int, summaries: int, aggregate_metric: float, elapsed_milliseconds: int) -> None:
        """Print the line on a whole test, in place of the bar."""
        self._test_bar.hide()
        self._test_size = samples
        super().on_write_test_summary(samples, updates, summaries, aggregate_metric, elapsed_milliseconds)

    def _is_for_another(self, rank: int | None) -> bool:
        return bool(launched_rank() if rank is None else rank)

    def _show_training(self) -> None:
        training = self._training
        figures = [f"loss = {average(training.loss, training.samples):.6f}", self._metric(training.metric, training.samples)]
        figures += [f"learning rate = {rate:g}" for rate in self._learning_rates.values()]
        title, later = f"{self.tag}Epoch {training.summaries + 1}", 0
        if self.num_epochs is not None:
            title += f" of {self.num_epochs}"
            later = max(self.num_epochs - training.summaries - 1, 0) * (self._epoch_size or 0)
        self._training_bar.show(title, training.samples, self._epoch_size, later, ", ".join(figures))
