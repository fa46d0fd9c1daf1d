"""Picks steps of sequences by their numbers, for operators on sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter


def step(to: ModelWriter, x: Value, number: int) -> str:
    """A step of each sequence.

    Args:
        to: the model.
        x: sequences.
        number: number of the step; a negative one counts from the end.
    """
    axis = x.axes[1]
    if number >= 0 or not to.has_lengths(axis):
        return str(to.node("Gather", x.name, to.constant(number, np.int64), axis=1))
    return steps_at(to, x, to.node("Add", to.lengths(axis), to.constant(number, np.int64)))


def steps_at(to: ModelWriter, x: Value, numbers: str) -> str:
    """Steps of each sequence by their numbers, integers ``[batch, ...]``, which may not be more than the longest sequence has."""
    return str(to.node("GatherND", x.name, to.node("Unsqueeze", numbers, to.integers(-1)), batch_dims=1))


def within(to: ModelWriter, numbers: str, x: Value) -> str:
    """Numbers of steps with those that no sequence has, in the padding or beyond it, brought to ones that can be read."""
    last = to.node("Sub", to.size(x.name, 1), to.integers(1))
    return str(to.node("Max", to.node("Min", numbers, last), to.integers(0)))


def as_column(to: ModelWriter, lengths: str) -> str:
    """Integers of sequences, ``[batch]``, as ``[batch, 1]``, to go with those of steps."""
    return to.unsqueeze(lengths, [1])


def where(to: ModelWriter, condition: str, rank: int, like: Value, name: str, other: str) -> str:
    """One or the other of two values of the same type, as a condition says.

    Args:
        to: the model.
        condition: truth values of the first axes of the values.
        rank: how many axes it has.
        like: the type of the values.
        name: what is taken where the condition holds.
        other: what is taken elsewhere.
    """
    return str(to.node("Where", to.unsqueeze(condition, list(range(rank, like.rank))), name, other))


def numbers_of_sequences(to: ModelWriter) -> str:
    """The numbers of the sequences: integers ``[batch, 1]``."""
    count = to.squeeze(to.batch(), [0])
    return to.unsqueeze(to.node("Range", to.constant(0, np.int64), count, to.constant(1, np.int64)), [1])
