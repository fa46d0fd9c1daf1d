"""What classifiers and regressors have in common: the network, and how it is trained."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

import cntk as C
from cntk.core.common import random
from cntk.core.common.lock import ForkSafeLock
from cntk.eval.predictor import Predictor
from cntk.sklearn.inputs import as_input, checked_inputs, input_for
from cntk.sklearn.training import Callbacks, Epoch, ShuffledData, train

BATCH_SIZE = 32

_seeding = ForkSafeLock()
"""Seeds are chosen for the whole process: one network is made at a time."""


class Network(BaseEstimator, ABC):
    """Base class of estimators; its arguments are those of :class:`~cntk.sklearn.Classifier`."""

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
        callbacks: Any = None,
        warm_start: bool = False,
        dtype: Any = None,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.hidden = hidden
        self.activation = activation
        self.dropout = dropout
        self.learner = learner
        self.learning_rate = learning_rate
        self.l2 = l2
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.tol = tol
        self.patience = patience
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.dtype = dtype
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = self.model is not None
        return tags

    # ---- for the estimators ----

    @abstractmethod
    def _targets(self, y: Any, outputs: int) -> Any:
        """What the network is to give for y, an array with a row for each."""

    @abstractmethod
    def _criterion(self, scores: Any, target: Any) -> tuple[Any, Any]:
        """Loss and metric of each row."""

    def _stratified_by(self, y: Any) -> Any:
        """What a validation set has the same shares of; None for nothing."""
        return None

    # ---- fitting ----

    def _require_valid(self) -> None:
        """Check the arguments.

        Raises:
            ValueError: one is out of its range.
        """
        name = type(self).__name__
        for argument, least in (("max_epochs", 1), ("patience", 1)):
            given = getattr(self, argument)
            if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < least:
                raise ValueError(f"{name}: {argument} must be a whole number of {least} at least, got {given!r}")
        if self.batch_size != "auto" and (not isinstance(self.batch_size, (int, np.integer)) or self.batch_size < 1):
            raise ValueError(f"{name}: batch_size must be 'auto' or a whole number of 1 at least, got {self.batch_size!r}")
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"{name}: validation_fraction must lie between 0 and 1, got {self.validation_fraction!r}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"{name}: dropout must lie in [0, 1), got {self.dropout!r}")
        if self.dtype is not None and np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(f"{name}: dtype must be float32, float64 or None, got {self.dtype!r}")

    def _fit(self, X: Any, y: Any, sample_weight: Any, outputs: int, goes_on: bool, epochs: int) -> None:
        """Train on checked data.

        Args:
            X, y: the data.
            sample_weight: a weight for each row, or None.
            outputs: how many the network has.
            goes_on: whether the network is trained on, if there is one.
            epochs: at most.
        """
        draw = check_random_state(self.random_state).randint
        seed = int(draw(2**31 - 1))
        if sample_weight is not None:
            there = np.flatnonzero(sample_weight)
            X, y, sample_weight = _taken(X, there), y[there], sample_weight[there]
        if not (goes_on and hasattr(self, "model_")):
            self._make(X, outputs, seed)
        validation = None
        if self.early_stopping and epochs > 1:
            X, y, sample_weight, validation = self._split(X, y, sample_weight, int(draw(2**31 - 1)))
        self._train(X, y, sample_weight, validation, epochs, seed)

    def _make(self, X: Any, outputs: int, seed: int) -> None:
        """Make the network and the learner."""
        with _seeding:
            before = random.create_checkpoint()
            random.reset_random_seed(seed)
            try:
                x = input_for(X)
                with C.default_options(dtype=x.dtype):
                    self.model_ = self._layers(outputs)(x)
                if self.model_.shape != (outputs,):
                    raise ValueError(
                        f"{type(self).__name__}: the model must give {outputs} numbers for each row, got the shape {self.model_.shape}; "
                        "its last layer is to be C.layers.Dense(outputs)"
                    )
                self.learner_ = self._learner(self.model_.parameters)
            finally:
                random.restore_from_checkpoint(before)
        self.input_shape_ = tuple(x.shape)
        self.loss_curve_: list[float] = []
        self.validation_scores_: list[float] = []
        self.n_iter_ = self._passes = 0

    def _layers(self, outputs: int) -> Any:
        name = type(self).__name__
        if self.model is not None:
            if isinstance(self.model, C.Function) or not callable(self.model):
                raise ValueError(f"{name}: model is a function that makes layers, such as lambda outputs: C.layers.Dense(outputs)")
            return self.model(outputs)
        if isinstance(self.activation, str) and not hasattr(C, self.activation):
            raise ValueError(f"{name}: activation must be an operator or its name, such as 'relu' or 'tanh', got {self.activation!r}")
        hidden = [self.hidden] if isinstance(self.hidden, (int, np.integer)) else list(self.hidden)
        activation = getattr(C, self.activation) if isinstance(self.activation, str) else self.activation
        layers: list[Any] = []
        for size in hidden:
            layers.append(C.layers.Dense(int(size), activation=activation))
            if self.dropout:
                layers.append(C.layers.Dropout(self.dropout))
        return C.layers.Sequential([*layers, C.layers.Dense(outputs)])

    def _learner(self, parameters: Any) -> Any:
        if callable(self.learner):
            return self.learner(parameters)
        rate = C.learning_parameter_schedule(self.learning_rate)
        options: dict[str, Any] = {"l2_regularization_weight": self.l2, "minibatch_size": C.learners.IGNORE}  # of the mean gradient
        if self.learner == "adam":
            return C.adam(parameters, rate, C.momentum_schedule(0.9), variance_momentum=C.momentum_schedule(0.999), **options)
        if self.learner == "sgd":
            return C.nesterov(parameters, rate, C.momentum_schedule(0.9), unit_gain=False, **options)
        raise ValueError(f"{type(self).__name__}: learner must be 'adam', 'sgd' or a function of the parameters, got {self.learner!r:.80}")

    def _split(self, X: Any, y: Any, sample_weight: Any, seed: int) -> tuple[Any, Any, Any, tuple[Any, Any, Any]]:
        """Rows to train on, and those to validate on."""
        places = np.arange(_rows(X))
        learned, kept = train_test_split(places, test_size=self.validation_fraction, random_state=seed, stratify=self._stratified_by(y))
        weights = (None, None) if sample_weight is None else (sample_weight[learned], sample_weight[kept])
        return _taken(X, learned), y[learned], weights[0], (_taken(X, kept), y[kept], weights[1])

    def _train(self, X: Any, y: Any, weights: Any, validation: Any, epochs: int, seed: int) -> None:
        outputs, dtype = self.model_.shape[0], self.model_.dtype
        target = C.input_variable(outputs, dtype, name="y")
        loss, metric = self._criterion(self.model_, target)
        x = self.model_.arguments[0]
        arguments, arrays = [x, target], [as_input(x, X), self._targets(y, outputs).astype(dtype)]
        if weights is not None:
            weight = C.input_variable((), dtype, name="weight")
            loss = C.element_times(loss, weight)
            arguments.append(weight)
            arrays.append(np.asarray(weights / weights.mean(), dtype))
        callbacks, epoch = Callbacks(type(self).__name__, self.callbacks), Epoch()
        trainer = C.Trainer(self.model_, (loss, metric), self.learner_, [epoch, *callbacks.writers])
        data = ShuffledData(arrays, arguments, trainer.loss_function.output, seed, self._passes)
        watch = _Watch(self, epoch, validation, callbacks)
        rows = data.length
        size = min(BATCH_SIZE if rows > 1000 else 200, rows) if self.batch_size == "auto" else int(self.batch_size)
        train(trainer, data, size, epochs, callbacks, watch.after_epoch)
        watch.finish()

    # ---- predicting ----

    def _scores(self, X: Any) -> Any:
        """What the network gives for each row."""
        check_is_fitted(self, "model_")
        X = as_input(self.model_.arguments[0], checked_inputs(self, X))
        if not isinstance(X, list) and tuple(X.shape[1:]) != self.input_shape_:
            raise ValueError(f"{type(self).__name__}: samples of X have the shape {X.shape[1:]}, and it was fitted to {self.input_shape_}")
        return Predictor(self.model_, batch_rows=1024)(X)


class _Watch:
    """Decides after each epoch whether to go on, and keeps the best parameters where there is validation."""

    def __init__(self, owner: Any, epoch: Epoch, validation: Any, callbacks: Callbacks) -> None:
        self._owner, self._epoch, self._validation, self._functions = owner, epoch, validation, callbacks.functions
        self._best, self._since = -np.inf, 0
        self._kept: list[Any] | None = None

    def after_epoch(self) -> bool:
        """What the estimator knows of its epochs, and whether to go on."""
        owner = self._owner
        owner.n_iter_ += 1
        owner._passes += 1
        owner.loss_curve_.append(self._epoch.loss)
        merit = -self._epoch.loss
        if self._validation is not None:
            X, y, weights = self._validation
            merit = owner.score(X, y, sample_weight=weights)
            owner.validation_scores_.append(merit)
            if self._kept is None or merit > self._best:
                self._kept = [parameter.value for parameter in owner.model_.parameters]
        self._since = 0 if merit > self._best + owner.tol else self._since + 1
        self._best = max(self._best, merit)
        goes_on = [function(owner) is not False for function in self._functions]
        return all(goes_on) and self._since < owner.patience

    def finish(self) -> None:
        """Take the best parameters."""
        if self._kept is not None:
            for parameter, value in zip(self._owner.model_.parameters, self._kept, strict=True):
                parameter.value = value


def _rows(X: Any) -> int:
    return len(X) if isinstance(X, list) else int(X.shape[0])


def _taken(X: Any, places: Any) -> Any:
    return [X[place] for place in places] if isinstance(X, list) else X[places]
