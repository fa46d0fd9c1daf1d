"""Nothing iterates for ever: each object of a public class ends, or says at once that it is not iterable."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hostile.arguments import at_most

import cntk as C
from cntk.core.types.csr import CsrMatrix
from cntk.layers.typing import ParameterTensor, Sequence, SequenceOver, SparseTensor, Tensor
from cntk.learners import UserLearner

PARTS = ("cntk", "cntk.core", "cntk.plugins", "cntk.backends", "cntk.learners", "cntk.readers")
LEFT_OUT = ("cntk.__main__", "cntk.tests", "cntk.cntk_py_init")


def source() -> Any:
    return C.io.MinibatchSourceFromData({"x": np.ones((4, 3), np.float32)})


def trainer() -> Any:
    x = C.input_variable(3)
    model = C.layers.Dense(2)(x)
    return C.Trainer(model, (C.squared_error(model, C.input_variable(2)), None), C.sgd(model.parameters, 0.1))


def session() -> Any:
    made, data = trainer(), source()
    return C.training_session(made, data, 2, {made.model.arguments[0]: data["x"]}, max_samples=4)


def recurrent() -> Any:
    return C.layers.Recurrence(C.layers.LSTM(2))(C.sequence.input_variable(3))


OBJECTS: dict[str, Callable[[], Any]] = {
    "schedule": lambda: C.learning_parameter_schedule([0.1, 0.2], epoch_size=3),
    "schedule of one number": lambda: C.momentum_schedule(0.9),
    "minibatch size schedule": lambda: C.minibatch_size_schedule(4),
    "input": lambda: C.input_variable((2, 3)),
    "scalar input": lambda: C.input_variable(()),
    "input of free dimension": lambda: C.input_variable(C.FreeDimension),
    "input of sequences": lambda: C.sequence.input_variable(3),
    "placeholder": lambda: C.placeholder(),
    "placeholder of known shape": lambda: C.placeholder(3),
    "parameter": lambda: C.parameter((2, 3)),
    "parameter of inferred shape": lambda: C.parameter((C.InferredDimension, 3)),
    "constant": lambda: C.constant(1, shape=(2,)),
    "output": lambda: (C.input_variable(3) + 1).output,
    "function": lambda: C.input_variable(3) + 1,
    "primitive": lambda: (C.input_variable(3) + 1).root_function,
    "function of a placeholder": lambda: C.placeholder() + 1,
    "function of several results": lambda: C.combine(C.input_variable(3) + 1, C.input_variable(2) * 2),
    "layer": lambda: C.layers.Dense(3),
    "layer that is applied": lambda: C.layers.Dense(3)(C.input_variable(2)),
    "recurrence": recurrent,
    "value": lambda: C.Value(np.ones((2, 3), np.float32)),
    "value of sequences": lambda: C.Value.create(C.sequence.input_variable(1), [np.ones((2, 1), np.float32), np.ones((1, 1), np.float32)]),
    "view": lambda: C.NDArrayView.from_dense(np.ones((2, 3), np.float32)),
    "record": lambda: C.variables.Record(a=1),
    "axis": lambda: C.Axis(0),
    "dynamic axis": C.Axis.default_batch_axis,
    "device": C.cpu,
    "learner": lambda: C.adam([C.parameter(3)], 0.1, 0.9),
    "learner of a user": lambda: UserLearner([C.parameter(3)], C.learning_parameter_schedule(0.1)),
    "trainer": trainer,
    "evaluator": lambda: C.Evaluator(C.input_variable(3) + 1),
    "source": source,
    "minibatch": lambda: source().next_minibatch(2),
    "minibatch of a stream": lambda: next(iter(source().next_minibatch(2).values())),
    "stream": lambda: source()["x"],
    "deserializer": lambda: C.io.CTFDeserializer("file", C.io.StreamDefs(a=C.io.StreamDef("a", 2))),
    "configuration of a stream": lambda: C.io.StreamDef("a", 2),
    "configurations of streams": lambda: C.io.StreamDefs(a=C.io.StreamDef("a", 2)),
    "initializer": lambda: C.glorot_uniform(),
    "progress writer": lambda: C.logging.ProgressPrinter(),
    "session": session,
    "configuration of checkpoints": lambda: C.CheckpointConfig("file"),
    "configuration of tests": lambda: C.TestConfig(source()),
    "configuration of validation": lambda: C.CrossValidationConfig(source()),
    "options": lambda: C.default_options(a=1),
    "default of an option": lambda: C.default_override_or(1),
    "type of a variable": lambda: C.input_variable(3).type,
    "Tensor": lambda: Tensor,
    "SparseTensor": lambda: SparseTensor,
    "ParameterTensor": lambda: ParameterTensor,
    "Sequence": lambda: Sequence,
    "SequenceOver": lambda: SequenceOver,
    "type of a tensor": lambda: Tensor[3],
    "type of sequences": lambda: Sequence[Tensor[3]],
    "shape of the engine": lambda: C.cntk_py.NDShape((2, 3)),
    "dictionary of the engine": lambda: C.cntk_py.Dictionary(),
    "distributed learner": lambda: C.data_parallel_distributed_learner(C.sgd([C.parameter(3)], 0.1)),
    "communicator": lambda: C.mpi_communicator(),
    "module": lambda: C.ops,
}

USES: dict[str, Callable[[Any], Any]] = {
    "list": list,
    "in": lambda x: 3 in x,
    "unpacking": lambda x: (lambda a, *rest: a)(*x),
    "two names": lambda x: [a for a, b in [x]],
    "sum": sum,
    "zip": lambda x: list(zip(x, x, strict=True)),
    "max": max,
    "sorted": sorted,
    "set": set,
    "dict": dict,
    "enumerate": lambda x: list(enumerate(x)),
    "reversed": lambda x: list(reversed(x)),
    "map": lambda x: list(map(str, x)),
    "extend": lambda x: [].extend(x),
    "join": lambda x: "".join(x),
    "any": any,
    "np.asarray": np.asarray,
    "np.array of it in a list": lambda x: np.array([x]),
    "np.sum": np.sum,
    "mapping": lambda x: dict(**x),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OBJECTS)
def test_all_uses_of_an_iterator_end(name: str) -> None:
    """With a result, or an error that is told: a type or value that is none."""
    made = OBJECTS[name]()
    for use in USES.values():
        with at_most(1), contextlib.suppress(TypeError, ValueError):
            use(made)


def classes() -> list[type]:
    """All classes of the package."""
    found: dict[type, None] = {}
    for part in PARTS:
        for module in pkgutil.walk_packages(importlib.import_module(part).__path__, f"{part}."):
            if module.name.startswith(LEFT_OUT):
                continue
            try:
                members = vars(importlib.import_module(module.name))
            except ImportError:  # of a package that is not installed here
                continue
            found |= {x: None for x in members.values() if inspect.isclass(x) and x.__module__.startswith("cntk")}
    return list(found)


def test_classes_that_are_indexed_say_how_they_iterate() -> None:
    """Python takes an object with ``__getitem__`` and without ``__iter__`` for a sequence that ends with an IndexError."""
    silent = [kind for kind in classes() if hasattr(kind, "__getitem__") and not hasattr(kind, "__class_getitem__")]
    silent = [kind for kind in silent if not any("__iter__" in vars(base) for base in (*kind.__mro__, *type(kind).__mro__))]
    assert {kind.__name__ for kind in silent} == {
        "CsrMatrix",  # ends with an IndexError
        *("SparseRows", "SparseStep", "PlacedRows", "Rows", "FileBytes"),  # which no program gets to see take slices alone
    }


def test_rows_of_a_csr_matrix_end() -> None:
    assert len(list(CsrMatrix(np.ones(2, np.float32), np.array([0, 1]), np.array([0, 1, 2]), 3))) == 2


def test_long_schedules_and_types_are_not_iterable() -> None:
    for made in (C.learning_parameter_schedule([0.1, 0.2], epoch_size=10**9), Tensor, Sequence, C.placeholder(), source()):
        with pytest.raises(TypeError, match="iter"):
            list(made)


def test_what_programs_iterate_over() -> None:
    parts = list(C.input_variable((2, 3)))
    assert [part.shape for part in parts] == [(1, 3), (1, 3)]
    first, second = C.combine(C.input_variable(3) + 1, C.input_variable(2) * 2)
    assert (first.shape, second.shape) == ((3,), (2,))
