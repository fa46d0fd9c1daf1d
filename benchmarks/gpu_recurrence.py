"""Times the kernels of recurrences on a GPU by themselves: ``python gpu_recurrence.py [GRIDS]``, in some 20 seconds for each of 3 grids.

Each network is a recurrence on data and what its last state is trained by, so that its training step has the kernel of one direction and
that of the other.  Kernels are found as trainers launch them, with their grids, and then launched again between events.  Beside the
microseconds of a step is the least that it can take: the multiplications and the waits for other blocks.

With a number, that many grids are timed, which share the sequences among other numbers of blocks, the one first that is estimated to be
the fastest.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from data import even_lengths, query_lengths

MULTIPLICATIONS = 29e3
"""Multiplications of float32 in a nanosecond on all 132 multiprocessors of an H100 or H200 at 1.75 GHz."""

BARRIER = 1.5
"""Microseconds in which blocks wait for each other."""

STEPS, REPETITIONS = 4, 20
"""Training steps before kernels are timed, and how often they are."""


class Shape(NamedTuple):
    """A network.

    Attributes:
        name: what it is called.
        cell: the cell's name in ``cntk.layers``.
        inputs, width: elements of an input and of a state.
        waits: how often blocks that share columns wait in a step.
        lengths: lengths of the sequences.
    """

    name: str
    cell: str
    inputs: int
    width: int
    waits: int
    lengths: Any


def shapes() -> list[Shape]:
    """The networks."""
    return [
        Shape("LSTM 300, 32 sequences of 20", "LSTM", 150, 300, 1, np.full(32, 20)),
        Shape("LSTM 300, as the tagger's", "LSTM", 150, 300, 1, query_lengths(32)[0]),
        Shape("LSTM 128, 64 sequences of 20", "LSTM", 128, 128, 1, np.full(64, 20)),
        Shape("GRU 128, as one of the bidirectional one", "GRU", 100, 128, 2, even_lengths(64, 10, 59)[0]),
        Shape("GRU 1,024, as the wide one", "GRU", 256, 1024, 2, even_lengths(32, 20, 40)[0]),
    ]


@contextmanager
def launches() -> Iterator[list[tuple[Any, Any, int]]]:
    """The kernels of recurrences that are launched meanwhile: their grids, launches and bytes of shared memory."""
    from cntk.backends.cupy.compiler import Kernel

    found: list[tuple[Any, Any, int]] = []
    bound = Kernel.bound

    def noted(kernel: Any, grid: Any, *given: Any, **options: Any) -> Any:
        launch = bound(kernel, grid, *given, **options)
        if kernel.name == "recurrence":
            found.append((grid, launch, options.get("shared", 0)))
        return launch

    Kernel.bound = noted  # type: ignore[method-assign]
    try:
        yield found
    finally:
        Kernel.bound = bound  # type: ignore[method-assign]


def step_of(shape: Shape) -> Any:
    """A function that takes a training step of a network."""
    import cntk as C
    from cntk import layers

    random = np.random.RandomState(0)
    samples = [random.randn(length, shape.inputs).astype(np.float32) for length in shape.lengths]
    labels = np.eye(10, dtype=np.float32)[random.randint(10, size=len(samples))]
    x, y = C.sequence.input_variable(shape.inputs), C.input_variable(10)
    model = layers.Dense(10)(C.sequence.last(layers.Recurrence(getattr(layers, shape.cell)(shape.width))(x)))
    learner = C.sgd(model.parameters, C.learning_parameter_schedule(0.01))
    trainer = C.Trainer(model, C.cross_entropy_with_softmax(model, y), [learner])
    return lambda: trainer.train_minibatch({x: samples, y: labels})


@contextmanager
def grid_number(number: int) -> Iterator[None]:
    """Have recurrences launched with the grid that has this place in the order of estimates, of those with so many groups of blocks."""
    from cntk.backends.cupy import recurrence
    from cntk.backends.cupy.recurrence_grid import grid_for, grids_for

    def chosen(*given: Any) -> Any:
        best: dict[int, Any] = {}
        for grid in grids_for(*given):
            best.setdefault(grid.groups, grid)
        return list(best.values())[min(number, len(best) - 1)]

    recurrence.grid_for = chosen
    try:
        yield
    finally:
        recurrence.grid_for = grid_for


def microseconds(launch: Any) -> float:
    """Time of a launch, between events on the stream; the median of some."""
    import cupy

    times = []
    for _ in range(REPETITIONS):
        before, after = cupy.cuda.Event(), cupy.cuda.Event()
        before.record()
        launch()
        after.record()
        after.synchronize()
        times.append(1e3 * cupy.cuda.get_elapsed_time(before, after))
    return statistics.median(times)


def floor(shape: Shape, blocks: int) -> float:
    """Microseconds of a step with all sequences that the multiplications and the waits take."""
    gates = 4 if shape.cell == "LSTM" else 3
    return len(shape.lengths) * gates * shape.width**2 / MULTIPLICATIONS / 1e3 + shape.waits * BARRIER * (blocks > 1)


def tell(shape: Shape, device: Any) -> None:
    """Print what the kernels of a network take."""
    with launches() as found:
        step = step_of(shape)
        for _ in range(STEPS):
            step()
    steps = int(max(shape.lengths))
    with device.backend.guard():
        for direction, (grid, launch, shared) in zip(("forward", "backward"), found[-2:], strict=True):
            time = microseconds(launch)
            print(
                f"{shape.name + ', ' + direction:52}{f'{grid[0]} x {grid[1]}':>10}{shared >> 10:>6}"
                f"{time:>9.1f}{time / steps:>11.2f}{floor(shape, grid[0]):>8.2f}",
                flush=True,
            )


def main(grids: int = 1) -> None:
    import cntk as C
    from cntk.core.extension.device import default_device

    device = C.device.gpu(0)
    print(f"{'':52}{'grid':>10}{'KB':>6}{'us':>9}{'us a step':>11}{'floor':>8}")
    with default_device(device):
        for shape in shapes():
            for number in range(grids):
                with grid_number(number):
                    tell(shape, device)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
