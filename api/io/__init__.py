"""Reading data: arrays today; file readers have their place in ``cntk.readers``."""

INFINITELY_REPEAT = 2**64 - 1
"""Number of samples or sweeps that means: without end."""

FULL_DATA_SWEEP = INFINITELY_REPEAT - 1
"""Number of samples that means: one pass over the data."""

__all__ = ["FULL_DATA_SWEEP", "INFINITELY_REPEAT"]
