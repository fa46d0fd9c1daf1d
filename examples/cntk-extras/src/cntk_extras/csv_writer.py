"""CSVWriter: a progress writer of our own."""

from __future__ import annotations

import csv
from pathlib import Path

from cntk.extend import ProgressWriter


class CSVWriter(ProgressWriter):
    """Writes the average loss and metric of every *freq* minibatches as a line of a CSV file.

    Columns are ``minibatch`` (the last one averaged over), ``samples``, ``loss`` and ``metric``.

    Args:
        path: the file, which is written anew.
        freq: number of minibatches a line.
    """

    def __init__(self, path: str | Path, freq: int = 1) -> None:
        super().__init__(freq, 0, freq, 0, freq, 0)
        self._path = Path(path)
        self._write("w", ["minibatch", "samples", "loss", "metric"])

    def on_write_training_update(
        self,
        samples: tuple[int, int],
        updates: tuple[int, int],
        aggregate_loss: tuple[float, float],
        aggregate_metric: tuple[float, float],
    ) -> None:
        """Write a line; every argument is a pair: the running total at the line before, and now."""
        count = samples[1] - samples[0]
        loss = (aggregate_loss[1] - aggregate_loss[0]) / count
        metric = (aggregate_metric[1] - aggregate_metric[0]) / count
        self._write("a", [updates[1], count, f"{loss:.6g}", f"{metric:.6g}"])

    def _write(self, mode: str, row: list[object]) -> None:
        with self._path.open(mode, newline="", encoding="utf-8") as file:
            csv.writer(file).writerow(row)
