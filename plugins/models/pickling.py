"""Pickling and copying graphs: what ``pickle``, ``copy`` and whatever is made of them (``multiprocessing``, joblib) do with functions.

A graph goes into a pickle as bytes of the model format, and its leaves (inputs, placeholders, parameters, constants) as objects of their
own beside these.  So what several functions, learners and other objects of one pickle share is there once when it is loaded: leaves,
because ``pickle`` itself sees to that; nodes, because each is known by a number among all that is loaded together.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from functools import partial
from typing import Any

from ...core.graph import graph
from ...core.graph.block import Combine
from ...core.graph.clone import copy_graph
from ...core.graph.nodes import Composite, Primitive
from ...core.graph.operator_states import operator_states, restore_operator_states
from ...core.graph.variable import Constant, Output, Parameter, Variable, new_uid
from ...core.storage.model_format import ModelFormat
from ..user_functions import UserFunction
from .files import callback_of, checked_user_function, format_of

_numbers = itertools.count()
_COPIES = "copies of variables, by variable"


class _LoadedTogether:
    """What is loaded together.

    There is one object, to which each pickled function refers: ``pickle`` keeps it for one object, and so makes one of its own of it
    whenever something is loaded.

    Attributes:
        nodes: the primitives made so far, by the number that each had in the process that pickled them.
    """

    def __init__(self) -> None:
        self.nodes: dict[int, Primitive] = {}

    def __reduce__(self) -> Any:
        return _LoadedTogether, ()


_loaded_together = _LoadedTogether()


# ---- pickling ------------------------------------------------------------------------------------


def reduce(item: Any) -> Any:
    """How ``pickle`` recreates a function, or an output of one; see :meth:`object.__reduce__`."""
    if isinstance(item, Output):
        return _output, (item.owner, item.index)
    if isinstance(item, Composite):
        return _composite, (item.root_function, item._name, item.uid, item.order)
    data, nodes, apart = format_of(ModelFormat.CNTKv2).write_structure(item)
    leaves = {uid: node for uid, node in nodes.items() if isinstance(node, Variable)}
    primitives = {uid: node for uid, node in nodes.items() if uid not in leaves}
    described = {uid: (_number_of(node), node.line, node._custom) for uid, node in primitives.items()}
    made_by = {uid: _recipe(primitives[uid]) for uid in apart}
    root = next(uid for uid, node in nodes.items() if node is item)
    return _primitive, (_loaded_together, data, root, leaves, described, made_by)


def _number_of(node: Primitive) -> int:
    number: int = node.__dict__.setdefault("_number", next(_numbers))
    return number


def _output(owner: Primitive, index: int) -> Variable:
    return owner.outputs[index]


def _composite(root: Primitive, name: str, uid: str, order: Any) -> Composite:
    made = Composite(root, name, order)
    made.uid = uid
    return made


def _primitive(
    company: _LoadedTogether,
    data: bytes,
    root: str,
    leaves: Mapping[str, Variable],
    described: Mapping[str, tuple[int, str, dict[str, Any]]],
    made_by: Mapping[str, Any],
) -> Primitive:
    """The primitive *root* of a graph; those of its nodes that are there already are taken, the others made."""
    there = {uid: company.nodes[number] for uid, (number, _, _) in described.items() if number in company.nodes}
    read = format_of(ModelFormat.CNTKv2).read_structure(data, {**leaves, **there}, made_by, "the pickle")
    for uid in read.keys() & described.keys() - there.keys():
        node = read[uid]
        number, node.line, node._custom = described[uid]
        company.nodes[number] = node
    made: Primitive = read[root]
    return made


# ---- what the model format does not have ---------------------------------------------------------


def _recipe(node: Primitive) -> Any:
    """A function that recreates a primitive from operands and name; a user function by its ``deserialize``, if any, else its attributes."""
    if not isinstance(node, UserFunction):
        return partial(Primitive, node.op)
    kind = type(node)
    if kind.deserialize is not UserFunction.deserialize or callback_of(node.op_name):
        return partial(_deserialized, kind, node.op_name, node.serialize())
    return partial(_with_attributes, kind, node.own_attributes(), node.op.attributes)


def _deserialized(kind: type[UserFunction], op_name: str, state: Any, inputs: list[Variable], name: str) -> Primitive:
    return checked_user_function((callback_of(op_name) or kind.deserialize)(inputs, name, state), op_name).root_function


def _with_attributes(
    kind: type[UserFunction], own: dict[str, Any], attributes: dict[str, Any], inputs: list[Variable], name: str
) -> Primitive:
    made = kind.__new__(kind)
    UserFunction.__init__(made, inputs, attributes=attributes, name=name)
    made.__dict__.update(own)
    made.refresh()
    return made


# ---- copying -------------------------------------------------------------------------------------


def shallow_copy(item: Any) -> Any:
    """See :func:`copy.copy`: a function of its own on the same inputs, parameters and constants; of a variable a deep copy."""
    if isinstance(item, Variable):
        return copy.deepcopy(item)
    root = copy_graph(item.root_function, {leaf: leaf for leaf in graph.leaves_of(item.root_function)})
    return Composite(root, item._name, graph.leaves_behind(item.order)) if isinstance(item, Composite) else root


def deep_copy(item: Any, memo: dict[Any, Any]) -> Any:
    """See :func:`copy.deepcopy`: a function or variable of its own, with inputs, parameters and constants of its own."""
    if isinstance(item, Output):
        return copy.deepcopy(item.owner, memo).outputs[item.index]
    if isinstance(item, Variable):
        made = object.__new__(type(item))
        device = {"device": item.device} if isinstance(item, (Parameter, Constant)) else {}
        made.__setstate__({**item.__getstate__(), **device, "uid": new_uid(item.kind)})
        return made
    copies: dict[Variable, Variable] = memo.setdefault(_COPIES, {})
    if isinstance(item, Composite):
        root = copy.deepcopy(item.root_function, memo)
        return Composite(root, item._name, [copies[v] for v in graph.leaves_behind(item.order) if v in copies])
    known = None if isinstance(item, Combine) else copies.get(item.outputs[0])
    if isinstance(known, Output):
        return known.owner
    there = set(copies)
    copies.update((leaf, copy.deepcopy(leaf, memo)) for leaf in graph.leaves_of(item) if leaf not in copies)
    root = copy_graph(item, copies)
    for old in copies.keys() - there:
        if isinstance(old, Output) and old.owner._custom:
            copies[old].owner._custom = copy.deepcopy(old.owner._custom, memo)
    states = operator_states(item)
    if any(states):
        restore_operator_states(root, states)
    return root
