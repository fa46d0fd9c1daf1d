"""The report of ``cntk doctor`` on compiled loops."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

from cntk.core.common.threads import max_threads
from cntk.core.extension import compiled, plugins
from cntk.core.machine import numba_version, self_check
from cntk.readers.compiled import loops as loops_of_readers

READERS = {"ctf.compiled": "large text files", "image.kernel": "resizing images", "compiled_shuffle": "shuffling"}
"""Modules of compiled loops, and what they are for."""


def lines() -> Iterator[str]:
    """Whether loops are used, where they come from, what they run on, and what is switched off."""
    try:
        why = self_check.why_not()
    except ValueError as error:
        yield f"off: {error}"
        return
    if any(record.name == "fused" and record.state == "blocked" for record in plugins.records):
        why = "CNTK_PLUGINS leaves out the plugin 'fused'"
    yield from _of_operators() if not why else [f"off: {why}"]
    if compiled.is_wanted():
        found = [purpose for module, purpose in READERS.items() if loops_of_readers(module) is not None]
        yield f"of readers: {', '.join(found) or 'none, they use NumPy'}"
    for part, fault in compiled.switched_off.items():
        if part != self_check.PART:
            yield f"{part} are switched off: {fault}"


def _of_operators() -> Iterator[str]:
    from cntk.core.machine import blas_threads, machine_code, pool

    brings = machine_code.has_prebuilt_code()
    none = numba_version.why_not()
    compiler = f"no others are compiled: {none}" if none else f"others are compiled by Numba {version('numba')}"
    yield f"on: {'machine code comes with the package' if brings else 'no machine code comes with the package'}; {compiler}"
    if max_threads() > 1 and pool.threads_available():
        are_common = blas_threads.share_threads(pool.pool())
        yield f"threads: {max_threads()}, {'with those of NumPy' if are_common else 'beside those of NumPy'}'s BLAS"
    else:
        yield f"threads: 1; {pool.why_alone()}"
