"""The classifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import _check_partial_fit_first_call, check_classification_targets, type_of_target, unique_labels

import cntk as C
from cntk.sklearn.inputs import checked_data, checked_weights
from cntk.sklearn.network import Network


class Classifier(ClassifierMixin, Network):  # type: ignore[misc]
    """A network that tells classes apart: of dense layers, or of a model of your own for images and sequences.

    X is an array or sparse matrix ``(samples, features)``; with a *model* also an array ``(samples, *shape)``, or a list of sequences,
    arrays ``(steps, *shape)`` or ``(steps,)`` of unequal lengths. y are classes of any kind, or, for samples that have several labels at
    once, an array ``(samples, labels)`` of 0 and 1. Features are taken as they are: put a ``StandardScaler`` before it in a ``Pipeline``.

    Args:
        model: makes the layers of a network, given the number of its outputs: ``lambda outputs: C.layers.Sequential([...,
            C.layers.Dense(outputs)])``. None for dense layers.
        hidden: sizes of the hidden dense layers.
        activation: their activation, or its name.
        dropout: part of their values that is dropped in training.
        learner: ``'adam'``; ``'sgd'``, with Nesterov's momentum of 0.9; or a function that makes a learner of the parameters.
        learning_rate: of these, for the mean gradient of a minibatch.
        l2: weight of the squares of all parameters, halved, in the loss.
        batch_size: rows in a minibatch; ``'auto'`` for 32, and 200 where there are 1000 rows or fewer.
        max_epochs: passes over the data, at most.
        tol: by how much the loss, or with *early_stopping* the score, must improve to count.
        patience: epochs without improvement after which training ends.
        early_stopping: whether the score of a part of the data that is kept apart decides, whose best epoch is kept.
        validation_fraction: that part.
        class_weight: by class its weight, or ``'balanced'`` for weights that make all classes equal; of several labels at once as
            ``sklearn.utils.compute_sample_weight`` has it.
        callbacks: progress writers, a ``CheckpointConfig``, a ``TestConfig``, and functions that are called with the estimator after each
            epoch, of which one that returns False ends training; None, one or a list.
        warm_start: whether ``fit`` goes on from the network of the ``fit`` before.
        dtype: float32 or float64, of data and parameters; None for float32 with a *model* or where X is, and float64 else.
        random_state: seed of initial values, dropout, orders and validation; an int gives the same network each time.

    Attributes:
        classes_: the classes, sorted.
        model_: the network, a :class:`~cntk.Function` that gives unnormalised log probabilities; ``model_.save`` keeps it.
        n_iter_: epochs trained.
        loss_curve_: average loss in each.
        validation_scores_: the score of each, with *early_stopping*.

    Raises:
        ValueError: arguments out of their range, or data that does not fit them.

    >>> from cntk.sklearn import Classifier
    >>> X, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], ["even", "odd", "odd", "even"]
    >>> classifier = Classifier(hidden=(16,), learning_rate=0.05, random_state=0).fit(X, y)
    >>> classifier.predict(X)
    array(['even', 'odd', 'odd', 'even'], dtype='<U4')
    >>> classifier.predict_proba(X).shape
    (4, 2)
    """

    def __init__(
        self,
        model: Callable[[int], Any] | None = None,
        *,
        hidden: Any = (100,),
        activation: Any = "relu",
        dropout: float = 0.0,
        learner: Any = "adam",
        learning_rate: float = 0.001,
        l2: float = 1e-4,
        batch_size: int | str = "auto",
        max_epochs: int = 200,
        tol: float = 1e-4,
        patience: int = 10,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        class_weight: Any = None,
        callbacks: Any = None,
        warm_start: bool = False,
        dtype: Any = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            model,
            hidden=hidden,
            activation=activation,
            dropout=dropout,
            learner=learner,
            learning_rate=learning_rate,
            l2=l2,
            batch_size=batch_size,
            max_epochs=max_epochs,
            tol=tol,
            patience=patience,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            callbacks=callbacks,
            warm_start=warm_start,
            dtype=dtype,
            random_state=random_state,
        )
        self.class_weight = class_weight

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Classifier:
        """Train a new network, or with *warm_start* the one there is.

        Args:
            X: the samples.
            y: their classes, or of each label whether they have it.
            sample_weight: how much each sample counts: as if it were there so many times.

        Returns:
            The estimator.

        Raises:
            ValueError: data or arguments do not fit.
        """
        goes_on = self.warm_start and hasattr(self, "model_")
        self._require_valid()
        X, y = checked_data(self, X, y, not goes_on)
        check_classification_targets(y)
        if goes_on:
            self._require_known(y)
        else:
            self._learn_classes(y, None)
        self._fit(X, y, self._weights(X, y, sample_weight), self._outputs, goes_on, self.max_epochs)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Classifier:
        """Train for one epoch, and go on with the same network in the next call.

        Args:
            X, y, sample_weight: see :meth:`fit`.
            classes: all classes there will be; needed in the first call.

        Returns:
            The estimator.

        Raises:
            ValueError: data or arguments do not fit, or there is a class that is not among *classes*.
        """
        self._require_valid()
        is_first = _check_partial_fit_first_call(self, classes) if not hasattr(self, "model_") or classes is not None else False
        goes_on = hasattr(self, "model_") and not is_first
        X, y = checked_data(self, X, y, not goes_on)
        check_classification_targets(y)
        if not goes_on:
            self._learn_classes(y, classes)
        self._require_known(y)
        self._fit(X, y, self._weights(X, y, sample_weight), self._outputs, goes_on, 1)
        return self

    def predict(self, X: Any) -> Any:
        """The class of each sample; of several labels at once an array of 0 and 1.

        Raises:
            NotFittedError: nothing has been fitted.
            ValueError: X is not of the shape that was fitted.
        """
        scores = self._scores(X)
        if self._has_labels:
            return (scores > 0).astype(int)
        return self.classes_[scores.argmax(axis=1)]

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class, or of each label, an array ``(samples, classes)``.

        Raises:
            NotFittedError: nothing has been fitted.
            ValueError: X is not of the shape that was fitted.
        """
        scores = self._scores(X).astype(np.float64)
        if self._has_labels:
            return 1 / (1 + np.exp(-scores))
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    # ---- targets ----

    @property
    def _has_labels(self) -> bool:
        """Whether samples may have several labels at once."""
        return bool(self._binarizer.y_type_.startswith("multilabel"))

    @property
    def _outputs(self) -> int:
        return max(len(self.classes_), 1)

    def _learn_classes(self, y: Any, classes: Any) -> None:
        self._binarizer = LabelBinarizer().fit(y if classes is None or type_of_target(y).startswith("multilabel") else np.asarray(classes))
        self.classes_ = self._binarizer.classes_

    def _require_known(self, y: Any) -> None:
        unknown = np.setdiff1d(unique_labels(y), self.classes_)
        if len(unknown) and not self._has_labels:
            raise ValueError(f"Classifier: y has {unknown[:5].tolist()}, which are not among the classes {self.classes_.tolist()[:20]}")

    def _targets(self, y: Any, outputs: int) -> Any:
        found = self._binarizer.transform(y)
        if self._has_labels or outputs > 2:
            return found
        return np.eye(outputs)[found[:, 0] if outputs == 2 else np.zeros(len(y), int)]

    def _criterion(self, scores: Any, target: Any) -> tuple[Any, Any]:
        if not self._has_labels:
            return C.cross_entropy_with_softmax(scores, target), C.classification_error(scores, target)
        loss = C.reduce_sum(C.log_add_exp(scores, 0 * scores) - scores * target)
        return loss, C.reduce_mean(C.not_equal(C.greater(scores, 0), target))

    def _stratified_by(self, y: Any) -> Any:
        return None if self._has_labels else y

    def _weights(self, X: Any, y: Any, sample_weight: Any) -> Any:
        weights = checked_weights(self, X, sample_weight)
        if self.class_weight is None:
            return weights
        by_class = compute_sample_weight(self.class_weight, y)
        return by_class if weights is None else by_class * weights
