"""Threads that evaluate, train, save, clone and pickle while the number of threads that share their work is changed all the time."""

from __future__ import annotations

import pickle
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from networks import LEARNERS, NETWORKS, Network, trained

import cntk as C
from cntk.core.common.threads import processors

NEEDS = ("numba",)
LIMIT = 120
SIZES = (1, 7, 64, 300)
NUMBERS = (1, 1, 2, 2, 3, 5, 8, 200)
"""Threads that share work; more than there are places for in the tables of OpenBLAS, now and then."""
CLOSE = 2e-5
"""What results may differ by, of the largest, where the BLAS's threads change: OpenBLAS adds in another order then."""


def trial(random: np.random.Generator) -> str:
    """Several threads do what one has done before, and find the same to the bit while the numbers of threads change."""
    changes = str(random.choice(["ours", "ours", "all"]))
    failures: list[str] = []
    callers = [
        threading.Thread(target=act, args=(np.random.default_rng(int(seed)), 0 if changes == "ours" else CLOSE, failures))
        for seed in random.integers(2**60, size=int(random.choice([2, 4, 16])))
    ]
    with changing(CHANGES[changes], int(random.integers(2**60))):
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert not failures, "; ".join(failures[:3])
    return f"{len(callers)} threads, {changes} changed"


@contextmanager
def changing(changes: tuple[Callable[[int], Any], ...], seed: int) -> Iterator[None]:
    """Numbers of threads change at random moments; at the end they are what they were."""
    random, ended = np.random.default_rng(seed), threading.Event()

    def change() -> None:
        while not ended.wait(random.exponential(0.002)):
            changes[random.integers(len(changes))](int(random.choice(NUMBERS)))

    changer = threading.Thread(target=change)
    changer.start()
    try:
        yield
    finally:
        ended.set()
        changer.join()
        for change_to in changes:
            change_to(processors())


def numba_threads(number: int) -> None:
    """Set Numba's number of threads."""
    import numba

    numba.set_num_threads(min(number, numba.config.NUMBA_NUM_THREADS))


def library_threads(number: int) -> None:
    """Set the number of threads of the BLAS and of OpenMP."""
    import threadpoolctl

    threadpoolctl.threadpool_limits(number)


CHANGES: dict[str, tuple[Callable[[int], Any], ...]] = {
    "ours": (C.cntk_py.set_max_num_cputhreads, numba_threads),
    "all": (C.cntk_py.set_max_num_cputhreads, numba_threads, library_threads),
}


def act(random: np.random.Generator, tolerance: float, failures: list[str]) -> None:
    """Do a few things, and note what comes out otherwise than it should."""
    for _ in range(4):
        name, what = str(random.choice([*NETWORKS])), ACTS[random.integers(len(ACTS))]
        try:
            what(random, name, tolerance)
        except Exception as error:
            failures.append(f"{name}, {what.__name__}: {type(error).__name__}: {error}")
            return


@cache
def network(name: str) -> Network:
    """A network that nobody trains."""
    return NETWORKS[name]()


@cache
def known_values(name: str, samples: int) -> tuple[Any, Any, Any]:
    """A minibatch, and what the network and its gradients are for it, computed before anything changes."""
    made = network(name)
    fed = made.feed(np.random.default_rng(samples), samples)
    return fed, made.model.eval(inputs_of(made.model, fed)), gradients(made, fed)


@cache
def known_training(name: str, learner: str, samples: int) -> list[bytes]:
    """What a training comes to that nobody disturbs."""
    return trained(NETWORKS[name](), learner, 3, 3, samples)


def inputs_of(model: Any, fed: dict[Any, Any]) -> dict[Any, Any]:
    """What a minibatch has for a model."""
    return {argument: fed[argument] for argument in model.arguments}


def gradients(made: Network, fed: dict[Any, Any]) -> list[Any]:
    """The gradients of all parameters; the first's, where it is sparse, as an array.

    Normalisation by statistics of the minibatch changes what it remembers, so of such networks a copy is taken.
    """
    loss = made.loss.clone("clone", dict(zip(made.loss.arguments, made.loss.arguments, strict=True)))
    found = loss.grad(fed, wrt=loss.parameters)
    return [dense(found[parameter]) for parameter in loss.parameters]


def dense(values: Any) -> Any:
    """An array, whatever holds the numbers."""
    return values.toarray() if hasattr(values, "toarray") else np.asarray(values)


def evaluate(random: np.random.Generator, name: str, tolerance: float) -> None:
    """Evaluate a network that all threads share."""
    fed, right, _ = known_values(name, int(random.choice(SIZES)))
    model = network(name).model
    compare(model.eval(inputs_of(model, fed)), right, tolerance)


def differentiate(random: np.random.Generator, name: str, tolerance: float) -> None:
    """Differentiate a copy that shares nothing."""
    fed, _, right = known_values(name, int(random.choice(SIZES)))
    for ours, known in zip(gradients(network(name), fed), right, strict=True):
        compare(ours, known, tolerance * 10)


def train(random: np.random.Generator, name: str, tolerance: float) -> None:
    """Train a network of one's own."""
    learner, samples = str(random.choice([*LEARNERS])), int(random.choice(SIZES))
    found, right = trained(NETWORKS[name](), learner, 3, 3, samples), known_training(name, learner, samples)
    if not tolerance:
        assert found == right, f"a training by {learner} with {samples} samples differs"
    losses, known = (np.frombuffer(of[0]) for of in (found, right))
    np.testing.assert_allclose(losses, known, rtol=100 * tolerance)


def copied(random: np.random.Generator, name: str, tolerance: float) -> None:
    """Evaluate a copy: a clone, a pickle, or a model that is saved and loaded."""
    fed, right, _ = known_values(name, int(random.choice(SIZES)))
    model = network(name).model
    copy = COPIES[random.integers(len(COPIES))](model)
    compare(copy.eval(dict(zip(copy.arguments, inputs_of(model, fed).values(), strict=True))), right, tolerance)


def saved_and_loaded(model: Any) -> Any:
    """The model from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "model"))
        model.save(path)
        return C.load_model(path)


ACTS = (evaluate, differentiate, train, copied)
COPIES: tuple[Callable[[Any], Any], ...] = (
    lambda model: pickle.loads(pickle.dumps(model)),
    lambda model: model.clone("clone"),
    lambda model: model.clone("freeze"),
    saved_and_loaded,
)


def compare(ours: Any, right: Any, tolerance: float) -> None:
    """Compare values, or those of sequences."""
    if isinstance(right, list):
        for one, known in zip(ours, right, strict=True):
            compare(one, known, tolerance)
    elif not np.array_equal(ours, right):
        off = float(np.abs(ours - right).max() / max(np.abs(right).max(), 1e-6))
        assert off <= tolerance, f"values of shape {ours.shape} differ by {off:.2g} of the largest"


def begin() -> None:
    """Compute what is right."""
    for name in NETWORKS:
        for samples in SIZES:
            known_values(name, samples)
            for learner in LEARNERS:
                known_training(name, learner, samples)
