"""Replacing nodes of a graph by other functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cntk.core.graph.variable import Output, Placeholder, Variable
from cntk.logging.graph import depth_first_search
from cntk.ops import as_block, as_composite, combine
from cntk.ops.functions import CloneMethod, Function


def convert(root_func: Function, filter: Callable[[Any], bool], converter: Callable[[Any], Any]) -> Function:
    """Copy a graph and replace some of its nodes by other functions, inside blocks as well.

    Args:
        root_func: the graph. The copy has its parameters and its inputs.
        filter: called with every node, a Function; tells whether to replace it.
        converter: called with a node to replace; returns its replacement, a function of the node's ``inputs`` with as many
            results. Nodes inside a block are replaced before the block is.

    Returns:
        The copy; *root_func* itself where nothing is to be replaced.

    Raises:
        RuntimeError: *filter* accepts more nodes after the conversion than before, which shows that converting would never end.
        ValueError: *converter* returns another number of results than the node has.

    >>> x = C.input_variable(2)
    >>> model = C.layers.Dense(3, activation=C.relu)(x) + 1
    >>> smooth = C.misc.convert(model, lambda node: node.op_name == 'ReLU', lambda node: C.softplus(node.inputs[0]))
    >>> [node.op_name for node in C.logging.depth_first_search(smooth, lambda node: isinstance(node, C.Function), depth=-1)]
    ['Plus', 'Dense', 'Softplus', 'Plus', 'Times']
    """
    inside = {node: _convert_block(node, filter, converter) for node in _functions(root_func, lambda node: node.is_block)}
    root_func = _replaced(root_func, {node: made for node, made in inside.items() if made is not None})
    found = _functions(root_func, filter)
    converted = _replaced(root_func, {node: converter(node) for node in found})
    left = len(_functions(converted, filter))
    if left > len(found):
        raise RuntimeError(
            f"convert: the filter accepts {len(found)} nodes before the conversion and {left} after it; "
            f"the converter must not make more of the nodes it is to replace"
        )
    return converted


def _functions(root: Function, accept: Callable[[Any], bool]) -> list[Any]:
    """Nodes that are functions and accepted, blocks are not entered."""
    return depth_first_search(root, lambda node: isinstance(node, Function) and accept(node))


def _convert_block(block: Any, filter: Callable[[Any], bool], converter: Callable[[Any], Any]) -> Function | None:
    """The block with its inside converted, or None where there is nothing to convert."""
    stand_ins = {inner: _stand_in(inner) for inner, _ in block.block_arguments_mapping}
    inside = block.block_root.clone(CloneMethod.share, stand_ins)
    converted = convert(inside, filter, converter)
    if converted is inside:
        return None
    mapping = [(stand_ins[inner], outer) for inner, outer in block.block_arguments_mapping]
    return as_block(converted, mapping, block.op_name, block.name)


def _replaced(root: Function, replacements: dict[Any, Any]) -> Function:
    """A copy of the graph in which each of some nodes is replaced.

    A replacement is first disconnected from the node's inputs, and then connected to their copies.  So several nodes one
    behind the other can be replaced at once, and nodes in a loop.
    """
    if not replacements:
        return root
    ends: dict[Variable, Placeholder] = {}
    for node in replacements:
        ends |= {variable: _stand_in(variable) for variable in node.inputs if isinstance(variable, Output) and variable not in ends}
    substitutions: dict[Any, Any] = {leaf: leaf for leaf in root.arguments}
    for node, made in replacements.items():
        outputs = _outputs(made)
        if len(outputs) != len(node.outputs):
            raise ValueError(f"convert: the converter made {len(outputs)} results of {node}, which has {len(node.outputs)}")
        substitutions |= zip(node.outputs, _copies(outputs, substitutions | ends), strict=True)
    copies = _copies([*root.outputs, *ends], substitutions)
    results, inputs = copies[: len(root.outputs)], copies[len(root.outputs) :]
    everything = combine(copies)
    everything.replace_placeholders({end: copy for end, copy in zip(ends.values(), inputs, strict=True) if end in everything.placeholders})
    return _function_of(results, root.name)


def _copies(variables: list[Variable], substitutions: dict[Any, Any]) -> list[Variable]:
    """The variables in a copy of their graph with substitutions, parameters shared."""
    known = [substitutions.get(v, v) for v in variables]
    copied = [v for v in variables if v not in substitutions and isinstance(v, Output)]
    if not copied:
        return known
    clones: dict[Variable, Variable] = dict(zip(copied, combine(copied).clone(CloneMethod.share, substitutions).outputs, strict=True))
    return [clones.get(old, new) for old, new in zip(variables, known, strict=True)]


def _stand_in(variable: Variable) -> Placeholder:
    return Placeholder(variable.spec, variable.name, needs_gradient=variable.needs_gradient)


def _outputs(made: Any) -> list[Variable]:
    return list(made.outputs) if isinstance(made, Function) else [made]


def _function_of(results: list[Variable], name: str) -> Function:
    """The function that has these results."""
    first = results[0]
    if isinstance(first, Output) and list(first.owner.outputs) == results:
        return as_composite(first.owner)
    return combine(results, name=name)


__all__ = ["convert"]
