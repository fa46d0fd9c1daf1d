"""Sequences in rows: picked, sliced and put together as one does with lists."""

from __future__ import annotations

import multiprocessing
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from cntk.core.common.lock import ForkSafeLock
from cntk.core.types.csr import CsrMatrix
from cntk.readers.rows import Picks, StreamData, ranges

WIDTH = 3
ROW = st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=WIDTH, max_size=WIDTH)
SEQUENCES = st.lists(st.lists(ROW, max_size=3), min_size=1, max_size=5)


def data_of(sequences: list[list[list[float]]], form: str) -> StreamData:
    rows: Any = np.array([row for sequence in sequences for row in sequence], np.float32).reshape(-1, WIDTH)
    if form != "dense":
        matrix = csr_matrix(rows)
        rows = CsrMatrix(matrix.data, matrix.indices, matrix.indptr, WIDTH) if form == "own" else matrix
    return StreamData.of_lengths(rows, [len(sequence) for sequence in sequences])


def listed(data: StreamData) -> list[list[list[float]]]:
    rows = data.rows if isinstance(data.rows, np.ndarray) else data.rows.toarray()
    assert rows.dtype == np.float32
    return [rows[start:stop].tolist() for start, stop in zip(data.starts[:-1], data.starts[1:], strict=True)]


FORMS = pytest.mark.parametrize("form", ["dense", "own", "scipy"])


@FORMS
@given(st.data())
def test_sequences_are_picked_out_of_several_parts(form: str, draw: Any) -> None:
    parts = draw.draw(st.lists(SEQUENCES, min_size=1, max_size=3))
    places = [(part, number) for part, sequences in enumerate(parts) for number in range(len(sequences))]
    chosen = draw.draw(st.lists(st.sampled_from(places), min_size=1, max_size=8))
    picks = Picks(np.array([part for part, _ in chosen]), np.array([number for _, number in chosen]))
    found = picks.of([data_of(parts[part], form) for part in picks.parts])
    assert listed(found) == [parts[part][number] for part, number in chosen]


@FORMS
@given(SEQUENCES, st.integers(0, 5), st.integers(0, 5))
def test_sequences_are_sliced_and_copied(form: str, sequences: list[list[list[float]]], start: int, count: int) -> None:
    data = data_of(sequences, form)
    start = min(start, len(sequences) - 1)
    taken = data.take(slice(start, min(start + count, len(sequences))))
    assert listed(taken) == sequences[start : start + count]
    taken_data = taken.rows if form == "dense" else taken.rows.data
    assert not np.shares_memory(taken_data, data.rows if form == "dense" else data.rows.data)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4))))
def test_ranges_count_up(pairs: list[tuple[int, int]]) -> None:
    starts, lengths = (np.array([pair[i] for pair in pairs], np.int64) for i in (0, 1))
    assert ranges(starts, lengths).tolist() == [start + i for start, length in pairs for i in range(length)]


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="there are no forked processes here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_lock_is_open_in_a_forked_process() -> None:
    lock, held, done = ForkSafeLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait(60)

    def acquire() -> None:
        with lock:
            pass

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    child = multiprocessing.get_context("fork").Process(target=acquire)
    child.start()
    child.join(30)
    done.set()
    thread.join()
    assert child.exitcode == 0
