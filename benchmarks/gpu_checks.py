"""Whether a GPU is right where tests do not look: real data, long runs, and memory that is short.

    python benchmarks/gpu_checks.py [--device gpu] [--out gpu_checks.json] [--only digits ...]

Each check runs in turn, and its result is written at once.  ``--device cpu`` takes the same trainings on the CPU: initial values and the
order of data are the same, so that the curves can be laid side by side.  Real data is in the folder that CNTK_TEST_DATA names.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from data import data_file

import cntk as C

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

SHOWN = 50
"""Minibatches of which one point of a loss curve is the mean."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="gpu", help="where to compute")
    parser.add_argument("--out", type=Path, default=Path("gpu_checks.json"), help="file of the results")
    parser.add_argument("--only", nargs="+", choices=list(CHECKS), default=list(CHECKS), help="checks to make")
    given = parser.parse_args(arguments)
    device = C.device.gpu(0) if given.device == "gpu" else C.device.cpu()
    C.device.try_set_default_device(device)
    found: dict[str, Any] = {"measured_on": device.backend.describe()}
    for name in given.only:
        C.cntk_py.set_fixed_random_seed(1)
        began = time.perf_counter()
        try:
            found[name] = CHECKS[name]()
        except Exception:  # the others are made all the same
            found[name] = {"failed": traceback.format_exc()[-2000:]}
        found[name]["seconds_in_all"] = round(time.perf_counter() - began, 2)
        print(name, json.dumps(found[name])[:1500], flush=True)
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return int(any("failed" in result for result in found.values() if isinstance(result, dict)))


# ---- real data ----


def example(name: str) -> Any:
    """A module of the examples, of which some have a workload's name."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        specification = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(specification)
        sys.modules[module.__name__] = module
        specification.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(EXAMPLES))


def digits() -> dict[str, Any]:
    """The guided tour's convolutional network on MNIST's test set, of which it sees 85 %."""
    mnist = example("mnist")

    train, test = mnist.load(data_file(""))
    began = time.perf_counter()
    _, criterion = mnist.train(train, 4, 64)
    seconds = time.perf_counter() - began
    tested = criterion.test(test, minibatch_size=256)
    return {"seconds": seconds, "images_per_second": 4 * len(train.images) / seconds, "error": float(tested.metric)}


def queries() -> dict[str, Any]:
    """ATIS from its file in CNTK's text format: an LSTM that tags words."""
    atis = example("atis")

    source = atis.reader(Path(data_file("atis.train.ctf")), randomization_seed=1)
    trainer, inputs = atis.create_trainer(0.02)
    losses, began = [], time.perf_counter()
    for _ in range(6):
        losses.append(atis.train(trainer, inputs, source, 6000)[0])
    seconds = time.perf_counter() - began
    return {"words_per_second": 36000 / seconds, "loss": losses, "error": atis.test(trainer, inputs, Path(data_file("atis.test.ctf")))}


def pronunciation() -> dict[str, Any]:
    """CMUDict: sequence to sequence with attention."""
    words = example("pronunciation")

    training, _ = words.load(Path(data_file("cmudict-0.7b.train-dev-1-21.ctf")))
    letters = C.sequence.input_variable(words.SYMBOLS, name="letters")
    phonemes = C.sequence.input_variable(words.SYMBOLS, sequence_axis=C.Axis("phonemes"), name="phonemes")
    criterion = words.create_criterion(words.create_model(), letters, phonemes)
    rate = C.learning_parameter_schedule_per_sample(0.005)
    trainer = C.Trainer(None, criterion, [C.fsadagrad(criterion.parameters, rate, C.momentum_schedule(0.9))])
    losses, began = [], time.perf_counter()
    for chosen in islice(words.minibatches([word.shape[0] for word in training.letters], words.MINIBATCH, seed=1), 3 * SHOWN):
        rows = ([stream[i].toarray() for i in chosen] for stream in training)
        trainer.train_minibatch(dict(zip((letters, phonemes), rows, strict=True)))
        losses.append(trainer.previous_minibatch_loss_average)
    seconds = time.perf_counter() - began
    means = [float(np.mean(losses[at : at + SHOWN])) for at in range(0, len(losses), SHOWN)]
    return {"milliseconds_per_minibatch": 1e3 * seconds / len(losses), "loss": means}


# ---- long runs ----


def dense_trainer(width: int = 64) -> tuple[Any, Callable[[int], dict[Any, Any]]]:
    """A trainer of a dense network with dropout, and what makes minibatches of a size."""
    x, y = C.input_variable(width), C.input_variable(10)
    layers = [C.layers.Dense(width, activation=C.tanh), C.layers.Dropout(0.2), C.layers.LayerNormalization(), C.layers.Dense(10)]
    model = C.layers.Sequential(layers)(x)
    learner = C.adam(model.parameters, C.learning_parameter_schedule(0.001), C.momentum_schedule(0.9))
    random = np.random.default_rng(1)
    samples, labels = random.standard_normal((4096, width), np.float32), np.eye(10, dtype=np.float32)[random.integers(10, size=4096)]
    trainer = C.Trainer(model, (C.cross_entropy_with_softmax(model, y), C.classification_error(model, y)), [learner])
    return trainer, lambda size: {x: samples[:size], y: labels[:size]}


def memory() -> dict[str, Any]:
    """Memory over 10,000 steps of one size, and over a hundred sizes that come three times each."""
    trainer, minibatch = dense_trainer()
    found: dict[str, Any] = {"used": [], "used_by_sizes": []}
    for _ in range(10):
        for _ in range(1000):
            trainer.train_minibatch(minibatch(32))
        found["used"].append(used())
    for _ in range(3):
        for size in range(1, 4096, 41):
            trainer.train_minibatch(minibatch(size))
        found["used_by_sizes"].append(used())
    found["grows_by"] = found["used"][-1] - found["used"][0]
    return found


def used() -> int:
    """Bytes of the device's memory that are taken."""
    if C.device.use_default_device() == C.device.cpu():
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    import cupy

    free, total = cupy.cuda.runtime.memGetInfo()
    return int(total - free)


def parameters_after(steps: int, between: Callable[[Any], None] = lambda trainer: None) -> list[Any]:
    """Parameters of the dense network after so many steps from the same seeds."""
    C.cntk_py.set_fixed_random_seed(1)
    trainer, minibatch = dense_trainer()
    for _ in range(steps):
        trainer.train_minibatch(minibatch(48))
        between(trainer)
    return [parameter.value.tobytes() for parameter in trainer.model.parameters]


def repeated() -> dict[str, Any]:
    """Two trainings from the same seeds, 1,000 steps each, and one with scratch memory that is poisoned after each step."""
    once, again = parameters_after(1000), parameters_after(1000)
    poisoned = parameters_after(1000, poison)
    return {"equal_to_the_bit": once == again, "equal_with_poisoned_scratch": once == poisoned}


def poison(trainer: Any) -> None:
    """Fill the scratch memory of all workspaces with what is no number."""
    program = trainer._planner._plan.program
    for workspace in program.idle:
        for held in workspace.pool.values():
            with program.backend.guard():
                held.fill(255)


def too_large() -> dict[str, Any]:
    """A minibatch that does not fit, and training that goes on after it."""
    import cupy

    trainer, minibatch = dense_trainer(1024)
    trainer.train_minibatch(minibatch(8))
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    pool.set_limit(size=pool.used_bytes() + (8 << 20))
    try:
        trainer.train_minibatch(minibatch(4096))
        said = "nothing: there was room"
    except MemoryError as error:
        said = str(error)
    finally:
        losses = []
        for _ in range(20):
            trainer.train_minibatch(minibatch(8))
            losses.append(trainer.previous_minibatch_loss_average)
        pool.set_limit(size=0)
    return {"said": said, "loss_falls_afterwards": losses[-1] < losses[0]}


CHECKS: dict[str, Callable[[], dict[str, Any]]] = {
    check.__name__: check for check in (repeated, memory, too_large, digits, queries, pronunciation)
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
