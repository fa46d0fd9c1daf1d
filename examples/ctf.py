"""Reading CNTK's text format into lists of sequences, and packing sequences into minibatches.

A line holds one sample of one or more streams, ``12 |x 560:1 |y 0 0 1 |# comment``: numbers of a dense sample one after another, those
of a sparse one as ``index:value``.  Lines that begin with the same number and stand together make a sequence; a line without a number is
a sequence of its own.  A stream may have fewer samples in a sequence than others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix


def read_ctf(path: str | Path, **sizes: int) -> dict[str, list[Any]]:
    """Read streams from a file in CNTK's text format.

    Args:
        path: the file.
        sizes: the streams to read, each with the number of elements of a sample; other streams are passed over.

    Returns:
        By the name of the stream, one CSR matrix ``(samples, elements)`` for each sequence.

    Raises:
        ValueError: a line cannot be read; the message names it and says what was expected.
    """
    streams = {name: _Stream(size) for name, size in sizes.items()}
    current = None
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            start, *fields = line.rstrip().split("|")
            if not fields:
                continue
            key = start.strip()
            if not key or key != current:
                current = key
                for stream in streams.values():
                    stream.begin()
            for field in fields:
                name, _, sample = field.partition(" ")
                if name not in streams:
                    continue
                try:
                    streams[name].add(sample)
                except ValueError as error:
                    raise ValueError(f"{path}, line {number}: stream {name}: {error}") from None
    return {name: stream.sequences() for name, stream in streams.items()}


def minibatches(lengths: Sequence[int], size: int, seed: int) -> Iterator[list[int]]:
    """Numbers of the sequences of one minibatch after another, without end, in a new order in each sweep through the data.

    Args:
        lengths: number of samples of each sequence.
        size: samples that a minibatch holds at most; a sequence that is longer makes a minibatch of its own.
        seed: chooses the orders.
    """
    random = np.random.RandomState(seed)
    chosen: list[int] = []
    room = size
    while True:
        for number in random.permutation(len(lengths)):
            if chosen and lengths[number] > room:
                yield chosen
                chosen, room = [], size
            chosen.append(number)
            room -= lengths[number]


class _Stream:
    """What has been read of a stream: elements of samples, where each sample ends and where each sequence begins."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.indices: list[int] = []
        self.values: list[float] = []
        self.ends = [0]
        self.starts: list[int] = []

    def begin(self) -> None:
        """Begin a sequence."""
        self.starts.append(len(self.ends) - 1)

    def add(self, sample: str) -> None:
        """Add a sample to the last sequence."""
        entries = sample.split()
        if ":" in sample:
            pairs = [entry.partition(":") for entry in entries]
            self.indices += [int(index) for index, _, _ in pairs]
            self.values += [float(value) for _, _, value in pairs]
        elif len(entries) == self.size:
            self.indices += range(self.size)
            self.values += map(float, entries)
        elif entries:
            raise ValueError(f"{len(entries)} numbers given, expected {self.size}, or pairs index:value")
        if self.ends[-1] < len(self.indices) and not 0 <= max(self.indices[self.ends[-1] :]) < self.size:
            raise ValueError(f"index {max(self.indices[self.ends[-1] :])} given, expected 0 … {self.size - 1}")
        self.ends.append(len(self.indices))

    def sequences(self) -> list[Any]:
        """All sequences, a CSR matrix each."""
        values = np.array(self.values, np.float32)
        rows = csr_matrix((values, self.indices, self.ends), (len(self.ends) - 1, self.size))
        return [rows[start:end] for start, end in zip(self.starts, [*self.starts[1:], rows.shape[0]], strict=True)]
