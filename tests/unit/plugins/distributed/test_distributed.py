"""Distributed learners: one worker, and several whose exchanges happen within this process."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cntk as C
from cntk.core.common.environment import number_in, switch_in, whole_in
from cntk.core.common.launch import is_launched, launched_rank, launched_size
from cntk.core.run import profiling
from cntk.core.types.sparse import RowSparse
from cntk.core.values.minibatch import Minibatch
from cntk.plugins.distributed.base import Strategy, sum_over_workers
from cntk.plugins.distributed.bits import column_size, pack, unpack
from cntk.plugins.distributed.block_momentum import BlockMomentum
from cntk.plugins.distributed.data_parallel import DataParallel
from cntk.plugins.distributed.deadlock import Position, cannot_go_on
from cntk.plugins.distributed.quantized import QuantizedDataParallel
from cntk.plugins.distributed.quantizer import Quantizer
from cntk.plugins.distributed.rows import sum_rows
from cntk.testing import check_strategy
from cntk.testing.strategies import run_workers
from cntk.train.checkpoint import read_checkpoint, to_bytes, write_checkpoint
from cntk.train.distributed import DistributedLearner


def per_sample_sgd(parameters: Any) -> Any:
    return C.sgd(parameters, C.learning_parameter_schedule_per_sample(1.0))


def updates(strategy: type, gradients: list[list[Any]], learner: Any = per_sample_sgd, samples: int = 2, **options: Any) -> list[Any]:
    """Parameters after each update, by worker; gradients are of the worker and then of the update."""

    def work(transport: Any) -> list[Any]:
        weights = C.parameter(np.shape(gradients[0][0]), init=0)
        made = strategy(learner([weights]), transport, **options)
        made.begin()
        found = []
        for gradient in gradients[transport.rank]:
            minibatch = Minibatch(samples, 0.0, 0.0)
            sum_over_workers(transport, minibatch)
            made.update([np.array(gradient, np.float32)], minibatch)
            found.append(weights.value.copy())
        return found

    return run_workers(len(gradients), work)


# ---- one worker ----


def test_a_single_worker_learns_as_without_distribution_and_never_imports_mpi() -> None:
    program = (
        "import sys, numpy as np, cntk as C\n"
        "x, w = C.input_variable(1), C.parameter(1)\n"
        "learner = C.data_parallel_distributed_learner(C.sgd([w], 0.5), num_quantization_bits=1)\n"
        "trainer = C.Trainer(None, C.reduce_sum(w * x), learner)\n"
        "assert trainer.train_minibatch({x: np.ones((4, 1), np.float32)}) and not trainer.train_minibatch({})\n"
        "C.Communicator.finalize()\n"
        "assert w.value == -0.5 and learner.total_number_of_samples_seen == 4 and 'mpi4py' not in sys.modules\n"
    )
    # Where a test before this one has started MPI in this process, its variables are there.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMIX_", "PMI_"))}
    subprocess.run([sys.executable, "-c", program], check=True, env=inherited)


def test_the_names_of_the_module_are_one_module() -> None:
    import cntk.distributed

    assert cntk.distributed is C.distributed is C.train.distributed


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"block_size": 4}, [-3, -6, -9, -12]),
        ({"block_size": 4, "block_momentum_as_time_constant": 100}, [-3, -0.461302, -3.461302, -1.365818]),
        ({"block_size": 4, "block_momentum_as_time_constant": 100, "block_learning_rate": 0.5}, [-3, -0.230651, -3.230651, -0.682909]),
    ],
)
def test_block_momentum_of_one_worker_gives_the_numbers_of_cntk(options: dict[str, Any], expected: list[float]) -> None:
    x, w = C.input_variable(1), C.parameter(1)
    trainer = C.Trainer(None, C.reduce_sum(w * x), C.block_momentum_distributed_learner(per_sample_sgd([w]), **options))
    found = []
    for _ in expected:
        assert trainer.train_minibatch({x: np.array([[1.0], [2.0]], np.float32)})
        found.append(float(w.value[0]))
    np.testing.assert_allclose(found, expected, atol=2e-6)
    assert trainer.total_number_of_samples_seen == 8


def test_wrong_arguments_are_refused() -> None:
    w, v = C.parameter(1), C.parameter(1)
    with pytest.raises(RuntimeError, match="asynchronous"):
        C.data_parallel_distributed_learner(C.sgd([w], 0.1), use_async_buffered_parameter_update=True)
    with pytest.raises(ValueError, match="1 to 31 bits, got 33"):
        C.data_parallel_distributed_learner(C.sgd([w], 0.1), num_quantization_bits=33)
    with pytest.raises(ValueError, match="block size"):
        C.block_momentum_distributed_learner(C.sgd([w], 0.1), block_size=0)
    with pytest.raises(TypeError, match="learners such as"):
        C.data_parallel_distributed_learner(C.data_parallel_distributed_learner(C.sgd([w], 0.1)))
    with pytest.raises(KeyError, match="no distributed strategy"):
        C.distributed.distributed_learner("gossip", C.sgd([w], 0.1))
    with pytest.raises(ValueError, match="all of them, or not"):
        C.Trainer(None, C.reduce_sum(w + v), [C.data_parallel_distributed_learner(C.sgd([w], 0.1)), C.sgd([v], 0.1)])


def test_launchers_are_known_by_their_variables() -> None:
    assert not is_launched({})
    assert not is_launched({"OMPI_COMM_WORLD_SIZE": "1", "PMIX_RANK": "0"})
    assert not is_launched({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"})
    assert is_launched({"PMI_SIZE": "2"})
    assert is_launched({"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4"})
    assert launched_rank({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3"}) == 3
    assert launched_rank({"PMIX_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}) == 0
    assert launched_size({}) == launched_size({"PMIX_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}) == 1
    assert launched_size({"OMPI_COMM_WORLD_SIZE": "4"}) == launched_size({"SLURM_STEP_NUM_TASKS": "4"}) == 4
    assert launched_size({"PMIX_RANK": "7"}) > 7


def test_workers_choose_seeds_of_their_own_for_what_they_draw_and_the_same_for_initial_values() -> None:
    """The seeds of CNTK 2.7: with two workers random operators have 0 and 1, then 2 and 3."""
    program = (
        "import cntk as C\n"
        "drawn = [C.random.uniform(3).root_function.attributes['rngSeed'] for _ in range(2)]\n"
        "own = C.random.uniform(3, seed=7).root_function.attributes['rngSeed']\n"
        "weights = C.parameter(2, init=C.uniform(1)).value.tolist()\n"
        "C.cntk_py.set_fixed_random_seed(5)\n"
        "print(drawn, own, C.random.uniform(3).root_function.attributes['rngSeed'], weights)\n"
    )

    def printed(**variables: str) -> str:
        done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **variables}, capture_output=True, text=True, check=True)
        return done.stdout

    alone, *workers = (printed(), *(printed(OMPI_COMM_WORLD_SIZE="2", OMPI_COMM_WORLD_RANK=rank) for rank in "01"))
    assert [worker.replace(drawn, "[0, 1]") for worker, drawn in zip(workers, ("[0, 2]", "[1, 3]"), strict=True)] == [alone, alone]
    assert "[0, 1] 7 5 " in alone


# ---- several workers ----


def test_data_parallel_sums_gradients_and_samples() -> None:
    found = updates(DataParallel, [[[1.0, 2.0]] * 2, [[3.0, -2.0]] * 2, [[0.5, 0.0]] * 2])
    for worker in found:
        np.testing.assert_allclose(worker, [[-4.5, 0.0], [-9.0, 0.0]])


class Early(Strategy):
    """Keeps gradients as they come, and leaves garbage in their places."""

    wants_gradients_early = True

    def __init__(self, learner: Any, transport: Any) -> None:
        super().__init__(learner, transport)
        self.found: dict[int, Any] = {}
        self.times: list[float] = []

    def gradient_is_final(self, index: int, gradient: Any) -> None:
        self.times.append(time.perf_counter())
        self.found[index] = gradient.copy()
        gradient[...] = np.nan

    def update(self, gradients: Any, minibatch: Minibatch) -> bool:
        return True


def dense_layers(x: Any) -> Any:
    return C.layers.Sequential([C.layers.Dense(4, activation=C.tanh), C.layers.Dense(5), C.layers.LayerNormalization()])(x)


def shared_weights(x: Any) -> Any:
    w, b = C.parameter((3, 3), init=C.uniform(1, seed=1)), C.parameter(3, init=0.1)
    return C.times(C.tanh(C.times(x, w) + b), w) + b + C.slice(C.parameter(6, init=0.2), 0, 0, 3)


def recurrence(x: Any) -> Any:
    return C.layers.Sequential([C.layers.Recurrence(C.layers.LSTM(4)), C.sequence.last, C.layers.Dense(2)])(x)


@pytest.mark.parametrize("layers", [dense_layers, shared_weights, recurrence])
def test_gradients_are_handed_over_one_by_one_when_nothing_needs_them_any_more(layers: Any) -> None:
    x = C.sequence.input_variable(3) if layers is recurrence else C.input_variable(3)
    f = C.reduce_sum(C.square(layers(x)))
    steps = np.random.default_rng(0).standard_normal((4, 2, 3)).astype(np.float32)
    data = {x: list(steps) if layers is recurrence else steps[:, 0]}
    recorder = profiling.Recorder(10_000)

    def work(transport: Any) -> Any:
        learner = C.sgd(f.parameters, 0.1)
        strategy = Early(learner, transport)
        trainer = C.Trainer(None, f, DistributedLearner(learner, strategy))
        profiling.begin(recorder)
        trainer.train_minibatch(data)
        begun = [event.begin for event in recorder.events if event.thread == threading.get_ident() and event.category == "backward"]
        return learner.updated_parameters, strategy.found, min(strategy.times) < max(begun)

    try:
        (parameters, found, early), _ = run_workers(2, work)
    finally:
        profiling.end(recorder)
    expected = f.grad(data, list(parameters))
    assert len(found) == len(parameters)
    assert early, "the first gradient comes before the last backward step"
    for index, parameter in enumerate(parameters):
        np.testing.assert_allclose(found[index], expected[parameter], rtol=1e-5, atol=1e-6)


def test_buckets_are_sent_in_one_order_whatever_order_gradients_come_in() -> None:
    shapes = [(3, 700, 600), (5,), (2, 1100, 500), ()]

    def work(transport: Any) -> list[Any]:
        parameters = [C.parameter(shape, dtype=np.float32 if i else np.float64) for i, shape in enumerate(shapes)]
        strategy = DataParallel(per_sample_sgd(parameters), transport)
        for _ in range(3):
            gradients = [np.full(p.shape, (i + 1) * (transport.rank + 1), p.dtype) for i, p in enumerate(parameters)]
            for i in range(4) if transport.rank else reversed(range(4)):
                strategy.gradient_is_final(i, gradients[i])
            strategy.update(gradients, Minibatch(1, 0.0, 0.0))
        return [float(p.value.reshape(-1)[0]) for p in parameters] + [float(np.ptp(p.value)) for p in parameters]

    assert run_workers(2, work) == [[-9, -18, -27, -36, 0, 0, 0, 0]] * 2


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.integers(0, 6), unique=True).map(sorted), min_size=2, max_size=4))
def test_sums_of_row_sparse_gradients_are_those_of_dense_ones(present: list[list[int]]) -> None:
    backend = C.parameter(1).backend

    def work(transport: Any) -> Any:
        gradient = RowSparse((7, 2), np.float32)
        rows = np.array(present[transport.rank], np.intp)
        gradient.set(rows, np.arange(2 * len(rows), dtype=np.float32).reshape(-1, 2) + transport.rank)
        dense = gradient.to_dense(np)
        sum_rows(transport, [gradient], [backend])
        transport.sum(dense)
        assert gradient.rows.tolist() == sorted(set().union(*present))
        np.testing.assert_array_equal(gradient.to_dense(np), dense)
        return transport.bytes_sent

    run_workers(len(present), work)


def test_one_bit_gives_the_numbers_of_cntk_and_makes_up_for_its_errors() -> None:
    found = updates(QuantizedDataParallel, [[[1.0, 2.0, -3.0, 5.0]] * 40, [[2.0, -2.0, 1.0, 0.5]] * 40], bits=1)
    np.testing.assert_allclose(-found[0][0], [2.777778, 2.777778, -1.833333, 2.777778], rtol=1e-6)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_allclose(-found[0][-1] / 40, [3.0, 0.0, -2.0, 5.5], atol=0.4)


@pytest.mark.parametrize("bits", [2, 4, 8, 17, 31])
def test_more_bits_come_closer(bits: int) -> None:
    random = np.random.default_rng(bits)
    matrix = random.standard_normal((5, 33)).astype(np.float32)
    lacking = matrix.copy()
    values = Quantizer(np, bits, np.float32).decode(Quantizer(np, bits, np.float32).encode(lacking), 33)
    np.testing.assert_array_equal(lacking, matrix - values)
    step = np.ptp(matrix, axis=1).max() / (2**bits - 1)
    assert np.abs(lacking).max() <= step / 2 + 1e-6


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 31), st.integers(0, 4), st.integers(0, 40), st.randoms(use_true_random=False))
def test_packed_numbers_come_back_and_leave_no_gaps(bits: int, rows: int, width: int, random: Any) -> None:
    codes = np.array([[random.randrange(2**bits) for _ in range(width)] for _ in range(rows)], np.uint32).reshape(rows, width)
    packed = pack(np, codes.astype(bool) if bits == 1 else codes, bits)
    assert packed.shape == (rows, column_size(width, bits))
    assert column_size(width, bits) < (width + 8) * bits / 8
    np.testing.assert_array_equal(unpack(np, packed, width, bits), codes)


def test_one_bit_sends_a_thirtieth() -> None:
    gradients = np.random.default_rng(0).standard_normal((2, 1000, 1000)).astype(np.float32)

    def sent(strategy: type, **options: Any) -> int:
        def work(transport: Any) -> int:
            made = strategy(per_sample_sgd([C.parameter((1000, 1000))]), transport, **options)
            made.update([gradients[transport.rank].copy()], Minibatch(1, 0.0, 0.0))
            return int(transport.bytes_sent)

        return max(run_workers(2, work))

    assert sent(DataParallel) / sent(QuantizedDataParallel, bits=1) > 28


@pytest.mark.parametrize(
    ("nesterov", "gradients", "block_size", "expected"),
    [(True, (2.0, 6.0), 4, [-6, -15, -25.5, -36.75]), (False, (2.0, 2.0), 8, [0, -4, 0, -10, 0, -17])],
)
def test_block_momentum_of_two_workers_gives_the_numbers_of_cntk(
    nesterov: bool, gradients: tuple[float, float], block_size: int, expected: list[float]
) -> None:
    """After each block; in the second case every other minibatch ends one."""
    own = [[[gradient]] * len(expected) for gradient in gradients]
    found = updates(BlockMomentum, own, block_size=block_size, use_nesterov_momentum=nesterov)
    ends = [step for step, value in enumerate(expected) if value]
    np.testing.assert_array_equal(*[[worker[step] for step in ends] for worker in found])
    np.testing.assert_allclose([found[0][step][0] for step in ends], [expected[step] for step in ends])


@pytest.mark.parametrize(
    "factory",
    [
        DataParallel,
        lambda learner, transport: QuantizedDataParallel(learner, transport, bits=1),
        lambda learner, transport: QuantizedDataParallel(learner, transport, bits=5),
        lambda learner, transport: BlockMomentum(learner, transport, block_size=64),
        lambda learner, transport: BlockMomentum(learner, transport, block_size=64, reset_sgd_momentum_after_aggregation=False),
    ],
)
def test_strategies_keep_the_contract(factory: Any) -> None:
    check_strategy(factory)


class Averaging(DataParallel):
    """Divides what is summed by the number of workers once more."""

    def update(self, gradients: Any, minibatch: Minibatch) -> bool:
        for gradient in gradients:
            gradient /= self.transport.size
        return super().update(gradients, minibatch)


class Forgetful(DataParallel):
    """Leaves out the last worker's samples."""

    def update(self, gradients: Any, minibatch: Minibatch) -> bool:
        if self.transport.rank == self.transport.size - 1 > 0:
            for gradient in gradients:
                gradient *= 0
        return super().update(gradients, minibatch)


@pytest.mark.parametrize("strategy", [Averaging, Forgetful])
def test_a_strategy_that_averages_wrongly_is_found(strategy: type) -> None:
    with pytest.raises(AssertionError, match=r"^3 workers learn otherwise than one process does from all samples"):
        check_strategy(strategy)


def test_a_strategy_of_another_package_keeps_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[4] / "examples" / "cntk-extras" / "src")
    from cntk_extras.top_k import TopK

    check_strategy(lambda learner, transport: TopK(learner, transport, share=0.5))


def test_failing_workers_do_not_leave_threads() -> None:
    def work(transport: Any) -> None:
        if transport.rank == 1:
            raise ValueError("no")
        transport.barrier()

    with pytest.raises(ValueError, match="no"):
        run_workers(2, work)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("worker")]


# ---- workers that are not alike ----


def trainers(*make: Any, after: Any = None) -> list[Any]:
    """Make a trainer on each worker, and do something with it; what each returned, or raised."""

    def work(transport: Any) -> Any:
        try:
            made = make[transport.rank](transport)
            return made if after is None else after(transport, made)
        except (ValueError, RuntimeError) as error:
            return error

    return run_workers(len(make), work)


def linear(
    transport: Any,
    shape: tuple[int, int] = (3, 2),
    dtype: Any = np.float32,
    rule: Any = per_sample_sgd,
    strategy: Any = DataParallel,
    **options: Any,
) -> Any:
    with C.default_options(dtype=dtype):
        x, w = C.input_variable(shape[0]), C.parameter(shape, init=1, name="W")
        loss = C.reduce_sum(C.times(x, w))
        learner = rule([w])
        return C.Trainer(None, loss, DistributedLearner(learner, strategy(learner, transport, **options)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": (2, 3)}, r"parameter 0: 'W' of shape \(3, 2\), float32, .* on worker 0, 'W' of shape \(2, 3\), float32, .* on worker 1"),
        ({"dtype": np.float64}, "float32.* on worker 0.* float64.* on worker 1"),
        ({"rule": lambda parameters: C.adam(parameters, 1.0, 0.9)}, "learner: SGD on worker 0, Adam on worker 1"),
        (
            {"rule": lambda parameters: C.sgd(parameters, 0.02)},
            "learning rate: 1.0 per 1 samples on worker 0, 0.02 per minibatch on worker 1",
        ),
        (
            {"rule": lambda p: C.sgd(p, C.learning_parameter_schedule_per_sample(1.0), 0.5)},
            "l1_regularization_weight: 0.0 on worker 0, 0.5 on",
        ),
        ({"strategy": QuantizedDataParallel}, "strategy: DataParallel on worker 0, QuantizedDataParallel on worker 1"),
    ],
)
def test_workers_that_are_not_alike_are_told_in_what_when_a_trainer_is_made(options: dict[str, Any], message: str) -> None:
    errors = trainers(linear, lambda transport: linear(transport, **options))
    assert len({str(error) for error in errors}) == 1
    with pytest.raises(ValueError, match=message):
        raise errors[0]


@pytest.mark.parametrize(
    ("strategy", "own", "other", "message"),
    [
        (QuantizedDataParallel, {"bits": 1}, {"bits": 2}, "bits: 1 on worker 0, 2 on worker 1"),
        (BlockMomentum, {"block_size": 8}, {"block_size": 9}, "block_size: 8 on worker 0, 9 on worker 1"),
        (
            BlockMomentum,
            {"block_size": 8},
            {"block_size": 8, "block_learning_rate": 0.5},
            "block_learning_rate: 1.0 on worker 0, 0.5 on worker 1",
        ),
    ],
)
def test_options_of_strategies_are_compared(strategy: Any, own: dict[str, Any], other: dict[str, Any], message: str) -> None:
    errors = trainers(*[lambda transport, options=options: linear(transport, strategy=strategy, **options) for options in (own, other)])
    with pytest.raises(ValueError, match=message):
        raise errors[1]


def test_all_learners_name_the_options_that_they_have() -> None:
    """Whatever else the constructor of a built-in learner takes is in the settings that workers compare."""
    w = C.parameter(2)
    for learner in (
        C.sgd([w], 0.1),
        C.momentum_sgd([w], 0.1, 0.9),
        C.nesterov([w], 0.1, 0.9),
        C.adam([w], 0.1, 0.9),
        C.adam([w], 0.1, 0.9, adamax=True),
        C.fsadagrad([w], 0.1, 0.9),
        C.adagrad([w], 0.1),
        C.adadelta([w], 0.1),
        C.rmsprop([w], 0.1, 0.95, 1.2, 0.7, 10, 1e-8),
    ):
        taken = [
            name for name in inspect.signature(type(learner).__init__).parameters if name not in ("self", "parameters", "lr", "options")
        ]
        named = [name.removesuffix("_schedule") for name in learner.settings()]
        assert set(taken) <= set(named), type(learner).__name__


def test_a_learner_that_goes_another_way_is_noticed_at_the_next_minibatch() -> None:
    def reset(transport: Any, trainer: Any) -> None:
        for number in range(3):
            if number == 2 and transport.rank == 2:
                trainer.parameter_learners[0].reset_learning_rate(C.learning_parameter_schedule(0.5))
            trainer.train_minibatch({trainer.loss_function.arguments[0]: np.ones((2, 3), np.float32)})

    errors = trainers(linear, linear, linear, after=reset)
    with pytest.raises(ValueError, match=r"learning rate: 1\.0 per 1 samples on workers 0, 1, 0\.5 per 1 samples on worker 2"):
        raise errors[0]


def test_a_parameter_that_one_worker_sets_is_noticed_when_models_are_to_be_equal() -> None:
    def change(transport: Any, trainer: Any) -> None:
        data = {trainer.loss_function.arguments[0]: np.ones((2, 3), np.float32)}
        trainer.train_minibatch(data)
        trainer.team.synchronize()
        if transport.rank:
            trainer.loss_function.parameters[0].value = np.full((3, 2), 7, np.float32)
        trainer.train_minibatch(data)
        trainer.team.synchronize()

    errors = trainers(linear, linear, after=change)
    with pytest.raises(ValueError, match=r"come apart: 'W' of shape \(3, 2\), float32 has norm .* on worker 0, norm .* on worker 1"):
        raise errors[1]


def test_all_parameters_start_from_those_of_the_main_worker_before_the_first_gradient() -> None:
    """Those without a learner, too; so the first gradients are those of one model."""

    def make(transport: Any) -> Any:
        x = C.input_variable(1)
        w, frozen = C.parameter(1, init=transport.rank + 1), C.parameter(1, init=10 * (transport.rank + 1))
        learner = per_sample_sgd([w])
        return C.Trainer(None, C.reduce_sum(x * w * w * frozen), DistributedLearner(learner, DataParallel(learner, transport))), w, frozen

    def train(transport: Any, made: Any) -> tuple[float, float]:
        trainer, w, frozen = made
        trainer.train_minibatch({trainer.loss_function.arguments[0]: np.ones((1, 1), np.float32)})
        return float(w.value[0]), float(frozen.value[0])

    assert trainers(make, make, after=train) == [(1 - 2 * 2 * 10, 10)] * 2


def test_a_digest_is_the_same_on_all_workers_or_not() -> None:
    def work(transport: Any) -> list[bool]:
        digests = [(7, 7), (0, 2**32 - 1), (2**32 - 1, 2**32 - 2), (5 << 16, 6 << 16), (2**32 - 1, 2**32 - 1)]
        return [sum_over_workers(transport, Minibatch(1, 0.0, 0.0), digest[transport.rank == 3]) for digest in digests]

    assert run_workers(5, work) == [[True, False, False, False, True]] * 5


@pytest.mark.parametrize(("dtype", "large"), [(np.float16, 2048), (C.bfloat16, 256)], ids=["float16", "bfloat16"])
def test_types_of_16_bits_are_summed_in_float32(dtype: Any, large: int) -> None:
    def work(transport: Any) -> tuple[float, float]:
        gradient = RowSparse((3, 1), dtype)
        gradient.set(np.array([1]), np.array([[large if transport.rank == 0 else 1]], dtype))
        sum_rows(transport, [gradient], [C.parameter(1).backend])
        dense = np.array([large if transport.rank == 0 else 1], dtype)
        transport.sum(dense)
        return float(gradient.values[0, 0]), float(dense[0])

    assert run_workers(9, work) == [(large + 8, large + 8)] * 9


@pytest.mark.parametrize("dtype", [np.float16, C.bfloat16])
@pytest.mark.parametrize("strategy", [DataParallel, lambda learner, transport: BlockMomentum(learner, transport, block_size=4)])
def test_parameters_of_16_bits_have_the_same_masters_on_all_workers(strategy: Any, dtype: Any) -> None:
    """Updates of a tenth of what the type tells apart add up, and training begins from all bits of the main worker's masters."""

    def work(transport: Any) -> tuple[Any, Any]:
        w = C.parameter(2, init=1 + transport.rank, dtype=dtype)
        learner = C.sgd([w], C.learning_parameter_schedule_per_sample(1e-5))
        for _ in range(10):
            learner.update_arrays([np.array([1, 2], dtype)], 1)
        made = strategy(learner, transport)
        made.begin()
        for _ in range(500):
            minibatch = Minibatch(1, 0.0, 0.0)
            sum_over_workers(transport, minibatch)
            made.update([np.array([1, 2], dtype)], minibatch)
        made.synchronize()
        return learner.values()[0], w.value

    (first, narrow), *others = run_workers(2, work)
    assert all(np.array_equal(first, wide) for wide, _ in others)
    assert np.array_equal(narrow, first.astype(dtype))
    assert first[0] < 1 - 1e-5 * 10 - 1e-5 * 400


def test_block_momentum_goes_on_from_the_model_of_a_checkpoint(tmp_path: Path) -> None:
    """And not from the values that parameters had before it was read."""
    data = np.random.default_rng(0).normal(size=(8, 3, 3)).astype(np.float32)

    def work(transport: Any) -> tuple[Any, Any]:
        trainers = [linear(transport, strategy=BlockMomentum, block_size=6) for _ in range(2)]
        for rows in data:
            trainers[0].train_minibatch(rows[transport.rank :])
        trainers[0].save_checkpoint(tmp_path / "model")
        trainers[1].restore_from_checkpoint(tmp_path / "model")
        for trainer in trainers:
            for rows in data:
                trainer.train_minibatch(rows[transport.rank :])
        first, second = (trainer.loss_function.parameters[0].value for trainer in trainers)
        return first, second

    for first, second in run_workers(2, work):
        assert np.array_equal(first, second)


def at(begun: list[int], *waits: list[int], computes: bool = False) -> Position:
    return Position(begun, list(waits), computes, "somewhere")


@pytest.mark.parametrize(
    ("failure", "others"),
    [(OSError(28, "No space left on device"), OSError), (ValueError("it cannot be saved"), RuntimeError)],
)
def test_all_workers_are_told_why_the_main_worker_could_not_save(
    failure: Exception, others: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise failure

    monkeypatch.setattr("cntk.train.state.write_checkpoint", fail)

    def work(transport: Any) -> Exception:
        trainer = linear(transport)
        with pytest.raises(Exception, match=str(failure.args[-1])) as caught:
            trainer.save_checkpoint(tmp_path / "model")
        return caught.value

    first, *rest = run_workers(3, work)
    assert first is failure
    for told in rest:
        assert type(told) is others
        assert "the main worker could not write" in str(told)
        assert not isinstance(told, OSError) or told.errno == 28


QUANTIZED = {"strategy": QuantizedDataParallel}
BLOCKS = {"strategy": BlockMomentum, "block_size": 3, "reset_sgd_momentum_after_aggregation": False}


def own(state: Any, worker: int) -> Any:
    return state["workers"][worker]["strategies"][0]


@pytest.mark.parametrize(
    ("options", "damage", "message"),
    [
        (QUANTIZED, lambda state: state["workers"][1].pop("strategies"), "strategies: 'strategies' is missing"),
        (QUANTIZED, lambda state: own(state, 1).pop("errors"), "strategies: 'errors' is missing"),
        (QUANTIZED, lambda state: own(state, 2)["errors"].append(np.zeros((3, 2))), "expected 1 arrays.* got 2"),
        (QUANTIZED, lambda state: own(state, 0).update(errors=[np.ones((2, 3))]), r"shape \(3, 2\), got .*\(2, 3\)"),
        (
            QUANTIZED,
            lambda state: own(state, 0).update(errors=[np.ones((3, 2), int)]),
            "floating-point .* got int64",
        ),
        (QUANTIZED, lambda state: own(state, 0).update(sum_errors=[np.ones((2, 2))]), "of 4 columns .* with 3"),
        (QUANTIZED, lambda state: own(state, 0).update(sum_errors=[7]), "strategies: .*int"),
        (BLOCKS, lambda state: state["learners"][0]["strategy"].pop("velocity"), "'velocity' is missing"),
        (BLOCKS, lambda state: state["learners"][0]["strategy"].update(velocity=[np.ones(6)]), r"shape \(3, 2\), got .*\(6,\)"),
        (BLOCKS, lambda state: state["learners"][0]["strategy"].update(velocity="fast"), "expected 1 arrays, .* got str 'fast'"),
        (BLOCKS, lambda state: own(state, 2)["learner"].pop("mean"), "lacks 'mean'"),
    ],
)
def test_a_damaged_state_of_a_strategy_changes_nothing(options: Any, damage: Any, message: str, tmp_path: Path) -> None:
    """Whichever worker's state it is; as they are they can be gone on from."""
    data = np.random.default_rng(0).normal(size=(4, 3, 3)).astype(np.float32)

    def work(transport: Any) -> None:
        trainer = linear(transport, **options)
        (w,) = trainer.loss_function.parameters
        for rows in data:
            trainer.train_minibatch(rows[transport.rank :])
        trainer.save_checkpoint(tmp_path / "model")
        trainer.train_minibatch(data[0])
        if transport.rank == 0:
            model, state = read_checkpoint(tmp_path / "model")
            damage(state)
            write_checkpoint(tmp_path / "damaged", C.Function.load(model), state)
        transport.barrier()
        before, learner, samples = (
            w.value,
            to_bytes(trainer.parameter_learners[0].create_checkpoint()),
            trainer.total_number_of_samples_seen,
        )
        with pytest.raises(RuntimeError, match=message):
            trainer.restore_from_checkpoint(tmp_path / "damaged")
        assert np.array_equal(w.value, before)
        assert to_bytes(trainer.parameter_learners[0].create_checkpoint()) == learner
        assert trainer.total_number_of_samples_seen == samples
        trainer.restore_from_checkpoint(tmp_path / "model")

    run_workers(3, work)


def test_workers_cannot_go_on_where_each_waits_for_what_another_has_not_begun() -> None:
    assert cannot_go_on([at([5, 2], [0, 5]), at([4, 3], [1, 3])])
    assert cannot_go_on([at([5, 2], [0, 5]), at([4, 3], [1, 3]), at([5, 2], [0, 5])])
    assert not cannot_go_on([at([5, 2], [0, 5]), at([5, 2], [0, 5])]), "all are in the same one"
    assert not cannot_go_on([at([5, 2], [0, 5]), at([4, 2])]), "the second computes"
    assert not cannot_go_on([at([5, 2], [0, 5]), at([4, 3], [1, 3], computes=True)]), "a thread of the second computes"
    assert not cannot_go_on([at([6, 2], [0, 6]), at([5, 2], [0, 5])]), "what the second waits for has been begun by all"
    assert not cannot_go_on([at([5, 2], [0, 5]), at([4, 3], [1, 3]), at([5, 3])]), "the third may begin what the first waits for"


def test_variables_are_checked_with_their_names() -> None:
    assert number_in("N", 300.0, {}) == number_in("N", 300.0, {"N": " "}) == 300
    assert number_in("N", 300.0, {"N": "0.5"}) == 0.5
    for text in ("abc", "-1", "nan", "5s"):
        with pytest.raises(ValueError, match=f"environment variable N must hold a number, 0 or more, got '{text}'"):
            number_in("N", 1.0, {"N": text})
    assert whole_in("N", {"N": ""}) is None
    for text in ("abc", "-1", "1.5", "²"):
        with pytest.raises(ValueError, match="environment variable N must hold a whole number"):
            whole_in("N", {"N": text})
    assert switch_in("N", True, {"N": ""})
    assert not switch_in("N", True, {"N": "0"})
    with pytest.raises(ValueError, match="environment variable N must be 0 or 1, got 'yes'"):
        switch_in("N", True, {"N": "yes"})
    assert not is_launched({"OMPI_COMM_WORLD_SIZE": "", "PMIX_RANK": "", "SLURM_STEP_NUM_TASKS": ""})
    with pytest.raises(ValueError, match="OMPI_COMM_WORLD_RANK"):
        launched_rank({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "x"})
