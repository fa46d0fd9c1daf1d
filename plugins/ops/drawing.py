"""What operators that draw random numbers share."""

from __future__ import annotations

from typing import Any, ClassVar

from ...core.operators.op import Op


class Drawing(Op):
    """An operator with a stream of random numbers of its own, which begins again when its seed is changed."""

    stream_type: ClassVar[Any]
    """A source of random numbers: called with a seed, counting its numbers in ``draws``, with checkpoints."""
    rng_seed: int

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._stream = self.stream_type(self.rng_seed)

    @property
    def attributes(self) -> dict[str, Any]:
        return {**super().attributes, "rngOffset": self._stream.draws}

    def set_attribute(self, name: str, value: Any) -> None:
        super().set_attribute(name, value)
        if name == "rngSeed":
            self._stream = self.stream_type(value)

    def create_checkpoint(self) -> dict[str, Any]:
        return self._stream.create_checkpoint()

    def restore_from_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self._stream = self.stream_type.from_checkpoint(checkpoint)
