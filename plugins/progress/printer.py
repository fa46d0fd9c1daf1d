"""The progress printer: lines of text about training and evaluation, on the screen or in a file."""

from __future__ import annotations

import os
import time
from typing import Any

from ...core.common.launch import launched_rank
from ...core.types.arguments import checked
from .base import NEVER, ProgressWriter, Span, Sums
from .manual import ManualProgress, average

HEADER = (
    " average      since    average      since      examples",
    "    loss       last     metric       last              ",
    " ------------------------------------------------------",
)
EPOCHS_IF_UNKNOWN = 300
HEARTBEAT_SECONDS = 10.0


class ProgressPrinter(ManualProgress, ProgressWriter):
    """Prints loss and metric as training and evaluation go on.

    Args:
        freq: how often training is printed: after every *freq* minibatches; 0 for a table with lines at minibatches 1, 3, 7,
            15, …; None for a line per epoch only.
        first: number of minibatches at the start of each epoch that are printed one by one.
        tag: put in brackets before the figures of an epoch.
        log_to_file: name of a file that takes the lines instead of the screen; it is overwritten.
        rank: number of this worker; it is added to the file's name. Without it the main worker alone prints.
        gen_heartbeat: whether to print a sign of life to the screen, every 10 seconds at most.
        num_epochs: number of epochs that training will take, where it is known.
        test_freq, test_first: as *freq* and *first*, for evaluation.
        metric_is_pct: whether the metric is a fraction to be printed in per cent.
        distributed_freq, distributed_first: as *freq* and *first*, for the synchronisations of distributed training.

    Raises:
        ValueError: a frequency or number is negative.

    Example:
        >>> printer = C.logging.ProgressPrinter(freq=2)
        >>> for loss in (8.0, 4.0):
        ...     printer.update_training(samples=10, loss=loss, metric=1.0)
         Minibatch[   1-   2]: loss = 0.600000 * 20, metric = 10.00% * 20;
    """

    @checked
    def __init__(
        self,
        freq: int | None = None,
        first: int = 0,
        tag: str = "",
        log_to_file: str | os.PathLike[str] | None = None,
        rank: int | None = None,
        gen_heartbeat: bool = False,
        num_epochs: int | None = None,
        test_freq: int | None = None,
        test_first: int = 0,
        metric_is_pct: bool = True,
        distributed_freq: int | None = None,
        distributed_first: int = 0,
    ) -> None:
        ProgressWriter.__init__(self, freq, first, test_freq, test_first, distributed_freq, distributed_first)
        ManualProgress.__init__(self)
        self.freq = NEVER if freq is None else freq
        self.first = first
        self.test_freq = NEVER if test_freq is None else test_freq
        self.tag = f"[{tag}] " if tag else ""
        self.log_to_file = log_to_file
        self.gen_heartbeat = gen_heartbeat
        self.num_epochs = num_epochs
        self.metric_is_pct = metric_is_pct
        self._heartbeat_time = -HEARTBEAT_SECONDS
        self.logfilename = None if log_to_file is None else os.fspath(log_to_file) + ("" if rank is None else f"rank{rank}")
        self._is_silent = self._is_for_another(rank)
        if self.logfilename is not None and not self._is_silent:
            self._begin_file(self.logfilename)
        if freq == 0:
            for line in HEADER:
                self.log(line)

    def log(self, message: str) -> None:
        """Print a line, to the screen or to the file."""
        if self._is_silent:
            return
        if self.logfilename is None:
            print(message)
        else:
            with open(self.logfilename, "a") as file:
                file.write(message + "\n")

    def write(self, key: str, value: Any) -> None:
        """Print the line ``key: value``."""
        self.log(f"{key}: {value}")

    def end_progress_print(self, msg: str = "") -> None:
        """Print that training has ended and, in a file, *msg*."""
        self.log("CNTKCommandTrainEnd: train")
        if msg and self.logfilename is not None:
            self.log(msg)

    def on_write_training_update(
        self, samples: Span, updates: Span | None, aggregate_loss: Sums | None, aggregate_metric: Sums | None
    ) -> None:
        """Print a line on the minibatches since the last one; without loss or metric where that is None."""
        self._print_update(samples, updates, aggregate_loss, aggregate_metric, self.freq, "")

    def on_write_test_update(self, samples: Span, updates: Span, aggregate_metric: Sums) -> None:
        """Print a line on the test minibatches since the last one."""
        self._print_update(samples, updates, None, aggregate_metric, self.test_freq, "Evaluation ")

    def on_write_training_summary(
        self,
        samples: int,
        updates: int,
        summaries: int,
        aggregate_loss: float,
        aggregate_metric: float | None,
        elapsed_milliseconds: int,
    ) -> None:
        """Print the line on an epoch, unless training is printed as a table; without metric where it is None."""
        if self.freq == 0:
            return
        of_epochs = "" if self.num_epochs is None else f" of {self.num_epochs}"
        figures = f"loss = {average(aggregate_loss, samples):.6f} * {samples}"
        if aggregate_metric is not None:
            figures += f", {self._metric(aggregate_metric, samples)} * {samples}"
        seconds = elapsed_milliseconds / 1000
        speed = average(samples, seconds)
        self.log(f"Finished Epoch[{summaries}{of_epochs}]: {self.tag}{figures} {seconds:.3f}s ({speed:5.1f} samples/s);")

    def on_write_test_summary(self, samples: int, updates: int, summaries: int, aggregate_metric: float, elapsed_milliseconds: int) -> None:
        """Print the line on a whole test."""
        self.log(f"Finished Evaluation [{summaries}]: Minibatch[1-{updates}]: {self._metric(aggregate_metric, samples)} * {samples};")

    def on_write_distributed_sync_update(self, samples: Span, updates: Span, aggregate_metric: Sums) -> None:
        """Print a line on the synchronisations since the last one."""
        syncs, elapsed = updates[1] - updates[0], samples[1] - samples[0]
        self.log(f"Distributed training: #Syncs elapsed = {syncs}, #Samples elapsed = {elapsed}")

    def on_training_update_end(self) -> None:
        """Print a sign of life, if that is wanted and due."""
        if self.gen_heartbeat:
            now = time.monotonic()
            if now - self._heartbeat_time >= HEARTBEAT_SECONDS:
                self._heartbeat_time = now
                print("PROGRESS: 0.00%")

    def _is_for_another(self, rank: int | None) -> bool:
        """Whether another worker is to print."""
        return rank is None and launched_rank() > 0

    def _begin_file(self, name: str) -> None:
        print(f"Redirecting log to file {name}")
        with open(name, "w") as file:
            file.write(name + "\n")
        epochs = EPOCHS_IF_UNKNOWN if self.num_epochs is None else self.num_epochs
        self.log(f"CNTKCommandTrainInfo: train : {epochs}")
        self.log(f"CNTKCommandTrainInfo: CNTKNoMoreCommands_Total : {epochs}")
        self.log("CNTKCommandTrainBegin: train")

    def _print_update(self, samples: Span, updates: Span | None, loss: Sums | None, metric: Sums | None, frequency: int, name: str) -> None:
        if frequency == 0 or updates is None:
            self.log(f" {_columns(loss, samples)}{_columns(metric, samples)} {samples[1]:10d}")
            return
        count = samples[1] - samples[0]
        figures = []
        if loss is not None:
            figures.append(f"loss = {average(loss[1] - loss[0], count):.6f} * {count}")
        if metric is not None:
            figures.append(f"{self._metric(metric[1] - metric[0], count)} * {count}")
        self.log(f" {name}Minibatch[{updates[0] + 1:4d}-{updates[1]:4d}]: {', '.join(figures)};")

    def _metric(self, metric: float, samples: int) -> str:
        value = average(metric, samples)
        return f"metric = {value * 100.0:.2f}%" if self.metric_is_pct else f"metric = {value:.6f}"


def _columns(sums: Sums | None, samples: Span) -> str:
    """The two columns of the table that show averages since the start and since the last line."""
    if sums is None:
        return " " * 22
    since_last = average(sums[1] - sums[0], samples[1] - samples[0])
    return f"{average(sums[1], samples[1]):8.3g}   {since_last:8.3g}   "
