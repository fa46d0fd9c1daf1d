"""The guided tour's advanced training: log file, TensorBoard, checkpoints, validation that halves the rate, a test; then deployment.

The tour trains on 54,000 digits for an hour; here there are fewer of them, in smaller minibatches.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import cntk

input_shape_mn = (28, 28)
num_classes_mn = 10

HALVED = r"Improvement of metric from \d\.\d{3} to \d\.\d{3} insufficient\. Halving learning rate to (\S+)\."

pytestmark = pytest.mark.slow


def create_model_mn_factory() -> Any:
    with cntk.layers.default_options(activation=cntk.ops.relu, pad=False):
        return cntk.layers.Sequential(
            [
                cntk.layers.Convolution2D((5, 5), num_filters=8, reduction_rank=0, pad=True),
                cntk.layers.MaxPooling((3, 3), strides=(2, 2)),
                cntk.layers.Convolution2D((3, 3), num_filters=12),
                cntk.layers.MaxPooling((3, 3), strides=(2, 2)),
                cntk.layers.Convolution2D((3, 3), num_filters=16),
                cntk.layers.Dense(32),
                cntk.layers.Dropout(dropout_rate=0.5),
                cntk.layers.Dense(num_classes_mn, activation=None),
            ]
        )


@pytest.fixture(scope="module")
def digits(real_data: Path) -> tuple[Any, ...]:
    """Images and one-hot labels: 400 to train on, 100 to validate on, 250 to test on."""
    if not (real_data / "mnist-t10k-images-idx3-ubyte.gz").exists():
        pytest.skip(f"{real_data} holds no mnist-t10k-images-idx3-ubyte.gz")
    images, labels = (gzip.decompress((real_data / f"mnist-t10k-{part}-ubyte.gz").read_bytes()) for part in ("images-idx3", "labels-idx1"))
    X = (np.frombuffer(images, np.uint8, offset=16)[: 750 * 784].reshape(-1, 28, 28) / 255).astype(np.float32)
    classes = np.frombuffer(labels, np.uint8, offset=8)[:750]
    Y = scipy.sparse.csr_matrix((np.ones(750, np.float32), (range(750), classes)), shape=(750, num_classes_mn))
    return X[:400], Y[:400], X[400:500], Y[400:500], X[500:], Y[500:]


class Tour:
    """The example, and what came of it."""

    folder: Path
    printed: list[str]

    def __init__(self, digits: tuple[Any, ...], max_epochs: int, restore: bool = False) -> None:
        X_train_mn, Y_train_mn, X_cv_mn, Y_cv_mn, X_test_mn, Y_test_mn = digits

        # Create model and criterion function.
        x = cntk.input_variable(input_shape_mn)
        y = cntk.input_variable(num_classes_mn, is_sparse=True)
        self.model_mn = model_mn = create_model_mn_factory()

        @cntk.Function
        def criterion_mn_factory(data: Any, label_one_hot: Any) -> Any:
            z = model_mn(data)
            loss = cntk.cross_entropy_with_softmax(z, label_one_hot)
            metric = cntk.classification_error(z, label_one_hot)
            return loss, metric

        criterion_mn = criterion_mn_factory(x, y)

        # Create the learner.
        N = len(X_train_mn)
        lrs = cntk.learning_parameter_schedule_per_sample([0.006] * 12 + [0.003] * 6 + [0.0015] * 6 + [0.00075], epoch_size=N)
        momentums = cntk.momentum_schedule_per_sample([0] * 3 + [0.9934], epoch_size=N)
        minibatch_sizes = cntk.minibatch_size_schedule([16] * 9 + [32], epoch_size=N)
        self.learner = learner = cntk.learners.momentum_sgd(model_mn.parameters, lrs, momentums)

        # Create progress callbacks for logging to file and TensorBoard event log.
        # Prints statistics for the first 10 minibatches, then for every 50th, to a log file.
        progress_writer = cntk.logging.ProgressPrinter(50, first=10, log_to_file="my.log")
        tensorboard_writer = cntk.logging.TensorBoardProgressWriter(50, log_dir="my_tensorboard_logdir", model=criterion_mn)

        # Create a checkpoint callback.
        # Set restore=True to restart from available checkpoints.
        epoch_size = len(X_train_mn)
        checkpoint_callback_config = cntk.CheckpointConfig("model_mn.cmf", epoch_size, preserve_all=True, restore=restore)

        # Create a cross-validation based training control.
        # This callback function halves the learning rate each time the cross-validation metric
        # improved less than 5% relative, and stops after 6 adjustments.
        self.prev_metric: float = 1  # metric from previous call to the callback. Error=100% at start.
        self.metrics: list[float] = []

        def adjust_lr_callback(index: int, average_error: float, cv_num_samples: int, cv_num_minibatches: int) -> bool:
            self.metrics.append(average_error)
            assert (cv_num_samples, cv_num_minibatches) == (100, 1)
            if (self.prev_metric - average_error) / self.prev_metric < 0.05:  # did metric improve by at least 5% rel?
                learner.reset_learning_rate(cntk.learning_parameter_schedule(learner.learning_rate() / 2, minibatch_size=1))
                if learner.learning_rate() < lrs[0] / (2**7 - 0.1):  # we are done after the 6-th LR cut
                    print(f"Learning rate {learner.learning_rate()} too small. Training complete.")
                    return False  # means we are done
                print(
                    f"Improvement of metric from {self.prev_metric:.3f} to {average_error:.3f} insufficient. "
                    f"Halving learning rate to {learner.learning_rate()}."
                )
            self.prev_metric = average_error
            return True  # means continue

        cv_callback_config = cntk.CrossValidationConfig(
            (X_cv_mn, Y_cv_mn), 3 * epoch_size, minibatch_size=256, callback=adjust_lr_callback, criterion=criterion_mn
        )

        # Callback for testing the final model.
        test_callback_config = cntk.TestConfig((X_test_mn, Y_test_mn), criterion=criterion_mn)

        # Train!
        callbacks = [progress_writer, tensorboard_writer, checkpoint_callback_config, cv_callback_config, test_callback_config]
        self.progress = criterion_mn.train(
            (X_train_mn, Y_train_mn),
            minibatch_size=minibatch_sizes,
            max_epochs=max_epochs,
            parameter_learners=[learner],
            callbacks=callbacks,
        )

        # Progress is available from return value
        self.losses = [summ.loss for summ in self.progress.epoch_summaries]


@pytest.fixture(scope="module")
def tour(digits: tuple[Any, ...], tmp_path_factory: pytest.TempPathFactory) -> Tour:
    """The whole example, run in a folder of its own."""
    folder = tmp_path_factory.mktemp("tour")
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
        tour = Tour(digits, max_epochs=100)
    tour.folder, tour.printed = folder, printed.getvalue().splitlines()
    return tour


def test_the_rate_is_halved_until_training_ends(tour: Tour) -> None:
    redirected, *lines, end = tour.printed
    assert redirected == "Redirecting log to file my.log"
    matches = [re.fullmatch(HALVED, line) for line in lines]
    rates = [float(match[1]) for match in matches if match]
    assert len(rates) == len(lines) > 2
    assert all(rate == before / 2 for before, rate in pairwise(rates))
    assert end == f"Learning rate {rates[-1] / 2} too small. Training complete."
    assert 18 < len(tour.losses) == 3 * len(tour.metrics) < 100


def test_what_train_returns(tour: Tour) -> None:
    assert [summary.samples for summary in tour.progress.epoch_summaries] == [400] * len(tour.losses)
    assert tour.losses[-1] < 1 < tour.losses[0]
    assert tour.metrics[-1] < 0.3
    assert tour.progress.test_summary.metric < 0.3
    assert tour.progress.test_summary.samples == 250


def test_the_log_file(tour: Tour) -> None:
    lines = (tour.folder / "my.log").read_text().splitlines()
    assert lines[:6] == [
        "my.log",
        "CNTKCommandTrainInfo: train : 300",
        "CNTKCommandTrainInfo: CNTKNoMoreCommands_Total : 300",
        "CNTKCommandTrainBegin: train",
        "Learning rate per 1 samples: 0.006",
        "Momentum per 1 samples: 0.0",
    ]
    for i, line in enumerate(lines[6:16], start=1):
        assert re.fullmatch(rf" Minibatch\[ +{i}- +{i}\]: loss = \d\.\d{{6}} \* 16, metric = \d+\.\d\d% \* 16;", line)
    assert re.match(r"Finished Epoch\[1\]: loss = \d\.\d{6} \* 400, metric = \d+\.\d\d% \* 400 ", lines[16])
    validations = [line for line in lines if "Finished Evaluation" in line]
    assert len(validations) == len(tour.metrics) + 1
    for i, metric in enumerate(tour.metrics, start=1):
        assert validations[i - 1] == f"Finished Evaluation [{i}]: Minibatch[1-1]: metric = {100 * metric:.2f}% * 100;"
    assert lines[-1] == validations[-1]
    assert lines[-1].endswith(f"Minibatch[1-8]: metric = {100 * tour.progress.test_summary.metric:.2f}% * 250;")


def test_every_checkpoint_is_kept(tour: Tour) -> None:
    names = {f"model_mn.cmf{i}{end}" for i in ["", *range(len(tour.losses))] for end in ("", ".ckp")}
    assert {file.name for file in tour.folder.iterdir()} == {"my.log", "my_tensorboard_logdir", *names}


def test_tensorboard_reads_the_figures(tour: Tour) -> None:
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulators.EventAccumulator(str(tour.folder / "my_tensorboard_logdir")).Reload()
    assert [event.value for event in events.Scalars("summary/avg_loss")] == pytest.approx(tour.losses, rel=1e-5)
    assert "minibatch/avg_loss" not in events.Tags()["scalars"]  # the file has one every 50 minibatches, no epoch here has so many
    assert events.Tags()["graph"]


def test_deployment(tour: Tour, digits: tuple[Any, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    *_, X_test_mn, Y_test_mn = digits
    x = cntk.input_variable(input_shape_mn)
    model = tour.model_mn(x)
    assert str(tour.model_mn) == "Composite(keep: Sequence[tensor]) -> Sequence[tensor]"
    assert str(model) == "Composite(Tensor[28,28]) -> Tensor[10]"
    model.save("mnist.cmf")

    # At program start, load the model.
    classify_digit = cntk.Function.load("mnist.cmf")

    # To apply model, just call it.
    recognised = 0
    for image_input, label in zip(X_test_mn, Y_test_mn.indices, strict=True):
        scores = classify_digit(image_input)  # call the model function with the input data
        image_class = scores.argmax()  # find the highest-scoring class
        recognised += image_class == label
    assert recognised == round(250 * (1 - tour.progress.test_summary.metric))


def test_a_checkpoint_holds_the_criterion(tour: Tour, digits: tuple[Any, ...]) -> None:
    criterion_mn = cntk.load_model(str(tour.folder / "model_mn.cmf"))
    assert criterion_mn.test(digits[4:]) == tour.progress.test_summary


def test_training_goes_on_at_the_latest_checkpoint(digits: tuple[Any, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cntk.cntk_py.set_fixed_random_seed(1)
    uninterrupted = Tour(digits, max_epochs=3)
    for file in tmp_path.glob("model_mn.cmf*"):
        file.unlink()
    Tour(digits, max_epochs=2)
    for name in ("model_mn.cmf", "model_mn.cmf.ckp"):
        (tmp_path / name).unlink()  # as if it had been stopped before its end
    cntk.cntk_py.set_fixed_random_seed(2)
    resumed = Tour(digits, max_epochs=3, restore=True)
    assert resumed.losses == uninterrupted.losses[2:]
    assert resumed.metrics == uninterrupted.metrics
    assert resumed.progress.test_summary == uninterrupted.progress.test_summary
