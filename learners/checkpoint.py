"""What a learner's checkpoint must be like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .slot import Slot


def require(checkpoint: Any, keys: Iterable[str], what: str) -> None:
    """Refuse a checkpoint that is no dictionary, or one without some of the *keys*.

    Raises:
        RuntimeError: it is so; the message names the keys.
    """
    if not isinstance(checkpoint, Mapping):
        raise RuntimeError(f"checkpoint of {what}: expected a dictionary, got {type(checkpoint).__name__} {checkpoint!r:.80}")
    missing = [key for key in keys if key not in checkpoint]
    if missing:
        raise RuntimeError(f"checkpoint of {what} lacks {', '.join(map(repr, missing))}; it is not one that create_checkpoint() returned")


def require_counts(checkpoint: Mapping[str, Any], names: Iterable[str], what: str) -> None:
    """Refuse a checkpoint in which something else than whole numbers from 0 on has these names.

    Raises:
        RuntimeError: it is so.
    """
    for name in names:
        number = checkpoint[name]
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise RuntimeError(f"checkpoint of {what}: '{name}' is a whole number from 0 on, got {number!r:.80}")


def saved_states(slots: Sequence[Slot], names: Sequence[str]) -> list[dict[str, Any]]:
    """The smoothed gradients of every parameter, by name, as NumPy arrays of their own."""
    return [{name: slot.parameter.backend.to_numpy(state) for name, state in zip(names, slot.states, strict=True)} for slot in slots]


def check_states(slots: Sequence[Slot], names: Sequence[str], saved: Any) -> None:
    """Refuse what :func:`saved_states` has not returned.

    Raises:
        RuntimeError: the smoothed gradients are of other parameters, or of a learner that keeps others.
    """
    if not isinstance(saved, Sequence) or len(saved) != len(slots):
        count = len(saved) if isinstance(saved, Sequence) else "no"
        raise RuntimeError(f"checkpoint of a learner with {count} parameters given to one with {len(slots)}")
    for slot, arrays in zip(slots, saved, strict=True):
        require(arrays, names, f"the smoothed gradients of {slot.parameter!r}")
        for name in names:
            shape = getattr(arrays[name], "shape", None)
            if shape is None or tuple(shape) != tuple(slot.parameter.shape):
                raise RuntimeError(f"checkpoint: {name} has shape {shape}, but {slot.parameter!r} is to be restored")
            if arrays[name].dtype.kind != "f":
                raise RuntimeError(f"checkpoint: {name} has elements of {arrays[name].dtype}; expected floating-point numbers")


def restore_states(slots: Sequence[Slot], names: Sequence[str], saved: Any) -> None:
    """Take the smoothed gradients that :func:`saved_states` returned; all of them or, on error, none.

    Raises:
        RuntimeError: they are of other parameters, or of a learner that keeps others.
    """
    check_states(slots, names, saved)
    for slot, arrays in zip(slots, saved, strict=True):
        for name, state in zip(names, slot.states, strict=True):
            slot.parameter.backend.load(state, arrays[name])
