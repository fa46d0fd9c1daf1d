"""Running out of memory: who is named, what to try, and that training goes on."""

from __future__ import annotations

import gc
import re
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.extension import plugins
from cntk.core.extension.device import default_device
from cntk.core.extension.hookspecs import Register, hookimpl
from cntk.extend import Op


class Small(NumpyBackend):
    """NumPy with little memory for programs, of which it counts what is in use."""

    name = "small"
    limit = 2**40
    used = 0
    peak = 0

    def allocate(self, nbytes: int) -> Any:
        kind = type(self)
        if kind.used + nbytes > kind.limit:
            raise MemoryError(f"{kind.limit - kind.used} bytes are left")
        raw = np.empty(nbytes, np.uint8)
        kind.used += nbytes
        kind.peak = max(kind.peak, kind.used)
        weakref.finalize(raw, kind._free, nbytes)
        return raw

    def view(self, memory: Any, offset: int, shape: Sequence[int], dtype: Any) -> Any:
        return np.ndarray(shape, dtype, memory, offset)

    @classmethod
    def _free(cls, nbytes: int) -> None:
        cls.used -= nbytes


class SmallPlugin:
    @hookimpl
    def cntk_register_backends(self, register: Register) -> None:
        register("small", Small)


@pytest.fixture(autouse=True)
def small() -> Iterator[type[Small]]:
    gc.collect()  # memory of earlier tests is not given back in the next one
    Small.limit, Small.used, Small.peak = 2**40, 0, 0
    plugins.register_plugin(SmallPlugin(), "small")
    with default_device(C.device.device("small")):
        yield Small
    plugins.unregister_plugin("small")


def trainer_of(width: int = 64) -> Any:
    x = C.input_variable(width, name="x")
    hidden = C.layers.Dense(8 * width, activation=C.tanh, name="hidden")(x)
    model = C.layers.Dense(1)(hidden)
    return C.Trainer(model, C.reduce_mean(C.square(model)), C.sgd(model.parameters, 0.01, minibatch_size=C.learners.IGNORE))


def data(samples: int, width: int = 64) -> Any:
    return np.random.default_rng(0).normal(size=(samples, width)).astype(np.float32)


def test_a_minibatch_that_does_not_fit_is_explained_and_a_smaller_one_is_learnt_from(small: type[Small]) -> None:
    trainer = trainer_of()
    trainer.train_minibatch(data(8))
    small.limit = 10 * small.used
    with pytest.raises(MemoryError) as caught:
        trainer.train_minibatch(data(512))
    text = str(caught.value)
    assert re.search(r"^out of memory on small\[0\]: values and gradients of a minibatch of 512 samples do not fit", text)
    assert "the largest are the 1,048,576 bytes of " in text
    assert "[built at " in text
    assert "Try minibatches of at most 256 samples: training can go on with them" in text
    assert text.endswith("bytes are left)")
    assert small.used < 1000, "the workspace's memory is given back although the error is still held"
    trainer.train_minibatch(data(16))
    assert trainer.total_number_of_samples_seen == 24


def test_training_that_ran_out_of_memory_learns_as_if_it_had_not(small: type[Small]) -> None:
    first, second = trainer_of(), trainer_of()
    for mine, other in zip(second.model.parameters, first.model.parameters, strict=True):
        mine.value = other.value
    for trainer in (first, second):
        trainer.train_minibatch(data(8))
    small.limit = 10 * small.used
    with pytest.raises(MemoryError):
        second.train_minibatch(data(4096))
    small.limit = 2**40
    for trainer in (first, second):
        trainer.train_minibatch(data(8))
    for mine, other in zip(second.model.parameters, first.model.parameters, strict=True):
        assert np.array_equal(mine.value, other.value)


def test_a_larger_minibatch_has_the_place_of_the_one_before(small: type[Small]) -> None:
    trainer = trainer_of()
    trainer.train_minibatch(data(256))
    before = small.peak
    trainer.train_minibatch(data(512))
    assert small.peak < 2.5 * before, "not three times as much, that of both"


def test_temporary_memory_is_explained_with_the_operator(small: type[Small]) -> None:
    class Temporary(Op):
        """Needs a thousand times its result."""

        op_name = "Temporary"

        def infer(self, x: Any) -> Any:
            return x.but()

        def forward(self, ctx: Any, out: Any, x: Any) -> None:
            ctx.scratch("much", (1000, *x.shape), x.dtype)
            out[...] = x

    x = C.input_variable(10, name="x")
    f = Temporary()(x, name="greedy")
    small.limit = 50_000
    assert f.eval(np.ones((1, 10), np.float32)).sum() == 10
    with pytest.raises(MemoryError, match=r"'greedy'\(Input\('x'.* of 2 samples .*at most 1 samples.*80,000 bytes of temporary"):
        f.eval(np.ones((2, 10), np.float32))
    assert f.eval(np.ones((1, 10), np.float32)).sum() == 10


def test_errors_of_arrays_within_a_step_are_memory_errors_too() -> None:
    """NumPy's own class of MemoryError cannot be made of a text."""

    class Wide(Op):
        op_name = "Wide"

        def infer(self, x: Any) -> Any:
            return x.but()

        def forward(self, ctx: Any, out: Any, x: Any) -> None:
            ctx.xp.empty(2**55, np.float64)

    x = C.input_variable(1, name="x")
    f = Wide()(x, name="wide")
    with pytest.raises(MemoryError, match=r"out of memory on small\[0\]: .*'wide'\(Input\('x'.* of 3 samples needs more") as caught:
        f.eval({x: np.zeros((3, 1), np.float32)})
    assert "beside its result of 12 bytes" in str(caught.value)
    assert "at most 1 samples" in str(caught.value)


def test_one_sample_that_does_not_fit_says_what_else_to_do(small: type[Small]) -> None:
    f = C.tanh(C.input_variable(1000))
    small.limit = 0
    with pytest.raises(MemoryError, match="make the model smaller, sequences shorter, or compute elsewhere"):
        f.eval(np.zeros((1, 1000), np.float32))
    gc.collect()
    small.limit = 10**6
    assert f.eval(np.zeros((1, 1000), np.float32)).shape == (1, 1000)


def test_a_later_stage_that_does_not_fit_gives_all_back(small: type[Small]) -> None:
    """Rows that data decide are bound when the first stage has run."""
    keep = C.sequence.input_variable((), name="keep")
    f = C.tanh(C.sequence.gather(2 * keep, C.greater(keep, 0)))
    short, long = ([np.ones(n, np.float32)] for n in (10, 1000))
    f.eval({keep: short})
    short_needs = small.used
    f.eval({keep: long})
    small.limit = small.used - 1
    f = C.tanh(C.sequence.gather(2 * keep, C.greater(keep, 0)))
    with pytest.raises(MemoryError, match=r"values and gradients of a minibatch of 1 samples with 1,000 steps do not fit.*Gather"):
        f.eval({keep: long})
    assert small.used < 10
    small.limit = 2 * short_needs
    assert f.eval({keep: short})[0].shape == (10,)
