"""Functions in other processes, by ``multiprocessing`` and joblib."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import multiprocessing, sys
import numpy as np
import cntk as C

class Twice(C.ops.functions.UserFunction):
    def infer_outputs(self):
        x = self.inputs[0]
        return [C.output_variable(x.shape, x.dtype, x.dynamic_axes)]
    def forward(self, x, device=None, outputs_to_retain=None):
        return None, self.factor * x
    def backward(self, state, gradient):
        return self.factor * gradient

def evaluate(task):
    model, data = task
    return model.eval(data)

def train(task):
    (features, labels), model, loss, learner, data = task
    trainer = C.Trainer(model, loss, [learner])
    for x, y in data:
        trainer.train_minibatch({features: x, labels: y})
    return model, learner

def main(method):
    x, y = C.input_variable(3), C.input_variable(1)
    double = Twice([x])
    double.factor = 2
    model = C.layers.Dense(1)(C.user_function(double))
    loss = C.squared_error(model, y)
    learner = C.momentum_sgd(model.parameters, 0.01, 0.9)
    data = [(np.full((4, 3), i, np.float32), np.ones((4, 1), np.float32)) for i in (1, 2)]
    train(((x, y), model, loss, learner, data))
    with multiprocessing.get_context(method).Pool(2) as pool:
        results = pool.map(evaluate, [(model, data[i][0]) for i in range(2)])
        for found, (given, _) in zip(results, data):
            assert np.array_equal(found, model.eval(given))
        trained, its_learner = pool.apply(train, (((x, y), model, loss, learner, data),))
    train(((x, y), model, loss, learner, data))
    assert trained.parameters == its_learner.parameters
    assert all(np.array_equal(p.value, q.value) for p, q in zip(trained.parameters, model.parameters))
    print('done')

if __name__ == '__main__':
    main(sys.argv[1])
"""


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_pools_of_processes(method: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(program), method], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.strip() == "done", done.stderr


JOBLIB = """
import numpy as np
from joblib import Parallel, delayed, dump, load
import cntk as C

x = C.input_variable(3)
model = C.layers.Dense(300)(x)

class Predictor:
    def __init__(self, model):
        self.model = model
    def __call__(self, data):
        return self.model.eval(data) + 1

def make(scale):
    return lambda data: scale * model.eval(data)

data = np.ones((2, 3), np.float32)
predict, scaled = Predictor(model), make(2)
for job in (predict, scaled):
    for found in Parallel(n_jobs=2)(delayed(job)(data) for _ in range(2)):
        assert np.array_equal(found, job(data))
dump(model, 'model.joblib')
again = load('model.joblib', mmap_mode='r')
again.parameters[0].value = again.parameters[0].value + 1
assert np.array_equal(load('model.joblib').eval(data), model.eval(data))
print('done')
"""


def test_joblib(tmp_path: Path) -> None:
    pytest.importorskip("joblib", reason="needs joblib")
    done: Any = subprocess.run([sys.executable, "-c", JOBLIB], capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path)
    assert done.stdout.strip() == "done", done.stderr
