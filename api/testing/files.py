"""An operator in files, pickles and clones is the operator that it was."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cntk.core.extension.device import DeviceDescriptor
from cntk.core.graph.function import Function
from cntk.core.graph.graph import depth_first_search
from cntk.core.graph.nodes import Primitive
from cntk.core.operators.samples import Sample
from cntk.plugins.models.files import written_whole
from cntk.testing.samples import Trial, describe, repetition_is_meant
from cntk.testing.tolerances import assert_close


def check_files(function: Callable[..., Any], sample: Sample, device: DeviceDescriptor | None = None) -> None:
    """Require that an operator is the same when it has been saved and loaded, cloned, and pickled.

    Saved and loaded, it also begins where it stood then, if it draws random numbers or keeps anything else.  Python pickles only objects of
    classes that can be imported: where one cannot, as in a notebook, pickles are left out.

    Args:
        function: the public operator function, marked with ``operator``.
        sample: how to call it.
        device: where to compute; the default device where None.

    Raises:
        AssertionError: it cannot be saved, cloned or pickled, or gives something else afterwards.
    """
    trial, name = Trial(function, sample, np.float32, device), describe(function, sample)
    copies = dict(_copies(trial.result, name, device))
    expected = trial.evaluate()
    is_lasting = all(np.array_equal(one, other, equal_nan=True) for one, other in _pairs(expected, trial.evaluate()))
    for how, made in copies.items():
        found = _with(trial, made).evaluate()
        if is_lasting or how == "saved and loaded":
            for one, other in _pairs(found, expected):
                assert_close(one, other, f"{name}, {how}")


def _copies(function: Function, name: str, device: DeviceDescriptor | None) -> Iterator[tuple[str, Function]]:
    """The same function, by the way it was obtained."""
    try:
        with repetition_is_meant():
            yield "saved and loaded", Function.load(b"".join(map(bytes, written_whole(function))), device)
            yield "cloned", function.clone("clone")
            if all(_is_importable(type(node.op)) for node in depth_first_search(function, _is_primitive, -1)):
                yield "pickled", pickle.loads(pickle.dumps(function))
    except Exception as error:
        raise AssertionError(f"{name} cannot be kept: {error}") from error


def _with(trial: Trial, function: Function) -> Trial:
    """The trial with a copy of its function."""
    made, own = copy.copy(trial), dict(zip(trial.result.arguments, function.arguments, strict=True))
    made.result, made.variables = function, [own.get(variable, variable) for variable in trial.variables]
    return made


def _pairs(some: list[Any], others: list[Any]) -> Iterator[tuple[Any, Any]]:
    """The arrays of two lists of results, sequence by sequence."""
    for one, other in zip(some, others, strict=True):
        if isinstance(one, list):
            yield from zip(one, other, strict=True)
        else:
            yield one, other


def _is_primitive(node: Any) -> bool:
    return isinstance(node, Primitive)


def _is_importable(cls: type) -> bool:
    """Whether a class is where its name says."""
    found: Any = sys.modules.get(cls.__module__)
    for part in cls.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is cls
