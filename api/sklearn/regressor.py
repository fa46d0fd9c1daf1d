"""The regressor."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

import cntk as C
from cntk.sklearn.inputs import checked_data, checked_weights
from cntk.sklearn.network import Network


class Regressor(RegressorMixin, Network):
    """A network that predicts numbers: of dense layers, or of a model of your own for images and sequences.

    y is an array ``(samples,)`` or ``(samples, outputs)``. It is brought to mean 0 and variance 1 for training, and predictions are brought
    back; X is taken as it is.

    Arguments are those of :class:`~cntk.sklearn.Classifier`, but for what is about classes.

    Attributes:
        model_: the network, which gives numbers of mean 0 and variance 1.
        y_mean_: mean of the targets.
        y_scale_: their standard deviation.
        n_iter_: epochs trained.
        loss_curve_: average loss in each.
        validation_scores_: the score of each, with *early_stopping*.

    Raises:
        ValueError: arguments out of their range, or data that does not fit them.

    >>> from cntk.sklearn import Regressor
    >>> X = np.linspace(-1, 1, 200)[:, np.newaxis]
    >>> regressor = Regressor(hidden=(32,), activation="tanh", learning_rate=0.05, random_state=0).fit(X, 100 + 10 * X[:, 0] ** 2)
    >>> regressor.score(X, 100 + 10 * X[:, 0] ** 2) > 0.9
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Regressor:
        """Train a new network, or with *warm_start* the one there is.

        Args:
            X: the samples.
            y: what is to be predicted.
            sample_weight: how much each sample counts: as if it were there so many times.

        Returns:
            The estimator.

        Raises:
            ValueError: data or arguments do not fit.
        """
        return self._fit_to(X, y, sample_weight, self.warm_start, self.max_epochs)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Regressor:
        """Train for one epoch, and go on with the same network in the next call; mean and variance of y are those of the first.

        Args:
            X, y, sample_weight: see :meth:`fit`.

        Returns:
            The estimator.

        Raises:
            ValueError: data or arguments do not fit.
        """
        return self._fit_to(X, y, sample_weight, True, 1)

    def predict(self, X: Any) -> Any:
        """The numbers predicted for each sample.

        Raises:
            NotFittedError: nothing has been fitted.
            ValueError: X is not of the shape that was fitted.
        """
        found = self._scores(X) * self.y_scale_ + self.y_mean_
        return found[:, 0] if self._is_single else found

    def _fit_to(self, X: Any, y: Any, sample_weight: Any, may_go_on: bool, epochs: int) -> Regressor:
        goes_on = may_go_on and hasattr(self, "model_")
        self._require_valid()
        X, y = checked_data(self, X, y, not goes_on, y_numeric=True)
        weights = checked_weights(self, X, sample_weight)
        y = np.asarray(y, np.float64)
        rows = y.reshape(len(y), -1)
        if not goes_on:
            self._is_single = y.ndim == 1
            self.y_mean_ = np.average(rows, axis=0, weights=weights)
            scale = np.sqrt(np.average((rows - self.y_mean_) ** 2, axis=0, weights=weights))
            self.y_scale_ = np.where(scale > 0, scale, 1.0)
        elif rows.shape[1] != len(self.y_mean_):
            raise ValueError(f"Regressor: y has {rows.shape[1]} numbers for each sample, and it was fitted to {len(self.y_mean_)}")
        self._fit(X, rows, weights, rows.shape[1], goes_on, epochs)
        return self

    def _targets(self, y: Any, outputs: int) -> Any:
        return (np.reshape(y, (len(y), -1)) - self.y_mean_) / self.y_scale_

    def _criterion(self, scores: Any, target: Any) -> tuple[Any, Any]:
        loss = C.squared_error(scores, target)
        return loss, loss
