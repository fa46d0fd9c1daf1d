"""Making networks smaller."""

from __future__ import annotations

from cntk.contrib.netopt import factorization

native_convolve_function_registered = False
"""Whether CNTK's native binary convolution is there: it is not."""

__all__ = ["factorization", "native_convolve_function_registered"]
