"""A minibatch source in any order of minibatches, checkpoints and restores, against a list of sequences."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cntk.io import INFINITELY_REPEAT, CTFDeserializer, MinibatchSource, StreamDef, StreamDefs

Taken = list[tuple[tuple[float, ...], float]]
"""Sequences that a source has given, each with its label."""


class Reading(RuleBasedStateMachine):
    """In the order of the file, or shuffled anew in each sweep, which has every sequence once."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @initialize(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=12), randomize=st.booleans(), sweeps=st.sampled_from([1, 2, None]))
    def begin(self, lengths: list[int], randomize: bool, sweeps: int | None) -> None:
        steps = iter(range(sum(lengths)))
        self.sequences: Taken = [(tuple(float(next(steps)) for _ in range(length)), float(-i)) for i, length in enumerate(lengths)]
        lines = [
            f"{i} |x {step:g}" + (f" |y {label:g}" if first else "")
            for i, (values, label) in enumerate(self.sequences)
            for step, first in zip(values, [True] + [False] * len(values), strict=False)
        ]
        (self.folder / "data.ctf").write_text("\n".join(lines) + "\n")
        self.randomize, self.sweeps = randomize, sweeps
        self.taken: Taken = []
        self.saved: tuple[dict[str, Any], Taken] | None = None
        self.has_ended = False
        self._open()

    def _open(self) -> None:
        streams = StreamDefs(x=StreamDef(field="x", shape=1), y=StreamDef(field="y", shape=1))
        self.source = MinibatchSource(
            CTFDeserializer(str(self.folder / "data.ctf"), streams),
            randomize=self.randomize,
            max_sweeps=INFINITELY_REPEAT if self.sweeps is None else self.sweeps,
        )

    @property
    def _limit(self) -> int | None:
        return None if self.sweeps is None else self.sweeps * len(self.sequences)

    @rule(size=st.integers(1, 20))
    def read(self, size: int) -> None:
        """As many whole sequences as have that many steps, one at least, across the end of a sweep as well."""
        found = self.source.next_minibatch(size)
        if not found:
            assert self._limit is not None
            assert len(self.taken) == self._limit
            self.has_ended = True
            return
        info = self.source.streams
        values, labels = (found[info[name]].as_sequences() for name in ("x", "y"))
        new = [(tuple(map(float, x.reshape(-1))), float(y.reshape(()))) for x, y in zip(values, labels, strict=True)]
        assert new
        steps = sum(len(x) for x, _ in new)
        assert len(new) == 1 or steps <= size
        assert found[info["x"]].number_of_samples == steps
        before, count = len(self.taken), len(self.sequences)
        self.taken = [*self.taken, *new]
        assert found[info["x"]].end_of_sweep == (before // count != len(self.taken) // count)

    @rule()
    def save(self) -> None:
        self.saved = self.source.get_checkpoint_state(), self.taken

    @precondition(lambda self: self.saved is not None)
    @rule(anew=st.booleans())
    def restore(self, anew: bool) -> None:
        """What follows is what followed then."""
        state, taken = self.saved  # type: ignore[misc]
        follows = self.taken[len(taken) :] if self.taken[: len(taken)] == taken else []
        if anew:
            self._open()
        self.source.restore_from_checkpoint(state)
        self.taken, self.has_ended = taken, False
        for _ in follows[:3]:
            self.read(1)
        assert follows[: len(self.taken) - len(taken)] == self.taken[len(taken) :][: len(follows)]

    @invariant()
    def every_sweep_has_every_sequence_once(self) -> None:
        count = len(self.sequences)
        for begin in range(0, len(self.taken), count):
            sweep = self.taken[begin : begin + count]
            if self.randomize:
                assert not Counter(sweep) - Counter(self.sequences)
            else:
                assert sweep == self.sequences[: len(sweep)]
        assert self._limit is None or len(self.taken) <= self._limit


TestReading = Reading.TestCase
TestReading.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
