"""The programs of CNTK's guided tour: logistic regression and digit recognition, in each of the ways the tour writes them."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import cntk

TABLE_LINE = r" +\S+ +\S+ +\S+ +\S+ +(\d+)"
"""Of progress that is printed at minibatches 1, 3, 7, 15, …: average and last loss, average and last metric, samples."""

input_dim_lr = 2
num_classes_lr = 2
input_shape_mn = (28, 28)
num_classes_mn = 10


@pytest.fixture(autouse=True)
def repeatable() -> None:
    cntk.cntk_py.set_fixed_random_seed(1)


def one_hot(classes: Any, count: int) -> Any:
    n = len(classes)
    return scipy.sparse.csr_matrix((np.ones(n, np.float32), (range(n), classes)), shape=(n, count))


# ---- logistic regression ----


def generate_synthetic_data(N: int, seed: int) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    Y = random.integers(num_classes_lr, size=N)
    X = (random.normal(size=(N, input_dim_lr)) + 3) * (Y[:, None] + 1)
    return X.astype(np.float32), one_hot(Y, num_classes_lr)


X_train_lr, Y_train_lr = generate_synthetic_data(20000, 1)
X_test_lr, Y_test_lr = generate_synthetic_data(1024, 2)


def printed_lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def all_match(pattern: str, lines: list[str]) -> bool:
    return all(re.fullmatch(pattern, line) for line in lines)


def test_logistic_regression_with_train_and_test(capsys: pytest.CaptureFixture[str]) -> None:
    model_lr_factory = cntk.layers.Dense(num_classes_lr, activation=None)
    x = cntk.input_variable(input_dim_lr)
    y = cntk.input_variable(num_classes_lr, is_sparse=True)
    model_lr = model_lr_factory(x)

    @cntk.Function
    def criterion_lr_factory(data: Any, label_one_hot: Any) -> Any:
        z = model_lr_factory(data)
        loss = cntk.cross_entropy_with_softmax(z, label_one_hot)
        metric = cntk.classification_error(z, label_one_hot)
        return loss, metric

    criterion_lr = criterion_lr_factory(x, y)
    print("criterion_lr:", criterion_lr)

    learner = cntk.sgd(model_lr.parameters, cntk.learning_parameter_schedule(0.1))
    progress_writer = cntk.logging.ProgressPrinter(0)
    criterion_lr.train((X_train_lr, Y_train_lr), parameter_learners=[learner], callbacks=[progress_writer])
    test_metric_lr = criterion_lr.test((X_test_lr, Y_test_lr), callbacks=[progress_writer]).metric
    assert test_metric_lr < 0.1
    assert model_lr.W.value.shape == (2, 2)

    criterion, *progress, evaluation = printed_lines(capsys)
    assert criterion == "criterion_lr: Composite(Tensor[2], SparseTensor[2]) -> Tuple[Tensor[1], Tensor[1]]"
    assert [line.split() for line in progress[:2]] == [["average", "since"] * 2 + ["examples"], ["loss", "last", "metric", "last"]]
    assert re.fullmatch(" -+", progress[2])
    assert progress[3] == "Learning rate per minibatch: 0.1"
    table = [re.fullmatch(TABLE_LINE, line) for line in progress[4:]]
    assert [int(match[1]) for match in table if match] == [32 * (2**k - 1) for k in range(1, 10)]
    assert evaluation == f"Finished Evaluation [1]: Minibatch[1-32]: metric = {100 * test_metric_lr:.2f}% * 1024;"


def test_a_trained_model_is_called_on_data() -> None:
    x = cntk.input_variable(input_dim_lr)
    y = cntk.input_variable(num_classes_lr, is_sparse=True)
    model_lr_factory = cntk.layers.Dense(num_classes_lr, activation=None)
    z = model_lr_factory(x)
    criterion_lr = cntk.combine([cntk.cross_entropy_with_softmax(z, y), cntk.classification_error(z, y)])
    criterion_lr.train((X_train_lr, Y_train_lr), parameter_learners=[cntk.sgd(z.parameters, cntk.learning_parameter_schedule(0.1))])

    model_lr = model_lr_factory(x)
    assert f"model_lr: {model_lr}" == "model_lr: Dense(Tensor[2]) -> Tensor[2]"
    z = model_lr(X_test_lr[:20])
    label = [label.todense().argmax() for label in Y_test_lr[:20]]
    predicted = [z[i, :].argmax() for i in range(len(z))]
    assert sum(a != b for a, b in zip(label, predicted, strict=True)) <= 4


def test_logistic_regression_with_an_explicit_minibatch_loop(capsys: pytest.CaptureFixture[str]) -> None:
    model_lr = cntk.layers.Dense(num_classes_lr, activation=None)

    @cntk.Function
    def criterion_lr_factory(data: Any, label_one_hot: Any) -> Any:
        z = model_lr(data)
        loss = cntk.cross_entropy_with_softmax(z, label_one_hot)
        metric = cntk.classification_error(z, label_one_hot)
        return loss, metric

    x = cntk.input_variable(input_dim_lr)
    y = cntk.input_variable(num_classes_lr, is_sparse=True)
    criterion_lr = criterion_lr_factory(x, y)
    learner = cntk.sgd(model_lr.parameters, cntk.learning_parameter_schedule(0.1))
    trainer = cntk.Trainer(None, criterion_lr, [learner], [cntk.logging.ProgressPrinter(50)])

    minibatch_size = 32
    for i in range(0, len(X_train_lr), minibatch_size):
        x = X_train_lr[i : i + minibatch_size]
        y = Y_train_lr[i : i + minibatch_size]
        trainer.train_minibatch({criterion_lr.arguments[0]: x, criterion_lr.arguments[1]: y})
    trainer.summarize_training_progress()

    rate, *minibatches, epoch = printed_lines(capsys)
    assert rate == "Learning rate per minibatch: 0.1"
    assert len(minibatches) == 12
    assert all_match(r" Minibatch\[ *\d+- *\d+\]: loss = \d\.\d{6} \* 1600, metric = \d+\.\d\d% \* 1600;", minibatches)
    assert minibatches[1].startswith(" Minibatch[  51- 100]: ")
    assert all_match(
        r"Finished Epoch\[1\]: loss = \d\.\d{6} \* 20000, metric = \d+\.\d\d% \* 20000 \d+\.\d{3}s \( *\d+\.\d samples/s\);", [epoch]
    )

    evaluator = cntk.Evaluator(criterion_lr.outputs[1], [cntk.logging.ProgressPrinter()])
    errors = 0.0
    for i in range(0, len(X_test_lr), minibatch_size):
        x = X_test_lr[i : i + minibatch_size]
        y = Y_test_lr[i : i + minibatch_size]
        errors += minibatch_size * evaluator.test_minibatch({criterion_lr.arguments[0]: x, criterion_lr.arguments[1]: y})
    evaluator.summarize_test_progress()
    assert errors / 1024 < 0.1
    assert printed_lines(capsys) == [f"Finished Evaluation [1]: Minibatch[1-32]: metric = {100 * errors / 1024:.2f}% * 1024;"]


# ---- digits ----


def scikit_learn_digits() -> tuple[Any, Any]:
    """Digits of 8 x 8 pixels, each pixel enlarged to 3 x 3 and a margin of 2 around."""
    from sklearn.datasets import load_digits

    images, classes = load_digits(return_X_y=True)
    enlarged = np.kron(images.reshape(-1, 8, 8) / 16, np.ones((1, 3, 3)))
    return np.pad(enlarged, [(0, 0), (2, 2), (2, 2)]), classes


def mnist_digits(folder: Path) -> tuple[Any, Any]:
    """MNIST's test set."""
    images, labels = (gzip.decompress((folder / f"mnist-t10k-{part}-ubyte.gz").read_bytes()) for part in ("images-idx3", "labels-idx1"))
    return np.frombuffer(images, np.uint8, offset=16).reshape(-1, 28, 28) / 255, np.frombuffer(labels, np.uint8, offset=8)


@pytest.fixture(params=["scikit-learn", "MNIST"])
def digits(request: pytest.FixtureRequest) -> tuple[Any, Any, Any, Any]:
    """Images and one-hot labels: 1,500 to train on, 250 to test on."""
    if request.param == "MNIST":
        folder = request.getfixturevalue("real_data")
        if not (folder / "mnist-t10k-images-idx3-ubyte.gz").exists():
            pytest.skip(f"{folder} holds no mnist-t10k-images-idx3-ubyte.gz")
        images, classes = mnist_digits(folder)
    else:
        pytest.importorskip("sklearn")
        images, classes = scikit_learn_digits()
    chosen = np.random.default_rng(0).permutation(len(images))[:1750]
    X, Y = images[chosen].astype(np.float32), one_hot(classes[chosen], num_classes_mn)
    return X[:1500], Y[:1500], X[1500:], Y[1500:]


def create_model_mn_factory() -> Any:
    with cntk.layers.default_options(activation=cntk.ops.relu, pad=False):
        return cntk.layers.Sequential(
            [
                cntk.layers.Convolution2D((5, 5), num_filters=32, reduction_rank=0, pad=True),
                cntk.layers.MaxPooling((3, 3), strides=(2, 2)),
                cntk.layers.Convolution2D((3, 3), num_filters=48),
                cntk.layers.MaxPooling((3, 3), strides=(2, 2)),
                cntk.layers.Convolution2D((3, 3), num_filters=64),
                cntk.layers.Dense(96),
                cntk.layers.Dropout(dropout_rate=0.5),
                cntk.layers.Dense(num_classes_mn, activation=None),
            ]
        )


def functional() -> tuple[Any, Any]:
    model_mn = create_model_mn_factory()

    @cntk.Function
    def criterion_mn_factory(data: Any, label_one_hot: Any) -> Any:
        z = model_mn(data)
        loss = cntk.cross_entropy_with_softmax(z, label_one_hot)
        metric = cntk.classification_error(z, label_one_hot)
        return loss, metric

    x = cntk.input_variable(input_shape_mn)
    y = cntk.input_variable(num_classes_mn, is_sparse=True)
    return model_mn, criterion_mn_factory(x, y)


def graph() -> tuple[Any, Any]:
    images = cntk.input_variable(input_shape_mn, name="images")
    with cntk.layers.default_options(activation=cntk.ops.relu, pad=False):
        r = cntk.layers.Convolution2D((5, 5), num_filters=32, reduction_rank=0, pad=True)(images)
        r = cntk.layers.MaxPooling((3, 3), strides=(2, 2))(r)
        r = cntk.layers.Convolution2D((3, 3), num_filters=48)(r)
        r = cntk.layers.MaxPooling((3, 3), strides=(2, 2))(r)
        r = cntk.layers.Convolution2D((3, 3), num_filters=64)(r)
        r = cntk.layers.Dense(96)(r)
        r = cntk.layers.Dropout(dropout_rate=0.5)(r)
        model_mn = cntk.layers.Dense(num_classes_mn, activation=None)(r)
    label_one_hot = cntk.input_variable(num_classes_mn, is_sparse=True, name="labels")
    loss = cntk.cross_entropy_with_softmax(model_mn, label_one_hot)
    metric = cntk.classification_error(model_mn, label_one_hot)
    return model_mn, cntk.combine([loss, metric])


def test_the_functional_network_prints_its_types() -> None:
    model_mn, criterion_mn = functional()
    assert str(model_mn) == "Composite(keep: Sequence[tensor]) -> Sequence[tensor]"
    assert str(model_mn(cntk.input_variable(input_shape_mn))) == "Composite(Tensor[28,28]) -> Tensor[10]"
    assert str(criterion_mn) == "Composite(Tensor[28,28], SparseTensor[10]) -> Tuple[Tensor[1], Tensor[1]]"


def test_the_graph_network_prints_its_types() -> None:
    _, criterion_mn = graph()
    assert str(criterion_mn) == "Composite(images: Tensor[28,28], labels: SparseTensor[10]) -> Tuple[Tensor[1], Tensor[1]]"


@pytest.mark.slow
def test_digits_are_recognised(digits: tuple[Any, Any, Any, Any], capsys: pytest.CaptureFixture[str]) -> None:
    X_train_mn, Y_train_mn, X_test_mn, Y_test_mn = digits
    N = len(X_train_mn)
    model_mn, criterion_mn = functional()
    lrs = cntk.learning_parameter_schedule_per_sample([0.004] * 2 + [0.002], epoch_size=N)
    momentums = cntk.momentum_schedule_per_sample([0, 0.9934], epoch_size=N)
    minibatch_sizes = cntk.minibatch_size_schedule([16] * 2 + [32], epoch_size=N)
    learner = cntk.learners.momentum_sgd(model_mn.parameters, lrs, momentums)
    progress_writer = cntk.logging.ProgressPrinter()
    criterion_mn.train(
        (X_train_mn, Y_train_mn), minibatch_size=minibatch_sizes, max_epochs=3, parameter_learners=[learner], callbacks=[progress_writer]
    )
    test_metric_mn = criterion_mn.test((X_test_mn, Y_test_mn), callbacks=[progress_writer]).metric
    assert test_metric_mn < 0.15

    epoch = r"Finished Epoch\[{}\]: loss = \d\.\d{{6}} \* 1500, metric = \d+\.\d\d% \* 1500 \d+\.\d{{3}}s \( *\d+\.\d samples/s\);"
    expected = [
        "Learning rate per 1 samples: 0.004",
        "Momentum per 1 samples: 0.0",
        epoch.format(1),
        "Momentum per 1 samples: 0.9934",
        epoch.format(2),
        "Learning rate per 1 samples: 0.002",
        epoch.format(3),
        rf"Finished Evaluation \[1\]: Minibatch\[1-8\]: metric = {100 * test_metric_mn:.2f}% \* 250;",
    ]
    for line, pattern in zip(printed_lines(capsys), expected, strict=True):
        assert re.fullmatch(pattern, line)


def test_both_ways_of_writing_the_network_train_alike() -> None:
    random = np.random.default_rng(1)
    X = random.random((96, *input_shape_mn), dtype=np.float32)
    Y = one_hot(random.integers(num_classes_mn, size=96), num_classes_mn)
    losses = []
    for create in (functional, graph):
        cntk.cntk_py.set_fixed_random_seed(1)
        model_mn, criterion_mn = create()
        learner = cntk.learners.momentum_sgd(model_mn.parameters, 0.1, 0.9)
        progress = criterion_mn.train((X, Y), minibatch_size=16, max_epochs=2, parameter_learners=[learner])
        losses.append([summary.loss for summary in progress.epoch_summaries])
    assert losses[0] == losses[1]
