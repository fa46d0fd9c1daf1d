"""A model that is served: what it takes and gives, checked requests, and results of several computed together."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from cntk.core.graph.function import Function
from cntk.core.graph.graph import depth_first_search
from cntk.core.graph.variable import Variable
from cntk.core.operators.effects import Finishing
from cntk.core.operators.native import NativeOp
from cntk.core.types.csr import is_csr
from cntk.eval.rows import StreamData, rows_of, static_array
from cntk.eval.signature import Signature, TensorInfo
from cntk.logging.picture import picture_of
from cntk.logging.svg import draw
from cntk.plugins.user_functions import UserFunction
from cntk.readers.rows import join_rows
from cntk.serving.datatypes import dtype_of, name_of
from cntk.serving.refusals import BadTensor, Refusal
from cntk.serving.requests import SHOWN as GIVEN
from cntk.serving.requests import Request

SHOWN = 16
"""Elements of an example up to which it is shown whole."""
INDICES = "INT64"


class Asked(NamedTuple):
    """Checked data of a request.

    Attributes:
        data: rows by input.
        rows: how many; 1 where the model has no batch axis.
        kind: requests of equal kinds can be computed together; None: with no other.
        size: number of elements.
    """

    data: dict[str, Any]
    rows: int
    kind: Hashable | None
    size: int


class Served:
    """A model by the protocol's names.

    Args:
        function: the model.
        outputs: names of results or nodes to give; None for all results but losses and metrics.
        most_rows: rows of a request at most.
    """

    def __init__(self, function: Function, outputs: Sequence[str] | None, most_rows: int) -> None:
        self.function = function
        self.signature = Signature(function, outputs)
        self._most_rows = most_rows
        self._inputs = {info.name: info for info in self.signature.inputs}
        self._variables = self.signature.function.arguments
        self.output_names = [tensor["name"] for tensor in self.outputs]
        self._axes = {self.signature.lengths_name(info): info for info in self.signature.inputs if info.sequence_axis}
        self._is_plain = all(info.has_batch_axis and info.sequence_axis is None and not info.is_sparse for info in self.signature.inputs)
        self.keeps_rows_apart = _keeps_rows_apart(self.signature)

    # ---- what it is ----

    @cached_property
    def inputs(self) -> list[dict[str, Any]]:
        """The inputs as the protocol describes them, lengths of sequences among them."""
        return self._described(self.signature.inputs)

    @cached_property
    def outputs(self) -> list[dict[str, Any]]:
        """The outputs as the protocol describes them, lengths of sequences among them."""
        return self._described(self.signature.outputs)

    @cached_property
    def accepted(self) -> list[dict[str, Any]]:
        """The inputs, and the other forms in which they may come: numbers of elements for sparse ones."""
        sparse = [info for info in self.signature.inputs if info.is_sparse and info.shape]
        return self.inputs + [{"name": info.name, "datatype": INDICES, "shape": _leading(info)} for info in sparse]

    @cached_property
    def picture(self) -> bytes:
        """The graph as a picture, SVG."""
        return draw(picture_of(self.signature.function))

    def _described(self, infos: Sequence[TensorInfo]) -> list[dict[str, Any]]:
        found = [
            {"name": info.name, "datatype": name_of(info.dtype), "shape": [*_leading(info), *(size or -1 for size in info.shape)]}
            for info in infos
        ]
        lengths = dict.fromkeys(self.signature.lengths_name(info) for info in infos if info.sequence_axis)
        return found + [{"name": name, "datatype": INDICES, "shape": [-1]} for name in lengths]

    def example(self, name: str, rows: int = 1) -> dict[str, Any]:
        """A tensor that the input takes: zeros, sequences of two steps."""
        info = self._inputs.get(name)
        if info is None:
            return {"name": name, "shape": [rows], "datatype": INDICES, "data": [2] * rows}
        sizes = [*([rows] if info.has_batch_axis else []), *([2] if info.sequence_axis else [])]
        if info.is_sparse:
            return {"name": name, "shape": sizes, "datatype": INDICES, "data": [0] * math.prod(sizes)}
        sizes += [size or 1 for size in info.shape]
        return {"name": name, "shape": sizes, "datatype": name_of(info.dtype), "data": [0.0] * math.prod(sizes)}

    def example_request(self) -> dict[str, Any]:
        """A request that it answers."""
        return {"inputs": [self.example(tensor["name"]) for tensor in self.inputs]}

    def refusal(self, error: BadTensor) -> Refusal:
        """What the sender of a tensor that does not fit is told."""
        known = next((tensor for tensor in self.inputs if tensor["name"] == error.name), None)
        given = None if error.name is None else f"{error.name:.{GIVEN}}"
        if known is None:
            whole = {"inputs": [self._shown_example(tensor["name"]) for tensor in self.inputs]}
            return Refusal(error.status, str(error), input=given, expected=self.inputs, example=whole)
        return Refusal(error.status, str(error), input=given, expected=known, example=self._shown_example(known["name"]))

    def _shown_example(self, name: str) -> dict[str, Any] | str:
        """A tensor that the input takes, as text with the first numbers where it has many."""
        example = self.example(name)
        if (count := len(example["data"])) <= SHOWN:
            return example
        start = ", ".join(map(str, example["data"][:2]))
        text = f'{{"name": "{name}", "shape": {example["shape"]}, "datatype": "{example["datatype"]}", "data": '
        return f"{text}[{start}, ...]}}, {count} numbers"

    # ---- requests ----

    def check(self, request: Request) -> Asked:
        """See that a request fits.

        Raises:
            BadTensor: a tensor does not.
            Refusal: an output is unknown, or there are too many rows.
        """
        tensors = request.tensors
        for name in request.outputs:
            if name not in self.output_names:
                raise Refusal(422, f"the model has no output {name!r:.{GIVEN}}; it has {', '.join(map(repr, self.output_names))}")
        for name in tensors:
            if name not in self._inputs and name not in self._axes:
                raise BadTensor(
                    name, f"the model has no input {name!r:.{GIVEN}}; it has {', '.join(map(repr, [*self._inputs, *self._axes]))}"
                )
        data = {name: self._checked(info, tensors) for name, info in self._inputs.items()}
        rows = self._rows(data)
        if rows > self._most_rows:
            raise Refusal(422, f"the request has {rows} rows; this server takes {self._most_rows} at most, so send several requests")
        size = sum(_size(part) for part in data.values())
        return Asked(data, rows, self._kind(data), size)

    def _checked(self, info: TensorInfo, tensors: Mapping[str, Any]) -> Any:
        """Data of an input: rows, or an array where the model takes nothing but arrays."""
        given = tensors.get(info.name)
        if given is None:
            raise BadTensor(info.name, f"there is no input {info.name!r}; the model takes {', '.join(map(repr, self._inputs))}")
        is_index = info.is_sparse and given.dtype.kind in "iu"
        if not is_index and given.dtype != info.dtype:
            raise BadTensor(info.name, f"the input {info.name!r} is {name_of(info.dtype)}, got {name_of(given.dtype)}")
        name = self.signature.lengths_name(info) if info.sequence_axis else ""
        lengths = tensors.get(name)
        static = [] if is_index else [size or -1 for size in info.shape]
        is_packed = lengths is not None and given.ndim == len(static) + 1
        wanted = [-1, *static] if is_packed else [*_leading(info), *static]
        if len(wanted) != given.ndim or any(size not in (-1, got) for size, got in zip(wanted, given.shape, strict=True)):
            free = ", where -1 stands for any size" if -1 in wanted else ""
            raise BadTensor(info.name, f"the input {info.name!r} has the shape {wanted}{free}; got {list(given.shape)}")
        if 0 in given.shape:
            raise BadTensor(info.name, f"the input {info.name!r} has the shape {list(given.shape)}, which has no elements")
        if lengths is not None:
            _require_lengths(name, lengths, info.name, given, is_packed)
        if self._is_plain:
            return given
        try:
            if not info.has_batch_axis:
                return static_array(info, given)
            return rows_of(info, StreamData.of_lengths(given, lengths) if is_packed else given, None if is_packed else lengths)
        except ValueError as error:
            raise BadTensor(info.name, str(error)) from None

    def _rows(self, data: Mapping[str, Any]) -> int:
        """How many rows a request has, of which each input has as many, in sequences of as many steps where their axis is the same."""
        batched = [info for info in self._inputs.values() if info.has_batch_axis]
        for first, other in pairwise(batched):
            one, two = len(data[first.name]), len(data[other.name])
            if one != two:
                text = f"the inputs {first.name!r} and {other.name!r} have {one} and {two} rows; they need the same number"
                raise BadTensor(other.name, text)
        for info in batched:
            same = self._axes.get(self.signature.lengths_name(info)) if info.sequence_axis else None
            if same is not None and not np.array_equal(data[same.name].lengths, data[info.name].lengths):
                text = f"the inputs {same.name!r} and {info.name!r} have one sequence axis, but not the same numbers of steps"
                raise BadTensor(info.name, text)
        return len(data[batched[0].name]) if batched else 1

    def _kind(self, data: Mapping[str, Any]) -> Hashable | None:
        if not self.keeps_rows_apart:
            return None
        return tuple((part if self._is_plain else part.rows).shape[1:] for part in data.values())

    # ---- results ----

    def compute(self, parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Results of several requests, by output, each as the protocol has them: sequences padded, and their lengths."""
        joined = parts[0] if len(parts) == 1 else {name: _joined([part[name] for part in parts]) for name in self._inputs}
        if self._is_plain:
            feed = {variable: joined[info.name] for variable, info in zip(self._variables, self.signature.inputs, strict=True)}
        else:
            feed = self.signature.feed_of_rows(joined)
        results = self.signature.results(self.signature.function.eval(feed))
        if len(parts) == 1:
            return [self.signature.padded(results)]
        name = self.signature.inputs[0].name
        ends = np.cumsum([0, *(len(part[name]) for part in parts)]).tolist()
        return [self.signature.padded({key: value[begin:end] for key, value in results.items()}) for begin, end in pairwise(ends)]

    def warm(self) -> None:
        """Compute an example, which compiles the program that requests need."""
        tensors = {one["name"]: np.array(one["data"], dtype_of(one["datatype"])) for one in self.example_request()["inputs"]}
        shaped = {one["name"]: tensors[one["name"]].reshape(one["shape"]) for one in self.example_request()["inputs"]}
        self.compute([self.check(Request("", shaped, {}, False)).data])


def _leading(info: TensorInfo) -> list[int]:
    """Sizes of the dynamic axes, which are free."""
    return [-1] * (info.has_batch_axis + (info.sequence_axis is not None))


def _require_lengths(name: str, lengths: np.ndarray[Any, Any], of: str, given: np.ndarray[Any, Any], is_packed: bool) -> None:
    """See that the lengths of sequences add up.

    Args:
        name: what they are called.
        lengths: the lengths.
        of: the input whose sequences they tell.
        given: its data.
        is_packed: whether the steps of all sequences lie one after another, rather than padded in rows.
    """
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu":
        got = f"{name_of(lengths.dtype)} of shape {list(lengths.shape)}"
        raise BadTensor(name, f"the input {name!r} is a whole number for each row, got {got}")
    if not len(lengths) or lengths.min() < 1:
        raise BadTensor(name, f"the input {name!r}: every sequence has one step at least, got {lengths[:SHOWN].tolist()}")
    if is_packed and (lengths.max() > len(given) or int(lengths.sum()) != len(given)):
        shown = lengths[:SHOWN].tolist()
        raise BadTensor(name, f"the input {name!r}: the lengths are to add up to the {len(given)} steps of {of!r}, got {shown}")
    if not is_packed and len(lengths) != len(given):
        raise BadTensor(name, f"the input {name!r} has {len(lengths)} lengths, and {of!r} has {len(given)} rows")
    if not is_packed and lengths.max() > given.shape[1]:
        raise BadTensor(name, f"the input {name!r} has a length of {lengths.max()}, and {of!r} has {given.shape[1]} steps")


def _joined(parts: Sequence[Any]) -> Any:
    """The rows of several requests, one after another."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    rows = join_rows([part.rows for part in parts])
    if all(part.is_single for part in parts):
        return StreamData.of_steps(rows)
    return StreamData.of_lengths(rows, np.concatenate([part.lengths for part in parts]))


def _size(part: Any) -> int:
    """How many elements data has."""
    rows: Any = part if isinstance(part, np.ndarray) else part.rows
    return int(rows.nnz if is_csr(rows) else rows.size)


def _keeps_rows_apart(signature: Signature) -> bool:
    """Whether each row's results depend on that row alone, so that rows of several requests may be computed together.

    What users write themselves may do anything, and a graph that assigns to its parameters is to do so for each request.
    """
    if not all(info.has_batch_axis for info in (*signature.inputs, *signature.outputs)):
        return False
    functions = depth_first_search(signature.function, lambda node: not isinstance(node, Variable), -1)
    return not any(_mixes_rows(function) for function in functions)


def _mixes_rows(function: Any) -> bool:
    if isinstance(function, UserFunction) or isinstance(getattr(function, "op", None), (Finishing, NativeOp)):
        return True
    return any(map(_may_have_rows, function.inputs)) and not all(map(_may_have_rows, function.outputs))


def _may_have_rows(variable: Variable) -> bool:
    axes = variable.spec.axes
    return axes is None or any(axis.is_batch_axis for axis in axes)
