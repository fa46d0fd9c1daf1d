"""Numbers with a meaning of their own."""

INFINITELY_REPEAT = 2**64 - 1
"""Number of samples or sweeps that means: without end."""

FULL_DATA_SWEEP = INFINITELY_REPEAT - 1
"""Number of samples that means: one pass over the data."""

DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS = 128
"""The default number of chunks that are shuffled together."""
