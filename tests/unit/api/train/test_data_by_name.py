"""Training and testing on data whose columns have names, and on what is iterated over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import cntk as C

RANDOM = np.random.default_rng(3)
POINTS = RANDOM.normal(size=(200, 2)).astype(np.float32)
LABELS = (POINTS[:, 0] > 0).astype(np.int64)
TABLE = {"label": LABELS, "other": ["text"] * 200, "points": POINTS}


def criterion(features: str = "points", label: str = "label", **options: Any) -> Any:
    x, y = C.input_variable(2, name=features, **options), C.input_variable(2, name=label, **options)
    z = C.layers.Dense(2, init=0)(x)
    return C.combine([C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)])


def trained(loss: Any, data: Any, **options: Any) -> Any:
    return loss.train(data, parameter_learners=[C.sgd(loss.parameters, 0.5)], **options)


def frame() -> Any:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    return pandas.DataFrame({"points_1": POINTS[:, 1], "points_0": POINTS[:, 0], "other": "text", "label": LABELS})


def rows() -> Iterator[dict[str, Any]]:
    return ({"points": point.tolist(), "label": label} for point, label in zip(POINTS, LABELS, strict=True))


def loader() -> Any:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    data = torch.utils.data.TensorDataset(torch.from_numpy(POINTS), torch.from_numpy(LABELS))
    return torch.utils.data.DataLoader(data, batch_size=30)


@pytest.mark.parametrize("data", [lambda: TABLE, frame, lambda: rows, lambda: list(rows()), loader, lambda: loader().dataset])
def test_columns_go_to_the_arguments_of_their_names(data: Callable[[], Any]) -> None:
    loss = criterion()
    progress = trained(loss, data(), max_epochs=4, minibatch_size=20)
    assert sum(summary.samples for summary in progress.epoch_summaries) == 800
    assert progress.epoch_summaries[-1].metric < 0.1
    tested = loss.test(data())
    assert tested.samples == 200
    by_arrays = loss.test((POINTS, np.eye(2, dtype=np.float32)[LABELS]))
    assert tested.metric == pytest.approx(by_arrays.metric)


def test_a_dictionary_by_input_is_arrays_in_their_order() -> None:
    x, y = C.input_variable(2), C.input_variable(2)
    loss = C.squared_error(C.layers.Dense(2, init=0)(x), y)
    vectors = np.eye(2, dtype=np.float32)[LABELS]
    assert trained(loss, {y: vectors, x: POINTS}).epoch_summaries[0].samples == 200
    assert loss.test({y: vectors, x: POINTS}) == loss.test((POINTS, vectors))
    with pytest.raises(ValueError, match=r"train: no data for Input\('Input\d+', .*; the criterion takes"):
        trained(loss, {x: POINTS})


def test_validation_and_test_take_them_too() -> None:
    loss = criterion()
    seen: list[tuple[float, int]] = []

    def note(_: int, error: float, samples: int, minibatches: int) -> bool:
        seen.append((error, samples))
        return True

    validation = C.CrossValidationConfig(frame(), criterion=loss, frequency=100, callback=note)
    progress = trained(loss, frame(), callbacks=[validation, C.TestConfig(TABLE, criterion=loss)], minibatch_size=20)
    assert [samples for _, samples in seen] == [200, 200]
    assert progress.test_summary.samples == 200


def test_streams_of_a_source_go_to_the_arguments_of_their_names() -> None:
    source = C.io.from_data(TABLE, ["points", "label"], classes={"label": 2})
    assert sum(summary.samples for summary in trained(criterion(), source, max_epochs=2).epoch_summaries) == 400
    with pytest.raises(ValueError, match="needs streams, one for each argument"):
        trained(criterion("p"), source)


def test_sequences_of_class_numbers_go_to_inputs_of_vectors() -> None:
    words, label = C.sequence.input_variable(5, is_sparse=True, name="words"), C.input_variable(2, name="label")
    z = C.layers.Sequential([C.layers.Embedding(3), C.layers.Fold(C.layers.RNNStep(4)), C.layers.Dense(2)])(words)
    loss = C.cross_entropy_with_softmax(z, label)
    data = {"words": [[0, 1], [4], [3, 2, 1]], "label": ["yes", "no", "yes"]}
    assert loss.train(data, parameter_learners=[C.sgd(loss.parameters, 0.1)], max_epochs=3).epoch_summaries[0].samples == 9


def test_what_has_no_column_is_told() -> None:
    told = r"there is no column for the argument Input\('p', .*there are 'label', 'other', .*from_data\(data, {'p': \['label', \.\.\.\]"
    with pytest.raises(ValueError, match=told):
        trained(criterion("p"), TABLE)


def test_generators_end_and_say_so() -> None:
    with pytest.raises(ValueError, match="gives its data once, so there are no 2 sweeps"):
        trained(criterion(), rows(), max_epochs=2)
    with pytest.warns(UserWarning, match="the data ended after 200 samples, and 300 were to be trained"):
        trained(criterion(), rows(), max_samples=300)
    with pytest.raises(ValueError, match=r"max_epochs must be whole for data that does not tell how many samples it has, got 1\.5"):
        trained(criterion(), rows, max_epochs=1.5)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("labels", [LABELS, LABELS.tolist(), LABELS[:, None].astype(np.float32)], ids=["array", "list", "column"])
def test_numbers_of_classes_are_explained(labels: Any, is_sparse: bool) -> None:
    x, y = C.input_variable(2), C.input_variable(2, is_sparse=is_sparse)
    loss = C.cross_entropy_with_softmax(C.layers.Dense(2)(x), y)
    trainer = C.Trainer(None, loss, C.sgd(loss.parameters, 0.1))
    if is_sparse and isinstance(labels, np.ndarray) and labels.ndim == 2:
        return  # a column of numbers is no list of classes
    told = r"class numbers become rows of 2 with .*C\.Value\.one_hot\(y.*C\.one_hot\(C\.input_variable\(\(\)\), 2\)"
    with pytest.raises(ValueError, match=told):
        trainer.train_minibatch({x: POINTS, y: labels})
    assert trainer.train_minibatch({x: POINTS, y: C.Value.one_hot(LABELS.tolist(), 2)})


def test_streams_of_class_numbers_are_explained() -> None:
    source = C.io.from_data(TABLE, ["points", "label"])
    with pytest.raises(ValueError, match=r"of the stream are \(1,\).*say so where the source is made: classes={column: 2}"):
        trained(criterion(), source)


def test_names_are_told_with_their_argument_and_how_to_number_them() -> None:
    names = np.array(["red", "green"] * 100, dtype=object)
    with pytest.raises(ValueError, match=r"train and test: Input\('label', .*got str 'red' at \[0\]; names become numbers with np.unique"):
        trained(criterion(), (POINTS, names))
    numbers = np.unique(names, return_inverse=True)[1]
    assert trained(criterion(), (POINTS, np.eye(2, dtype=np.float32)[numbers])).epoch_summaries[0].samples == 200
