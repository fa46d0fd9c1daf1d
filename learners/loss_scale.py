"""Loss scaling: a factor on gradients that keeps small ones from underflowing in float16."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..core.types.sparse import RowSparse

if TYPE_CHECKING:
    from .interface import LearnerInterface

LARGEST, SMALLEST = 2.0**100, 2.0**-20
"""Bounds of a loss scale: it never grows above the first, and falling below the second means that training has diverged."""


class LossScale:
    """A factor by which the gradient of the loss is scaled, and by which learners divide gradients once these are float32.

    The reported loss is not scaled.  The factor is adapted during training: when gradients are not finite, the learner skips the minibatch
    and the factor is reduced; after ``growth_interval`` consecutive minibatches with finite gradients it is increased.  Arguments and rule
    are those of PyTorch's ``GradScaler``.

    Args:
        init_scale: initial factor.
        growth_factor, backoff_factor: multipliers by which the factor is increased and reduced.
        growth_interval: number of consecutive minibatches with finite gradients after which the factor is increased; with None it is
            constant, and gradients are not checked.

    Attributes:
        value: the factor for the next minibatch.
        skipped: number of minibatches that have been skipped.
        overflowed: whether a learner has skipped the current minibatch.

    Raises:
        ValueError: a number is out of range.

    >>> x, w = C.input_variable(2, dtype=np.float16), C.parameter(2, dtype=np.float16)
    >>> loss = C.cast(C.reduce_sum(w * x), np.float32)
    >>> scale = C.train.LossScale(init_scale=2**20)
    >>> trainer = C.Trainer(None, loss, C.sgd([w], 1), loss_scale=scale)
    >>> for _ in range(6):
    ...     updated = trainer.train_minibatch({x: np.float16([[1, 2]])})
    >>> scale.value, scale.skipped, w.value.tolist()      # 2**20 and more are beyond float16
    (16384.0, 6, [0.0, 0.0])
    """

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int | None = 2000,
    ) -> None:
        if not 0 < init_scale <= LARGEST:
            raise ValueError(f"loss scale: expected a number above 0 and at most 2**100, got {init_scale!r}")
        if not (growth_factor > 1 and 0 < backoff_factor < 1):
            raise ValueError(
                f"loss scale: growth_factor is above 1 and backoff_factor between 0 and 1, got {growth_factor!r} and {backoff_factor!r}"
            )
        if growth_interval is not None and growth_interval < 1:
            raise ValueError(f"loss scale: growth_interval is a number of minibatches, or None, got {growth_interval!r}")
        self._first, self._growth, self._backoff, self._interval = float(init_scale), growth_factor, backoff_factor, growth_interval
        self.value = self._first
        self.skipped = self._finite = 0
        self.overflowed = False

    @classmethod
    def of(cls, given: Any) -> LossScale | None:
        """Return the loss scale for ``Trainer(..., loss_scale=given)``: None, a constant number, ``'dynamic'``, or a loss scale.

        Raises:
            TypeError, ValueError: *given* is none of these.
        """
        if given is None or isinstance(given, LossScale):
            return given
        if isinstance(given, str) and given == "dynamic":
            return cls()
        if isinstance(given, bool) or not isinstance(given, (int, float)):
            raise TypeError(f"loss_scale: expected a number, 'dynamic', a LossScale or None, got {type(given).__name__} {given!r:.80}")
        return cls(given, growth_interval=None)

    @property
    def is_dynamic(self) -> bool:
        """Whether the factor is adapted during training."""
        return self._interval is not None

    def settings(self) -> str:
        """Return a description of the arguments, which must be the same on all workers of a distributed training."""
        return (
            f"{self._first:g}, times {self._growth:g} after {self._interval}, {self._backoff:g}" if self.is_dynamic else f"{self._first:g}"
        )

    @contextmanager
    def at_work(self, learners: Iterable[LearnerInterface]) -> Iterator[None]:
        """Context manager in which the gradients that learners receive are scaled by this factor."""
        given = list(learners)
        for learner in given:
            learner.loss_scale = self
        try:
            yield
        finally:
            for learner in given:
                learner.loss_scale = None

    def admits(self, xp: Any, gradients: Iterable[Any]) -> bool:
        """Whether gradients are finite, or are not checked; a check reads one number from the device."""
        if not self.is_dynamic:
            return True
        arrays = (gradient.values if isinstance(gradient, RowSparse) else gradient for gradient in gradients)
        total = xp.zeros(())
        for array in arrays:
            if array is not None and array.size:
                total = total + 0.0 * array.max() + 0.0 * array.min()  # 0 times what is not finite is NaN
        return bool(total == 0)

    def finish(self) -> bool:
        """Adapt the factor at the end of a minibatch, and return whether a learner has skipped it.

        Raises:
            RuntimeError: gradients are not finite even with the smallest factor.
        """
        if not self.overflowed:
            self._finite += 1
            if self._finite == self._interval:
                self.value, self._finite = min(self.value * self._growth, LARGEST), 0
            return False
        self.overflowed, self._finite = False, 0
        self.skipped += 1
        self.value *= self._backoff
        if self.value < SMALLEST:
            raise RuntimeError(
                f"gradients are not finite even with a loss scale of {self.value / self._backoff:g}: training has diverged, "
                "or data or loss are not finite; C.debugging.set_checked_mode(True) finds the first operator whose result is not a number"
            )
        return True

    def create_checkpoint(self) -> dict[str, Any]:
        """Return the state of the loss scale."""
        return {"value": self.value, "finite": self._finite, "skipped": self.skipped}

    def check_checkpoint(self, checkpoint: Any) -> None:
        """Check that a checkpoint has the form that :meth:`create_checkpoint` returns.

        Raises:
            RuntimeError: it has not.
        """
        numbers = [checkpoint.get(key) for key in ("value", "finite", "skipped")] if isinstance(checkpoint, Mapping) else []
        if not numbers or any(isinstance(number, bool) or not isinstance(number, (int, float)) or number < 0 for number in numbers):
            raise RuntimeError(f"expected the state of a loss scale, got {checkpoint!r:.80}")

    def restore_from_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Restore the state from a checkpoint; a constant loss scale ignores it."""
        if self.is_dynamic:
            self.value, self._finite, self.skipped = float(checkpoint["value"]), int(checkpoint["finite"]), int(checkpoint["skipped"])

    def __repr__(self) -> str:
        return f"LossScale({self.settings()}; now {self.value:g})"
