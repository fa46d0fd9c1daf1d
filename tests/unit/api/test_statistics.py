"""Means and deviations of a source's data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk import statistics
from cntk.cntk_py import compute_input_per_dim_means_and_inv_std_devs


def source(path: Path, lines: list[str], **options: Any) -> Any:
    path.write_text("\n".join(lines))
    streams = C.io.StreamDefs(a=C.io.StreamDef("a", 2), b=C.io.StreamDef("b", 3, is_sparse=True))
    return C.io.MinibatchSource(C.io.CTFDeserializer(str(path), streams), max_sweeps=1, **options)


@pytest.mark.parametrize("rows", [1, 3, 4096])
@pytest.mark.parametrize("randomize", [True, False])
def test_mean_and_deviation_are_those_of_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, randomize: bool) -> None:
    monkeypatch.setattr(statistics, "ROWS", rows)
    data = np.random.default_rng(1).normal(100, 0.5, size=(17, 2)).astype(np.float32)
    lines = [f"{number // 3} |a {a:.9g} {b:.9g} |b 1:1" for number, (a, b) in enumerate(data)]
    made = source(tmp_path / "data.ctf", lines, randomize=randomize)
    found = {made.streams.a: (None, None)}
    compute_input_per_dim_means_and_inv_std_devs(made, found)
    means, inverses = (view.asarray() for view in found[made.streams.a])
    np.testing.assert_allclose(means, data.mean(axis=0, dtype=float), rtol=1e-6)
    np.testing.assert_allclose(inverses, 1 / data.std(axis=0, dtype=float), rtol=1e-5)
    assert not made.next_minibatch(1)


def test_what_is_always_the_same_has_a_small_deviation(tmp_path: Path) -> None:
    made = source(tmp_path / "data.ctf", [f"{number} |a {number} 5 |b 1:1" for number in range(8)])
    found = {made.streams.a: (None, None)}
    compute_input_per_dim_means_and_inv_std_devs(made, found)
    means, inverses = (view.asarray() for view in found[made.streams.a])
    assert means.tolist() == [3.5, 5]
    np.testing.assert_allclose(inverses, [0.43643576, 1e5], rtol=1e-6)


def test_what_has_no_statistics(tmp_path: Path) -> None:
    made = source(tmp_path / "data.ctf", ["0 |a 1 2 |b 1:1"])
    with pytest.raises(ValueError, match="statistics of stream 'b': it is sparse"):
        compute_input_per_dim_means_and_inv_std_devs(made, {made.streams.b: (None, None)})
    made.next_minibatch(5)
    with pytest.raises(ValueError, match="stream 'a': the source gave no samples"):
        compute_input_per_dim_means_and_inv_std_devs(made, {made.streams.a: (None, None)})
