"""Compares the settings in which workers that train together must agree."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cntk.core.common.dtypes import computing_type
from cntk.core.graph.block import combine
from cntk.core.graph.graph import depth_first_search
from cntk.core.graph.variable import Parameter, Variable
from cntk.learners.schedules import TrainingParameterSchedule
from cntk.plugins.distributed.base import Transport
from cntk.train.distributed import DistributedLearner

TOLERANCE = 1e-3
"""By so large a part may the workers' sums of squares of a parameter differ."""

SHOWN = 8
"""The number of differences that errors list, and of workers named in each."""


def agree(transport: Transport, own: Mapping[str, Any]) -> None:
    """Compare with the other workers, who all call this.

    Args:
        transport: what connects them.
        own: values of this worker, by name.

    Raises:
        ValueError: the workers differ; it is raised on all, and names in what.
    """
    if transport.size == 1:
        return
    text = json.dumps({name: _shown(value) for name, value in own.items()}).encode()
    digests = transport.gather(np.frombuffer(hashlib.blake2b(text, digest_size=16).digest(), np.uint8), "what the workers train")
    if any(bytes(digest) != bytes(digests[0]) for digest in digests):
        texts = transport.gather(np.frombuffer(text, np.uint8), "how the workers differ")
        raise ValueError(difference([json.loads(bytes(text)) for text in texts]))


def agree_on_values(transport: Transport, parameters: Sequence[Parameter]) -> None:
    """Compare the sizes of parameters that should have the same values with those of the other workers, who all call this.

    Raises:
        ValueError: the workers' values differ by more than the rounding of different processors; raised on all workers.
    """
    if transport.size == 1:
        return
    workers = transport.gather(np.array([_square(parameter) for parameter in parameters]), "sizes of the parameters")
    near = np.isclose(workers, workers[0], rtol=TOLERANCE, atol=0, equal_nan=True).all(0)
    if not near.all():
        index = int(np.argmin(near))
        norms = _by_worker([f"norm {np.sqrt(worker[index]):.6g}" for worker in workers])
        raise ValueError(
            f"the workers' models have come apart: {_shaped(parameters[index])} has {norms}. "
            "Values that a program sets while it trains must be set on all workers alike"
        )


def description(learners: Sequence[DistributedLearner], loss: Variable) -> dict[str, Any]:
    """The settings of a trainer."""
    graph = combine([loss])
    known = graph.parameters
    places = {parameter: place for place, parameter in enumerate(known)}
    found: dict[str, Any] = {}
    for number, learner in enumerate(learners):
        of = f" of learner {number}" if len(learners) > 1 else ""
        for index, parameter in enumerate(learner.updated_parameters):
            found[f"parameter {index}{of}"] = f"{_shaped(parameter)}, number {places[parameter]} of the loss"
        found.update((f"{name}{of}", value) for name, value in learner.settings().items())
    learnt = {parameter for learner in learners for parameter in learner.updated_parameters}
    for parameter in known:
        if parameter not in learnt:
            found[f"parameter {places[parameter]} of the loss, without a learner"] = _shaped(parameter)
    for index, variable in enumerate(graph.arguments):
        found[f"input {index} of the loss"] = f"{_shaped(variable)}{', sparse' if variable.is_sparse else ''}"
    for index, operator in enumerate(depth_first_search(loss, lambda node: not isinstance(node, Variable), -1)):
        found[f"operator {index} of the loss"] = _operator(operator)
    return found


def difference(workers: Sequence[Mapping[str, str]]) -> str:
    """The message that names the differences between workers, given the settings of each."""
    names = dict.fromkeys(name for worker in workers for name in worker)
    unlike = [name for name in names if len({worker.get(name) for worker in workers}) > 1]
    lines = [f"\n  {name}: {_by_worker([worker.get(name, 'none') for worker in workers])}" for name in unlike[:SHOWN]]
    more = f"\n  and {len(unlike) - SHOWN} more" if len(unlike) > SHOWN else ""
    return "workers that train one model must all train it alike, and these differ:" + "".join(lines) + more


def _by_worker(values: Sequence[str]) -> str:
    """Which worker has which value."""
    return ", ".join(f"{value} on {_workers([i for i, v in enumerate(values) if v == value])}" for value in dict.fromkeys(values))


def _workers(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"worker {numbers[0]}"
    more = f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else ""
    return f"workers {', '.join(map(str, numbers[:SHOWN]))}{more}"


def _square(parameter: Parameter) -> float:
    """Sum of the squares of its values."""
    values = parameter.backend.to_numpy(parameter.array).reshape(-1)
    wide = values.astype(computing_type(values.dtype), copy=False)
    return float(np.vdot(wide, wide))


def _shaped(variable: Variable) -> str:
    return f"{variable.name!r} of shape {tuple(variable.shape)}, {np.dtype(variable.dtype)}"


def _operator(operator: Any) -> str:
    """Its name and the numbers that it was made with; seeds are each worker's own, and names of axes count what was made before."""
    settings = {name: value for name, value in operator.attributes.items() if isinstance(value, (bool, int, float)) and "rng" not in name}
    return f"{operator.op_name}({', '.join(f'{name}={value}' for name, value in sorted(settings.items()))})"


def _shown(value: Any) -> str:
    kind = TrainingParameterSchedule.__name__
    return repr(value).removeprefix(f"{kind}(").removesuffix(")") if isinstance(value, TrainingParameterSchedule) else str(value)
