"""First training steps where nothing has been compiled yet: the wheel's machine code serves them, and Numba is not even imported.

    python -I tests/first_steps.py

Each network is built and trained in a process of its own, whose Python finds the installed wheel alone.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

NETWORKS = ["convolution", "tagger", "resnet"]
"""Modules of benchmarks."""

AT_MOST = 1.0
"""Seconds by which the first step may take longer than later ones."""

TRIES = 3
"""Processes of which one must be as fast: other programs may hold up some."""


def seconds(network: str) -> float:
    """How much longer the first step of a network takes, in a process of its own, with nothing kept from earlier ones."""
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, "NUMBA_CACHE_DIR": empty}
        command = [sys.executable, "-I", __file__, network]
        took = float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
        if os.listdir(empty):
            raise RuntimeError(f"{network}: {', '.join(os.listdir(empty))} was compiled, and not in the wheel")
    return took


def take_steps(network: str) -> None:
    """Print how much longer the first step takes."""
    sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
    module = importlib.import_module(network)
    step, minibatches = module.cntk_step(), module.cntk_data()
    times = []
    for minibatch in minibatches[:8]:
        start = time.perf_counter()
        step(*minibatch)
        times.append(time.perf_counter() - start)
    if "numba" in sys.modules:
        raise RuntimeError(f"{network}: Numba was imported")
    print(times[0] - median(times[1:]))


def is_fast(network: str) -> bool:
    """Whether the first step of a network takes little longer than later ones; prints what it took."""
    for _ in range(TRIES):
        took = seconds(network)
        print(f"{network}: the first step takes {took:.2f} s longer than later ones")
        if took < AT_MOST:
            return True
    return False


def main() -> int:
    """Check all networks; 1 if the first step of one takes too long."""
    from cntk.core.machine import processor

    if processor.level() is None:
        print("no machine code is brought along for this processor")
        return 0
    return int(not all(is_fast(network) for network in NETWORKS))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        take_steps(sys.argv[1])
    else:
        sys.exit(main())
