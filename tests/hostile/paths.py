"""The ways on which a program computes: by compiled loops where these are worth it, by them wherever they can, and without them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from cntk.backends.fused import batch_normalization, chains, convolution, cross_entropy, dense, pooling, recurrence, reduction, softmax
from cntk.core.common.thresholds import all_set_to

PATHS = ("as usual", "compiled", "plain")

KERNELS = (batch_normalization, chains, convolution, cross_entropy, dense, pooling, recurrence, reduction, softmax)
"""Modules that decide whether compiled loops are used."""


@contextmanager
def on(path: str) -> Iterator[None]:
    """Have programs that are made within compute on one of :data:`PATHS`."""
    with ExitStack() as changes:
        if path == "compiled":
            changes.enter_context(all_set_to(0))
        elif path == "plain":
            for module in KERNELS:
                changes.enter_context(patch.object(module, "are_usable", lambda: False))
        yield
