"""From import to the first result, in fresh processes: with machine code and without, with Numba, with an unknown one, and without.

    python benchmarks/first_calls.py [--rounds 3] [--only "no code" ...]

The package's own machine code and the user's cache are left out of sight; "shipped" and "cached" get code that is compiled beforehand,
which takes a minute or two.  With "no code" NumPy serves evaluation while another process compiles, and training compiles what it needs.
A number is the median over rounds in milliseconds.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

CASES = ("shipped", "cached", "no code", "unknown Numba", "no Numba")
NETWORKS = ("convolution", "dense", "LSTM tagger")
WHAT = ("import", "build", "first", "second", "first result")
KINDS = ("evaluation", "training")


def dense(C: Any) -> Any:
    layers = [C.layers.Dense(400, activation=C.relu), C.layers.Dense(400, activation=C.relu), C.layers.Dense(10)]
    return C.layers.Sequential(layers)(C.input_variable(784))


def convolution(C: Any) -> Any:
    from convolution import SIDE, cntk_model

    return cntk_model(C.input_variable((SIDE, SIDE)))


def tagger(C: Any) -> Any:
    layers = [C.layers.Recurrence(C.layers.LSTM(300)), C.layers.Dense(129)]
    return C.layers.Sequential(layers)(C.sequence.input_variable(150))


def evaluation(name: str) -> tuple[Callable[[], Callable[[Any], object]], Any]:
    """What builds a network and the function that computes it, and data for one sample."""
    build, shape = {"convolution": (convolution, (1, 28, 28)), "dense": (dense, (1, 784)), "LSTM tagger": (tagger, (1, 20, 150))}[name]

    def built() -> Callable[[Any], object]:
        import cntk as C

        function = build(C)
        return lambda data: function.eval({function.arguments[0]: data})

    return built, np.random.default_rng(0).random(shape, np.float32)


def training(name: str) -> tuple[Callable[[], Callable[[Any], object]], Any]:
    """The same of a training step of a workload of this folder, with a minibatch."""
    module = importlib.import_module({"convolution": "convolution", "dense": "mlp", "LSTM tagger": "tagger"}[name])

    def built() -> Callable[[Any], object]:
        step = module.cntk_step()
        return lambda minibatch: step(*minibatch)

    return built, module.cntk_data()[0]


def prepare(case: str) -> None:
    """Let this process find Numba as the case has it; before the package is imported."""
    if case == "no Numba":
        sys.modules.update({"numba": None, "llvmlite": None})  # type: ignore[dict-item]  # no module of the name is found
    if case == "unknown Numba":
        import importlib.metadata

        known = importlib.metadata.version
        importlib.metadata.version = lambda package: "99.0" if package == "numba" else known(package)


def measure(case: str, kind: str, name: str, shipped: str) -> None:
    """Print seconds to import the package, to build a network, of its first call and of its second."""
    built, data = {"evaluation": evaluation, "training": training}[kind](name)
    prepare(case)
    times = [time.perf_counter()]
    import cntk  # noqa: F401

    times.append(time.perf_counter())
    if case != "no Numba":
        from cntk.core.machine import machine_code

        machine_code.PREBUILT = Path(shipped)
    call = built()
    times.append(time.perf_counter())
    for _ in range(2):
        call(data)
        times.append(time.perf_counter())
    print(*np.diff(times))
    end_compiler()


def end_compiler() -> None:
    """End the process that compiles beside this one, if there is one."""
    from cntk.core.machine.first_calls import first_calls

    compiler = first_calls._compiler
    if compiler is not None:
        os.killpg(compiler.pid, signal.SIGTERM)
        compiler.wait()


def run(arguments: list[str], cache: Path) -> str:
    """Run a process of this Python that keeps machine code in a folder; its output."""
    environment = {
        **os.environ,
        "CNTK_WAIT_FOR_LOOPS": "",
        "NUMBA_CACHE_DIR": str(cache),
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONWARNINGS": "ignore",
    }
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(*options.measure)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shipped, cached, nothing = folder / "shipped", folder / "cached", folder / "nothing"
        if "shipped" in options.only:
            run(["-m", "cntk", "compile", "--into", str(shipped)], folder / "other")
        if "cached" in options.only:
            run(["-m", "cntk", "compile"], cached)
        print("| what | network | code | " + " | ".join(WHAT) + " |\n" + "| --- " * (3 + len(WHAT)) + "|")
        for kind in options.kinds:
            for network in NETWORKS:
                for case in options.only:
                    found = []
                    for number in range(options.rounds):
                        cache = cached if case == "cached" else folder / f"{kind} {network} {case} {number}"
                        brings = shipped if case == "shipped" else nothing
                        found.append([float(x) for x in run([__file__, "--measure", case, kind, network, str(brings)], cache).split()])
                    medians = [1e3 * statistics.median(column) for column in zip(*found, strict=True)]
                    cells = " | ".join(f"{number:.4g}" for number in [*medians, sum(medians[:3])])
                    print(f"| {kind} | {network} | {case} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
