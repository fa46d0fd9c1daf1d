"""The ways on which a program computes: by compiled loops where these are worth it, by them wherever they can, and without them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from cntk.backends.fused import batch_normalization, chains, convolution, cross_entropy, dense, pooling, recurrence, reduction, softmax

PATHS = ("as usual", "compiled", "plain")

KERNELS = (batch_normalization, chains, convolution, cross_entropy, dense, pooling, recurrence, reduction, softmax)
"""Modules that decide whether there is enough to do for compiled loops."""

LEAST = ("FUSED_FROM", "WORTHWHILE")
"""What they call the least size from which on loops are worth it."""


@contextmanager
def on(path: str) -> Iterator[None]:
    """Have programs that are made within compute on one of :data:`PATHS`."""
    with ExitStack() as changes:
        for module in KERNELS:
            if path == "plain":
                changes.enter_context(patch.object(module, "are_usable", lambda: False))
            elif path == "compiled":
                for name in LEAST:
                    if hasattr(module, name):
                        changes.enter_context(patch.object(module, name, 1))
        yield
