"""Tools that show what a network computes, and how long it takes."""

from __future__ import annotations

from cntk.cntk_py.settings import force_deterministic_algorithms
from cntk.core.common.random import set_fixed_random_seed
from cntk.core.common.tracebacks import set_full_tracebacks
from cntk.core.program.passes import set_passes
from cntk.debugging.debug import (
    DEBUG_USAGE,
    debug_model,
    save_as_legacy_model,
    set_checked_mode,
    set_computation_network_trace_level,
    set_node_timing,
)
from cntk.debugging.dump import dump_function, dump_signature
from cntk.debugging.profiler import disable_profiler, enable_profiler, start_profiler, stop_profiler
from cntk.debugging.rates import Rates, machine_rates


def force_deterministic(seed: int) -> None:
    """Let two runs of a program give the same numbers: fix the seed of everything random, and ask for deterministic algorithms.

    Args:
        seed: seed of initial values, dropout and random operators, and of the order of data.

    >>> C.debugging.force_deterministic(1)
    >>> C.parameter(1, init=C.uniform(1)).value == C.parameter(1, init=C.uniform(1)).value
    array([ True])
    """
    set_fixed_random_seed(seed)
    force_deterministic_algorithms()


__all__ = [
    "DEBUG_USAGE",
    "Rates",
    "debug_model",
    "disable_profiler",
    "dump_function",
    "dump_signature",
    "enable_profiler",
    "force_deterministic",
    "machine_rates",
    "save_as_legacy_model",
    "set_checked_mode",
    "set_computation_network_trace_level",
    "set_full_tracebacks",
    "set_node_timing",
    "set_passes",
    "start_profiler",
    "stop_profiler",
]
