"""Checks of a learner's checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .parameter_state import ParameterState

MASTERS = "masters"
"""What checkpoints have the masters of parameters of 16 bits under; those without such parameters, and older ones, have nothing."""


def require(checkpoint: Any, keys: Iterable[str], what: str) -> None:
    """Check that a checkpoint is a dictionary with all of the *keys*.

    Raises:
        RuntimeError: it is not; the message names the missing keys.
    """
    if not isinstance(checkpoint, Mapping):
        raise RuntimeError(f"checkpoint of {what}: expected a dictionary, got {type(checkpoint).__name__} {checkpoint!r:.80}")
    missing = [key for key in keys if key not in checkpoint]
    if missing:
        raise RuntimeError(f"checkpoint of {what} lacks {', '.join(map(repr, missing))}; it is not one that create_checkpoint() returned")


def require_counts(checkpoint: Mapping[str, Any], names: Iterable[str], what: str) -> None:
    """Check that a checkpoint has whole numbers, not negative, under these names.

    Raises:
        RuntimeError: it has not.
    """
    for name in names:
        number = checkpoint[name]
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise RuntimeError(f"checkpoint of {what}: '{name}' must be a whole number, not negative, got {number!r:.80}")


def saved_states(parameter_states: Sequence[ParameterState], names: Sequence[str]) -> list[dict[str, Any]]:
    """The smoothed gradients of every parameter, by name, as NumPy arrays of their own."""
    return [
        {name: entry.parameter.backend.to_numpy(state) for name, state in zip(names, entry.states, strict=True)}
        for entry in parameter_states
    ]


def check_states(parameter_states: Sequence[ParameterState], names: Sequence[str], saved: Any) -> None:
    """Check that a state is one that :func:`saved_states` returns.

    Raises:
        RuntimeError: the smoothed gradients are of other parameters, or of a learner that keeps others.
    """
    if not isinstance(saved, Sequence) or len(saved) != len(parameter_states):
        count = len(saved) if isinstance(saved, Sequence) else "no"
        raise RuntimeError(f"checkpoint of a learner with {count} parameters given to one with {len(parameter_states)}")
    for entry, arrays in zip(parameter_states, saved, strict=True):
        require(arrays, names, f"the smoothed gradients of {entry.parameter!r}")
        for name in names:
            shape = getattr(arrays[name], "shape", None)
            if shape is None or tuple(shape) != tuple(entry.parameter.shape):
                raise RuntimeError(f"checkpoint: {name} has shape {shape}, but {entry.parameter!r} is to be restored")
            if arrays[name].dtype.kind != "f":
                raise RuntimeError(f"checkpoint: {name} has elements of {arrays[name].dtype}; expected floating-point numbers")


def restore_states(parameter_states: Sequence[ParameterState], names: Sequence[str], saved: Any) -> None:
    """Take the smoothed gradients that :func:`saved_states` returned; all of them or, on error, none.

    Raises:
        RuntimeError: they are of other parameters, or of a learner that keeps others.
    """
    check_states(parameter_states, names, saved)
    for entry, arrays in zip(parameter_states, saved, strict=True):
        for name, state in zip(names, entry.states, strict=True):
            entry.parameter.backend.load(state, arrays[name])


def saved_masters(parameter_states: Sequence[ParameterState]) -> dict[str, Any]:
    """The masters of parameters of 16 bits, as NumPy arrays of their own, None for other parameters; nothing where there are no masters."""
    masters = [None if entry.master is None else entry.parameter.backend.to_numpy(entry.master) for entry in parameter_states]
    return {} if all(master is None for master in masters) else {MASTERS: masters}


def check_masters(parameter_states: Sequence[ParameterState], checkpoint: Mapping[str, Any]) -> None:
    """Refuse what :func:`saved_masters` has not returned.

    Raises:
        RuntimeError: the masters are of other parameters.
    """
    masters = checkpoint.get(MASTERS, [None] * len(parameter_states))
    count = len(parameter_states)
    if not isinstance(masters, Sequence) or len(masters) != count:
        raise RuntimeError(f"checkpoint: '{MASTERS}' has an array or None for each of {count} parameters, got {masters!r:.80}")
    for entry, master in zip(parameter_states, masters, strict=True):
        if master is None:
            continue
        shape = tuple(entry.parameter.shape)
        if not isinstance(master, np.ndarray) or master.shape != shape or master.dtype.kind != "f":
            found = f"{master.dtype} of shape {master.shape}" if isinstance(master, np.ndarray) else f"{master!r:.80}"
            raise RuntimeError(f"checkpoint: the master of {entry.parameter!r} has floating-point numbers of shape {shape}, got {found}")


def restore_masters(parameter_states: Sequence[ParameterState], checkpoint: Mapping[str, Any]) -> None:
    """Take the masters that :func:`saved_masters` returned; where there are none they are made of the parameters."""
    for entry, master in zip(parameter_states, checkpoint.get(MASTERS, [None] * len(parameter_states)), strict=True):
        entry.restore_master(master)
