"""Workers that share a text file read what they read in CNTK 2.7: tests/data/partitions.json has sequences and ends of sweeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cntk.io import CTFDeserializer, MinibatchSource, StreamDef, StreamDefs
from cntk.readers.partitions import Share
from cntk.readers.reader import handed_over

CASES = json.loads((Path(__file__).parents[2] / "data" / "partitions.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("number", range(len(CASES)))
def test_workers_read_what_they_read_in_cntk(tmp_path: Path, number: int) -> None:
    case = CASES[number]
    file = tmp_path / "sequences.ctf"
    file.write_text("".join(f"{i:04} |x {i + 1:04}\n" * length for i, length in enumerate(case["lengths"])), encoding="utf-8")
    workers = len(case["served"])
    for rank, expected in enumerate(case["served"]):
        deserializer = CTFDeserializer(str(file), StreamDefs(x=StreamDef(field="x", shape=1)))
        if case["chunk_lines"]:
            deserializer["chunkSizeInBytes"] = case["chunk_lines"] * len("0000 |x 0001\n")
        found = served(MinibatchSource(deserializer, **case["arguments"]), case["size"], num_data_partitions=workers, partition_index=rank)
        assert [sequences for sequences, _ in found] == [sequences for sequences, _ in expected]
        if case["arguments"].get("randomize", True):
            assert [ends for _, ends in found] == [ends for _, ends in expected]


def served(source: MinibatchSource, size: int, **part: Any) -> list[tuple[list[int], bool]]:
    found = []
    while minibatch := source.next_minibatch(size, **part):
        data = minibatch[source.streams.x]
        found.append(([int(sequence[0, 0]) - 1 for sequence in data.as_sequences()], data.end_of_sweep))
    return found


def test_what_is_handed_over_to_another_number_of_workers() -> None:
    states: list[Any] = [{"round": rank, "sources": [{"minibatchSourcePosition": 5 - rank, "partition": [2, rank]}]} for rank in (0, 1)]
    found = handed_over(states[1], states, Share(3, 1))
    shared = [state["sources"][0] for state in states]
    assert found == {"round": 1, "sources": [{"minibatchSourcePosition": 4, "partition": [3, 1], "workers": shared}]}


def test_sources_that_workers_have_for_themselves_are_handed_over_as_they_are() -> None:
    states: list[Any] = [{"source": {"minibatchSourcePosition": 5 + rank}} for rank in (0, 1)]
    assert handed_over(states[0], states, Share(3, 2)) == states[0]
