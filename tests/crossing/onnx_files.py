"""Saves what has been read of ONNX files as models of CNTK: ``python onnx_files.py FOLDER``.

They are the cases and networks of ONNX's own package, and what PyTorch exports where it is installed.  Beside ``NAME.model`` a file
``NAME.npz`` keeps data for the inputs, by uid and sample, and what the model computes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import cntk as C

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent), str(HERE.parent / "programs")]

IMAGES = "densenet121", "inception_v1", "resnet50", "shufflenet", "squeezenet"
"""Networks for images of ONNX's package, of those whose results do not hang on the last digits."""


Loader = Callable[[], tuple[Any, dict[Any, Any]]]
"""What gives a function, and data by argument."""


def networks() -> Iterator[tuple[str, Loader]]:
    """Names of networks, and what loads them."""
    yield from node_cases()
    yield from images()
    yield from from_pytorch()


def node_cases() -> Iterator[tuple[str, Loader]]:
    """The cases of single operators that are read."""
    from onnx_cases import cases, excluded, loaded

    left_out = set(excluded())
    for case in cases("node"):
        if f"node/{case.name}" not in left_out:
            yield case.name, partial(loaded, case.model, case.data[0][0])


def images() -> Iterator[tuple[str, Loader]]:
    """Networks for images, whose weights are made up."""
    import onnx

    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    image = np.random.default_rng(0).normal(size=(1, 3, 224, 224)).astype(np.float32)
    for name in IMAGES:
        yield f"light_{name}", partial(_fed, str(folder / f"light_{name}.onnx"), [image])


def from_pytorch() -> Iterator[tuple[str, Loader]]:
    """Networks that PyTorch exports, if it is installed."""
    try:
        from test_onnx_from_pytorch import NETWORKS, exported, torch
    except BaseException as error:  # pytest's way of saying that it is not installed is no Exception
        print("torch", f"not compared: {error}", sep="\t")
        return
    for network in NETWORKS:
        torch.manual_seed(0)
        module, shapes, axes, _ = network()
        file, operands = exported(module, shapes, axes)
        batches = [next(axis for axis, called in free.items() if called == "batch") for free in axes]
        data = [np.moveaxis(one.numpy(), batch, 0) for one, batch in zip(operands, batches, strict=True)]
        yield f"torch_{network.__name__}", partial(_fed, file, data)


def _fed(file: Any, data: list[Any]) -> tuple[Any, dict[Any, Any]]:
    """The function of a file, and data by argument; those of several are in the order of their names."""
    function = C.load_model(file)
    return function, dict(zip(sorted(function.arguments, key=lambda one: one.name), data, strict=True))


def save(folder: Path, name: str, load: Loader) -> None:
    """Save the model that a file becomes, with data and values."""
    function, data = load()
    kept: dict[str, Any] = {}
    fed = {argument: np.asarray(value).astype(argument.dtype) for argument, value in data.items()}
    for argument, value in fed.items():
        kept |= _parts(f"in {argument.uid}", value, argument)
    found = function.eval(fed)
    for number, output in enumerate(function.outputs):
        value = found[output] if len(function.outputs) > 1 else found
        parts = value if output.dynamic_axes else [value]
        kept |= {f"out {number} {k}": np.asarray(part) for k, part in enumerate(parts)}
    function.save(folder / f"{name}.model")
    np.savez(folder / f"{name}.npz", **kept)


def _parts(label: str, value: Any, argument: Any) -> dict[str, Any]:
    return {f"{label} {k}": part for k, part in enumerate(value)} if argument.dynamic_axes else {label: value}


def main() -> None:
    """Save them all; a line for each that cannot be saved."""
    folder = Path(sys.argv[1])
    warnings.simplefilter("ignore")
    for name, load in networks():
        try:
            save(folder, name, load)
        except (ValueError, RuntimeError, TypeError) as error:
            print(name, f"not saved: {' '.join(str(error).split())}", sep="\t")


if __name__ == "__main__":
    main()
