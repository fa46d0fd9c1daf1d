"""Networks as estimators of scikit-learn."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, make_multilabel_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from cntk.sklearn import Classifier, Regressor

RANDOM = np.random.default_rng(0)
X, Y = load_digits(return_X_y=True)
X = X[:600] / 16
Y = Y[:600]
SEQUENCES = [RANDOM.normal(size=(steps, 2)) for steps in RANDOM.integers(2, 7, size=120)]
DIRECTIONS = np.array(["up" if part[:, 0].sum() > 0 else "down" for part in SEQUENCES])


def recurrent(outputs: int) -> Any:
    return C.layers.Sequential([C.layers.Fold(C.layers.GRU(8)), C.layers.Dense(outputs)])


def convolutional(outputs: int) -> Any:
    return C.layers.Sequential([C.layers.Convolution2D((3, 3), 4, activation=C.relu, pad=True), C.layers.Dense(outputs)])


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@parametrize_with_checks([Classifier(), Regressor()])
def test_estimators_do_what_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_what_is_seeded_is_the_same_and_leaves_the_seeds_of_the_process() -> None:
    before = C.cntk_py.get_random_seed()
    first, second, other = (Classifier(max_epochs=2, dropout=0.3, random_state=seed).fit(X, Y).predict_proba(X) for seed in (1, 1, 2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)
    assert C.cntk_py.get_random_seed() == before


def test_in_pipelines_and_searches_over_processes() -> None:
    pipeline = make_pipeline(StandardScaler(), Classifier(max_epochs=10, batch_size=32, learning_rate=0.01, random_state=0))
    search = GridSearchCV(pipeline, {"classifier__hidden": [(2,), (32,)]}, n_jobs=2, cv=2).fit(X, Y)
    assert search.best_params_ == {"classifier__hidden": (32,)}
    assert search.best_score_ > 0.8
    classifier = Classifier(recurrent, max_epochs=25, learning_rate=0.02, random_state=0)
    assert cross_val_score(classifier, SEQUENCES, DIRECTIONS, cv=2, n_jobs=2).min() > 0.8


def test_is_pickled_and_trained_on(tmp_path: Path) -> None:
    joblib = pytest.importorskip("joblib", reason="joblib is not installed")
    fitted = Classifier(max_epochs=3, random_state=0).fit(X, Y)
    joblib.dump(fitted, tmp_path / "fitted")
    copies = pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "fitted")
    for copied in copies:
        assert np.array_equal(copied.predict_proba(X), fitted.predict_proba(X))
        copied.partial_fit(X, Y)
    fitted.partial_fit(X, Y)
    assert fitted.n_iter_ == 4
    assert all(np.array_equal(copied.predict_proba(X), fitted.predict_proba(X)) for copied in copies)
    assert not hasattr(clone(fitted), "model_")


def test_images() -> None:
    images = X.reshape(-1, 1, 8, 8)
    fitted = Classifier(convolutional, max_epochs=8, batch_size=32, learning_rate=0.01, random_state=0).fit(images, Y)
    assert fitted.score(images, Y) > 0.9
    assert fitted.model_.dtype == np.float32
    with pytest.raises(ValueError, match=r"samples of X have the shape \(4, 4, 4\)|features"):
        fitted.predict(X.reshape(-1, 4, 4, 4))


def test_sequences_of_vectors_numbers_and_words() -> None:
    fitted = Classifier(recurrent, max_epochs=25, learning_rate=0.02, random_state=0).fit(SEQUENCES, DIRECTIONS)
    assert fitted.score(SEQUENCES, DIRECTIONS) > 0.9
    assert set(fitted.predict(SEQUENCES[:10])) <= {"up", "down"}
    numbers = [part[:, 0] for part in SEQUENCES]
    sums = np.array([part.sum() for part in numbers])
    assert Regressor(recurrent, max_epochs=40, learning_rate=0.02, random_state=0).fit(numbers, sums).score(numbers, sums) > 0.8

    def of_words(outputs: int) -> Any:
        return C.layers.Sequential([lambda x: C.one_hot(C.reshape(x, ()), 9), C.layers.Embedding(4), recurrent(outputs)])

    words = [RANDOM.integers(0, 9, size=steps) for steps in RANDOM.integers(2, 6, size=60)]
    has_three = np.array([3 in part for part in words])
    fitted = Classifier(of_words, max_epochs=30, learning_rate=0.05, early_stopping=True, validation_fraction=0.2, random_state=0)
    assert fitted.fit(words, has_three).predict(words).dtype == bool


def test_several_labels_at_once() -> None:
    samples, labels = make_multilabel_classification(n_samples=200, random_state=0)
    fitted = Classifier(random_state=0, class_weight="balanced").fit(samples, labels)
    probabilities = fitted.predict_proba(samples)
    assert probabilities.shape == labels.shape
    assert np.array_equal(fitted.predict(samples), probabilities > 0.5)
    assert (fitted.predict(samples) == labels).mean() > 0.8


def test_several_numbers_at_once_are_brought_back() -> None:
    samples, y = load_diabetes(return_X_y=True)
    both = np.stack([y, 1000 - 5 * y], axis=1)
    fitted = make_pipeline(StandardScaler(), Regressor(random_state=0, max_epochs=100)).fit(samples, both)
    assert fitted.predict(samples).shape == both.shape
    assert fitted.score(samples, both) > 0.4
    assert fitted[-1].fit(samples, y).predict(samples).shape == y.shape


def test_classes_are_weighed() -> None:
    points = np.concatenate([RANDOM.normal(0, 1, (180, 2)), RANDOM.normal(1, 1, (20, 2))])
    rare = np.repeat([0, 1], [180, 20])
    classifiers = [Classifier(random_state=0, class_weight=weight) for weight in (None, "balanced", {0: 1, 1: 100})]
    found = [classifier.fit(points, rare).predict(points).sum() for classifier in classifiers]
    assert found[0] < found[1] < found[2]


def test_weights_count_as_often_as_rows_would() -> None:
    weights = RANDOM.integers(0, 3, size=100)
    options: dict[str, Any] = {"random_state": 0, "max_epochs": 20, "batch_size": 400}
    weighed = Classifier(**options).fit(X[:100], Y[:100], sample_weight=weights)
    repeated = Classifier(**options).fit(np.repeat(X[:100], weights, axis=0), np.repeat(Y[:100], weights))
    assert weighed.predict_proba(X) == pytest.approx(repeated.predict_proba(X), rel=1e-9)


def test_early_stopping_keeps_the_best_epoch() -> None:
    fitted = Classifier(random_state=0, early_stopping=True, patience=3, max_epochs=200, batch_size=32, learning_rate=0.01).fit(X, Y)
    scores = fitted.validation_scores_
    assert fitted.n_iter_ == len(scores) == len(fitted.loss_curve_) < 200
    assert max(scores[-3:]) <= max(scores[:-3]) + fitted.tol


def test_callbacks_take_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    epochs: list[int] = []

    def until_third(estimator: Any) -> bool:
        epochs.append(estimator.n_iter_)
        return bool(estimator.n_iter_ < 3)

    saving = C.CheckpointConfig(str(tmp_path / "model"), frequency=200)
    Classifier(max_epochs=9, random_state=0, callbacks=[until_third, C.logging.ProgressPrinter(tag="fit"), saving]).fit(X, Y)
    assert epochs == [1, 2, 3]
    assert "Finished Epoch[3]: [fit] loss" in capsys.readouterr().out
    assert (tmp_path / "model.ckp").exists()


def test_fit_goes_on_where_it_is_asked_to() -> None:
    fitted = Classifier(random_state=0, max_epochs=2, warm_start=True).fit(X, Y)
    first = fitted.loss_curve_[-1]
    assert fitted.fit(X, Y).n_iter_ == 4
    assert fitted.loss_curve_[-1] < first
    assert Classifier(random_state=0, max_epochs=2).fit(X, Y).fit(X, Y).n_iter_ == 2


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_numbers_keep_their_type(kind: Any) -> None:
    assert Classifier(max_epochs=1).fit(X.astype(kind), Y).model_.dtype == kind
    assert Classifier(max_epochs=1, dtype="float64").fit(X.astype(kind), Y).model_.dtype == np.float64


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_epochs": 0}, "max_epochs must be a whole number of 1 at least, got 0"),
        ({"patience": 1.5}, "patience must be a whole number"),
        ({"batch_size": 0}, "batch_size must be 'auto' or a whole number of 1 at least, got 0"),
        ({"dropout": 1}, r"dropout must lie in \[0, 1\), got 1"),
        ({"validation_fraction": 1}, "validation_fraction must lie between 0 and 1"),
        ({"dtype": "float16"}, "dtype must be float32, float64 or None"),
        ({"learner": "adamw"}, "learner must be 'adam', 'sgd' or a function of the parameters, got 'adamw'"),
        ({"activation": "rellu"}, "activation must be an operator or its name, such as 'relu' or 'tanh', got 'rellu'"),
        ({"model": C.layers.Dense(10)}, "model is a function that makes layers, such as lambda outputs"),
        ({"model": lambda outputs: C.layers.Dense(3)}, r"the model must give 10 numbers for each row, got the shape \(3,\)"),
    ],
)
def test_wrong_arguments_are_told(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=f"Classifier: {told}"):
        Classifier(**options).fit(X, Y)


def test_wrong_data_are_told() -> None:
    with pytest.raises(TypeError, match=r"callbacks are progress writers, .*; got int 3\. Validation is early_stopping=True"):
        Classifier(callbacks=3).fit(X, Y)
    with pytest.raises(ValueError, match="X has sequences, which the dense network that is made by default does not take; give a model"):
        Classifier().fit(SEQUENCES, DIRECTIONS)
    fitted = Classifier(recurrent, max_epochs=1).fit(SEQUENCES, DIRECTIONS)
    with pytest.raises(ValueError, match="the estimator was fitted to sequences, and X has samples"):
        fitted.predict(X)
    with pytest.raises(ValueError, match=r"steps of X must have one shape, got \[\(2,\), \(3,\)\]"):
        fitted.predict([np.zeros((2, 3)), np.zeros((1, 3))])
    with pytest.raises(ValueError, match="sequence 1 of X has values that are NaN"):
        fitted.predict([np.zeros((2, 2)), np.full((1, 2), np.nan)])
    with pytest.raises(ValueError, match=r"y has \[7\], which are not among the classes \[0, 1\]"):
        Classifier(max_epochs=1).partial_fit(X[:2], [0, 1], classes=[0, 1]).partial_fit(X[:1], [7])
    with pytest.raises(NotFittedError):
        Classifier().predict(X)
