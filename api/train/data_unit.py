"""Units in which frequencies are given."""

from enum import Enum, IntEnum


class DataUnit(IntEnum):
    """What a frequency counts."""

    sweep = 0
    """Passes over the data."""
    sample = 1
    """Samples."""
    minibatch = 2
    """Minibatches."""

    __str__ = Enum.__str__
