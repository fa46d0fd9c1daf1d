"""The examples with sequences, on real data: each learns as well as CNTK 2.7 does with the very same program.

What CNTK 2.7 reached is noted beside each bound; initial values differ, so the numbers do a little.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest


@pytest.mark.slow
def test_words_of_queries_are_labelled(example: Callable[[str], ModuleType], real_data: Path) -> None:
    # CNTK 2.7, reading with its own reader: 4.7 and 4.8 %.
    assert example("atis").main([str(real_data)]) < 0.06


def test_words_of_queries_begin_to_be_labelled(example: Callable[[str], ModuleType], real_data: Path) -> None:
    # CNTK 2.7 with three seeds: 18.9, 19.0 and 19.1 %.  Without any training it would be over 99 %, with the commonest label alone 33 %.
    assert example("atis").main([str(real_data), "--passes", "1", "--words", "12000", "--rate", "0.02"]) < 0.23


def test_sequences_are_classified(example: Callable[[str], ModuleType], real_data: Path) -> None:
    loss, error = example("sequence_classification").main([str(real_data / "sequence-classification.ctf")])
    # CNTK 2.7: 0.600 and 22.1 %; the commonest class alone gives 45 %.
    assert loss < 0.8
    assert error < 0.28


@pytest.mark.slow
def test_words_are_pronounced(example: Callable[[str], ModuleType], real_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loss = example("pronunciation").main([str(real_data / "cmudict-0.7b.train-dev-1-21.ctf"), "--minibatches", "200"])
    # CNTK 2.7: 2.6; it begins at 4.2.
    assert loss < 2.8
    assert capsys.readouterr().out.count(" - ") == 8
