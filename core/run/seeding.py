"""Where backward passes start: what the gradients of the roots begin with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Seeding:
    """Fills the gradients of roots with a number; :class:`~cntk.core.extension.kernel.Repeatable` as long as that stays the same.

    Args:
        gradients: arrays of the gradients.

    Attributes:
        number: the number; None where somebody else writes the gradients.
    """

    def __init__(self, gradients: Sequence[Any]) -> None:
        self._gradients = gradients
        self.number: float | None = None
        self._done: float | None = None

    def __call__(self) -> None:
        self._done = self.number
        if self.number is not None:
            for gradient in self._gradients:
                gradient.fill(self.number)

    work = __call__

    def holds(self) -> bool:
        """Whether the number is that of the last time."""
        return self._done == self.number

    def prepare(self) -> None:
        """Do nothing; another number takes another recording."""
