"""What a learner's checkpoint must be like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .slot import Slot

MASTERS = "masters"
"""What checkpoints have the masters of float16 parameters under; those without such parameters, and older ones, have nothing."""


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
            state[...] = slot.parameter.backend.asarray(arrays[name], slot.dtype)


def saved_masters(slots: Sequence[Slot]) -> dict[str, Any]:
    """The masters of float16 parameters, as NumPy arrays of their own, None for other parameters; nothing where there are no masters."""
    masters = [None if slot.master is None else slot.parameter.backend.to_numpy(slot.master) for slot in slots]
    return {} if all(master is None for master in masters) else {MASTERS: masters}


def check_masters(slots: Sequence[Slot], checkpoint: Mapping[str, Any]) -> None:
    """Refuse what :func:`saved_masters` has not returned.

    Raises:
        RuntimeError: the masters are of other parameters.
    """
    masters = checkpoint.get(MASTERS, [None] * len(slots))
    if not isinstance(masters, Sequence) or len(masters) != len(slots):
        raise RuntimeError(f"checkpoint: '{MASTERS}' has an array or None for each of {len(slots)} parameters, got {masters!r:.80}")
    for slot, master in zip(slots, masters, strict=True):
        if master is None:
            continue
        shape = tuple(slot.parameter.shape)
        if not isinstance(master, np.ndarray) or master.shape != shape or master.dtype.kind != "f":
            found = f"{master.dtype} of shape {master.shape}" if isinstance(master, np.ndarray) else f"{master!r:.80}"
            raise RuntimeError(f"checkpoint: the master of {slot.parameter!r} has floating-point numbers of shape {shape}, got {found}")


def restore_masters(slots: Sequence[Slot], checkpoint: Mapping[str, Any]) -> None:
    """Take the masters that :func:`saved_masters` returned; where there are none they are made of the parameters."""
    for slot, master in zip(slots, checkpoint.get(MASTERS, [None] * len(slots)), strict=True):
        slot.restore_master(master)
