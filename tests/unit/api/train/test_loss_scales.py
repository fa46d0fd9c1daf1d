"""Trainers with a loss scale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.plugins.distributed.block_momentum import BlockMomentum
from cntk.plugins.distributed.data_parallel import DataParallel
from cntk.plugins.distributed.quantized import QuantizedDataParallel
from cntk.testing.strategies import run_workers
from cntk.train.distributed import DistributedLearner


def trainer_of(
    loss_scale: Any, rate: float = 1.0, dtype: Any = np.float16, wrap: Any = lambda learner: learner, in_float16: bool = False
) -> Any:
    x, w = C.input_variable(2, dtype=dtype), C.parameter(2, dtype=dtype)
    loss = C.reduce_sum(w * x)
    learner = C.sgd([w], C.learning_parameter_schedule_per_sample(rate))
    return C.Trainer(None, loss if in_float16 else C.cast(loss, np.float32), wrap(learner), loss_scale=loss_scale)


def weights(trainer: Any) -> Any:
    (parameter,) = trainer.loss_function.parameters
    return parameter.value


def test_gradients_beyond_float16_are_learnt_from() -> None:
    """Multiplied in the graph, as by a deep network, to what is 0 in float16 on its way."""
    x, w = C.input_variable(1, dtype=np.float16), C.parameter(1, dtype=np.float16)
    tiny = np.float16(2.0**-13)
    for scale, expected in ((None, 0.0), (2.0**12, -2.0), ("dynamic", -1.0)):  # 2.0**16, at first, is beyond float16
        w.value = np.float16([0])
        loss = C.cast(C.reduce_sum(w * x * tiny * tiny), np.float32)
        trainer = C.Trainer(None, loss, C.sgd([w], C.learning_parameter_schedule_per_sample(2.0**26)), loss_scale=scale)
        for _ in range(2):
            trainer.train_minibatch({x: np.float16([[1]])})
        assert w.value[0] == expected, scale


def test_the_loss_that_is_told_is_not_scaled() -> None:
    trainer = trainer_of(64)
    trainer.train_minibatch(np.float16([[1, 2]]))
    trainer.train_minibatch(np.float16([[1, 2]]))
    assert trainer.previous_minibatch_loss_average == -5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_changes_no_bit_where_nothing_is_lost(dtype: Any) -> None:
    random = np.random.default_rng(0)
    trainers = [trainer_of(scale, 0.1, dtype) for scale in (None, 1024, "dynamic")]
    for _ in range(5):
        data = random.normal(size=(4, 2)).astype(dtype)
        for trainer in trainers:
            trainer.train_minibatch(data)
    first, *others = (weights(trainer) for trainer in trainers)
    assert all(np.array_equal(first, other) for other in others)


def test_a_minibatch_that_is_left_out_does_not_end_a_loop() -> None:
    scale = C.train.LossScale(2.0**17)
    trainer = trainer_of(scale)
    assert trainer.train_minibatch(np.float16([[1, 2]]))
    assert (scale.skipped, scale.value) == (1, 2.0**16)
    assert not weights(trainer).any()
    assert trainer.total_number_of_samples_seen == 1


def test_function_train_takes_it() -> None:
    x, w = C.input_variable(2, dtype=np.float16), C.parameter(2, dtype=np.float16)
    loss = C.cast(C.reduce_sum(w * x), np.float32)
    scale = C.train.LossScale(2.0**17)
    loss.train((np.ones((8, 2), np.float16),), minibatch_size=2, parameter_learners=[C.sgd([w], 0.1)], loss_scale=scale)
    assert scale.skipped == 3


def test_its_state_is_in_checkpoints(tmp_path: Path) -> None:
    scales = [C.train.LossScale(2.0**17, growth_interval=3) for _ in range(2)]
    first, second = map(trainer_of, scales)
    data = np.float16([[1, 2]])
    for _ in range(4):
        first.train_minibatch(data)
    first.save_checkpoint(tmp_path / "model")
    second.restore_from_checkpoint(tmp_path / "model")
    for trainer in (first, second):
        trainer.train_minibatch(data)
    assert scales[0].create_checkpoint() == scales[1].create_checkpoint()
    assert np.array_equal(weights(first), weights(second))
    without = trainer_of(None)
    without.restore_from_checkpoint(tmp_path / "model")
    without.save_checkpoint(tmp_path / "older")
    first.restore_from_checkpoint(tmp_path / "older")


def test_wrong_ones_are_refused() -> None:
    for wrong, kind, message in (
        ("static", TypeError, "'dynamic'"),
        (True, TypeError, "expected a number"),
        (0, ValueError, "above 0"),
        (-1.0, ValueError, "above 0"),
    ):
        with pytest.raises(kind, match=message):
            trainer_of(wrong)
    with pytest.raises(ValueError, match="loss scale of 65536 is beyond the largest float16; compute the loss in float32"):
        trainer_of(65536, in_float16=True)
    trainer_of("dynamic", in_float16=True).train_minibatch(np.float16([[1, 2]]))


def test_learners_with_an_update_of_their_own_are_refused() -> None:
    class Own(C.UserLearner):
        """Does nothing."""

    with pytest.raises(TypeError, match="loss_scale does not go with Own"):
        trainer_of(2, wrap=lambda learner: Own(learner.parameters, C.learning_parameter_schedule(1)))


STRATEGIES = {
    "data parallel": DataParallel,
    "quantised": lambda learner, transport: QuantizedDataParallel(learner, transport, bits=8),
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_workers_leave_out_the_same_minibatches(name: str) -> None:
    """Where the gradients of one of them are not finite."""

    def work(transport: Any) -> tuple[Any, ...]:
        scale = C.train.LossScale(2.0**14, growth_interval=4)
        trainer = trainer_of(scale, 2.0**-8, wrap=lambda learner: DistributedLearner(learner, STRATEGIES[name](learner, transport)))
        found = []
        for step in range(12):
            size = 8 if transport.rank == 1 and step % 5 == 2 else 1
            assert trainer.train_minibatch(np.float16([[size, 1]]) if step != 3 or transport.rank else {})
            found.append((scale.value, scale.skipped, *weights(trainer)))
        return tuple(found)

    first, *others = run_workers(3, work)
    assert first[-1][1] >= 2
    assert np.isfinite(first[-1]).all()
    assert first[-1][2] < 0
    assert all(other == first for other in others)


def test_workers_that_average_models_leave_minibatches_out_by_themselves() -> None:
    def work(transport: Any) -> tuple[int, Any]:
        scale = C.train.LossScale(2.0**14)
        strategy = lambda learner: DistributedLearner(learner, BlockMomentum(learner, transport, block_size=8))  # noqa: E731
        trainer = trainer_of(scale, 2.0**-8, wrap=strategy)
        for _ in range(8):
            trainer.train_minibatch(np.float16([[8 if transport.rank else 1, 1]]))
        trainer.team.synchronize()
        return scale.skipped, weights(trainer).tolist()

    (skipped, values), (others, same) = run_workers(2, work)
    assert (skipped, others) == (0, 2)
    assert values == same


def test_workers_with_other_loss_scales_are_told() -> None:
    def work(transport: Any) -> None:
        with pytest.raises(ValueError, match="loss scale: 2 on worker 0, 4 on worker 1"):
            trainer_of(2 + 2 * transport.rank, wrap=lambda learner: DistributedLearner(learner, DataParallel(learner, transport)))

    run_workers(2, work)
