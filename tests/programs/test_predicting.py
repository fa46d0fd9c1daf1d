"""Models applied to data by engines for large data, and to large files by programs that may be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.cli import main
from cntk.eval import Predictor

ROWS = np.random.default_rng(0).normal(size=(600, 3)).astype(np.float32)

SETTING = """
import sys
import numpy as np, pandas
import cntk as C

rows = np.random.default_rng(0).normal(size=(600, 3)).astype(np.float32)
frame = pandas.DataFrame(rows, columns=['x_0', 'x_1', 'x_2']).assign(id=range(600))
predictor = C.eval.Predictor('model.dnn', batch_rows=64, keep=['id'])

def require_equal(found):
    expected = predictor(frame)
    assert (found['id'].to_numpy() == expected['id'].to_numpy()).all()
    np.testing.assert_allclose(np.stack(found['z'].to_list()), np.stack(expected['z'].to_list()), rtol=1e-5, atol=1e-6)
"""

JOBLIB = """
from joblib import Parallel, delayed
parts = Parallel(n_jobs=2)(delayed(predictor)(frame[start:start + 200]) for start in range(0, 600, 200))
require_equal(pandas.concat(parts))
"""

DASK = """
import dask.dataframe
if __name__ == '__main__':
    data = dask.dataframe.from_pandas(frame, npartitions=3)
    results = data.map_partitions(predictor, meta=predictor(data._meta))
    require_equal(results.compute(scheduler='processes', num_workers=2))
"""

RAY = """
import ray
ray.init(num_cpus=1, include_dashboard=False, logging_level='error')
ray.data.DataContext.get_current().enable_progress_bars = False
data = ray.data.from_pandas(frame)
require_equal(data.map_batches(predictor, batch_size=200).to_pandas().sort_values('id'))
made = data.map_batches(C.eval.Predictor, fn_constructor_args=(predictor._model,), fn_constructor_kwargs={'keep': ['id']}, concurrency=1)
require_equal(made.to_pandas().sort_values('id'))
steps = C.sequence.input_variable(2, name='s')
recurrent = C.layers.Recurrence(C.layers.GRU(4), name='h')(steps)
sequences = [np.ones((n, 2), np.float32) for n in (3, 1, 2)]
found = ray.data.from_items([{'s': part} for part in sequences]).map_batches(C.eval.Predictor(recurrent)).take_all()
for one, other in zip(found, recurrent.eval(sequences)):
    np.testing.assert_allclose(one['h'], other, rtol=1e-5, atol=1e-6)
"""


def dense() -> C.Function:
    return C.layers.Dense(2, name="z")(C.input_variable(3, name="x"))


def run(program: str, folder: Path) -> None:
    (folder / "program.py").write_text(f"{SETTING}\n{program}\nif __name__ == '__main__':\n    print('done')\n")
    dense().save(folder / "model.dnn")
    done = subprocess.run([sys.executable, "program.py"], capture_output=True, text=True, timeout=300, check=False, cwd=folder)
    assert done.stdout.strip().endswith("done"), done.stdout + done.stderr


@pytest.mark.parametrize("engine", ["joblib", "dask"])
def test_processes_share_the_work(engine: str, tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="needs pandas")
    pytest.importorskip("joblib" if engine == "joblib" else "dask.dataframe", reason=f"needs {engine}")
    run(JOBLIB if engine == "joblib" else DASK, tmp_path)


@pytest.mark.slow
def test_ray(tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="needs pandas")
    pytest.importorskip("ray.data", reason="needs ray")
    run(RAY, tmp_path)


SLOW = """
import sys, time
import cntk as C
from cntk.eval import scoring
scoring.PIECE_BYTES = 1
C.eval.predict_file(C.eval.Predictor('model.dnn', batch_rows=50), 'data.npz', sys.argv[1], progress=lambda done, count: time.sleep(0.1))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_a_program_that_was_killed_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", x=ROWS)
    dense().save("model.dnn")
    pieces = tmp_path / "results.npz.pieces"
    process = subprocess.Popen([sys.executable, "-c", SLOW, "results.npz"])
    try:
        limit = time.monotonic() + 60
        while not pieces.exists() or len(list(pieces.iterdir())) < 4:
            assert process.poll() is None
            assert time.monotonic() < limit
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    assert not Path("results.npz").exists()
    there = len([piece for piece in pieces.glob("0*") if piece.suffix != ".tmp"])  # it may have been killed while it wrote another
    seen: list[int] = []
    C.eval.predict_file(Predictor("model.dnn", batch_rows=50), "data.npz", "results.npz", progress=lambda done, count: seen.append(done))
    assert seen[0] == 50 * (there + 1)
    with np.load("results.npz") as found:
        np.testing.assert_allclose(found["z"], Predictor("model.dnn")(ROWS), rtol=1e-5, atol=1e-6)
    assert sorted(os.listdir()) == ["data.npz", "model.dnn", "results.npz"]


PEAK = """
import resource, sys
import cntk as C
predictor = C.eval.Predictor('model.dnn')
predictor(__import__('numpy').ones((256, 1000)))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
C.eval.predict_file(predictor, sys.argv[1], sys.argv[2])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as Linux tells it")
@pytest.mark.parametrize(("source", "target"), [("npz", "npz"), ("parquet", "parquet")])
def test_memory_does_not_grow_with_the_file(source: str, target: str, tmp_path: Path) -> None:
    """160 MB of data, and as much as a piece holds in memory."""
    data = tmp_path / f"data.{source}"
    rows = np.random.default_rng(0).random((40_000, 1000), dtype=np.float32)
    if source == "parquet":
        pyarrow = pytest.importorskip("pyarrow", reason="needs PyArrow")
        parquet = pytest.importorskip("pyarrow.parquet", reason="needs PyArrow")
        column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows.ravel()), 1000)
        parquet.write_table(pyarrow.table({"x": column}), data, row_group_size=1000, use_dictionary=False, compression="none")
    else:
        np.savez(data, x=rows)
    C.layers.Dense(2, name="z")(C.input_variable(1000, name="x")).save(tmp_path / "model.dnn")
    arguments = [sys.executable, "-c", PEAK, str(data), str(tmp_path / f"results.{target}")]
    done: Any = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=True, cwd=tmp_path)
    assert int(done.stdout) < 80


def test_atis(real_data: Path, tmp_path: Path) -> None:
    """Slots of sentences, of a file in CNTK's text format, beside those that a minibatch source and ``eval`` give."""
    words = C.sequence.input_variable(943, is_sparse=True, name="query")
    layers = [C.layers.Embedding(20), C.layers.Recurrence(C.layers.LSTM(16)), C.layers.Dense(129, name="slots")]
    tagger = C.layers.Sequential(layers)(words)
    tagger.save(tmp_path / "tagger.dnn")
    results = tmp_path / "results.npz"
    assert main(["predict", str(tmp_path / "tagger.dnn"), str(real_data / "atis.test.ctf"), str(results), "--columns", "query=S0"]) == 0
    streams = C.io.StreamDefs(query=C.io.StreamDef(field="S0", shape=943, is_sparse=True))
    source = C.io.MinibatchSource(C.io.CTFDeserializer(str(real_data / "atis.test.ctf"), streams), randomize=False, max_sweeps=1)
    expected: list[Any] = []
    while minibatch := source.next_minibatch(2000):
        expected += tagger.eval({words: minibatch[source.streams.query]})
    with np.load(results) as found:
        assert found["sequence_lengths"].tolist() == [len(steps) for steps in expected]
        np.testing.assert_allclose(found["slots"], np.concatenate(expected), rtol=1e-4, atol=1e-5)
