"""Copying graphs with substitutions, and binding placeholders in place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..types.spec import Spec
from . import graph
from .function import CloneMethod, Function
from .inference import as_variable, infer_again
from .nodes import Composite, Primitive
from .placeholders import depending_on, latest_behind, note_bound, open_primitives
from .variable import Constant, Input, Literal, Output, Parameter, Placeholder, Variable, has_inferred_dimensions


def clone(function: Function, method: CloneMethod, substitutions: dict[Any, Any] | None) -> Composite:
    """See :meth:`Function.clone`."""
    memo = _as_memo(substitutions)
    root = function.root_function
    for output in root.outputs:
        if output in memo and len(root.outputs) == 1:
            return Composite(_root_of(memo[output]))
    own = [leaf for leaf in graph.leaves_of(root) if leaf not in memo]
    shared = set() if _are_kept(own, method) else set(graph.leaves_behind([new for new in memo.values() if isinstance(new, Output)]))
    memo.update((leaf, leaf if leaf in shared else _copy_leaf(leaf, method)) for leaf in own)
    order = [memo[v] for v in getattr(function, "order", ()) if v in memo]
    return Composite(copy_graph(root, memo), function.name, order)


def copy_graph(root: Primitive, memo: dict[Variable, Variable]) -> Primitive:
    """Copy the graph behind *root*, where *memo* maps its leaves to their substitutes; cycles are kept."""
    copies: dict[Primitive, Primitive] = {}
    open_ends: dict[Variable, Variable] = {}
    alike = all(old.spec == new.spec for old, new in memo.items())
    for node in graph.primitives_of([root], stop=memo.__contains__):
        inputs = [_renewed(v, memo, open_ends, alike) for v in node.inputs]
        copies[node] = node.copy_on(inputs, memo)
        for old, new in zip(node.outputs, copies[node].outputs, strict=True):
            memo.setdefault(old, new)
    if open_ends:
        _close(list(copies.values()), {end: memo[old] for old, end in open_ends.items()})
    return copies[root]


def _renewed(variable: Variable, memo: dict[Variable, Variable], open_ends: dict[Variable, Variable], alike: bool) -> Variable:
    """The operand of a copy; where a cycle closes, a placeholder, of the operand's shape if types do not change."""
    if variable in memo:
        return memo[variable]
    if isinstance(variable, Output):
        return open_ends.setdefault(variable, Placeholder(variable.spec.but(axes=None) if alike else Spec(), variable.name))
    return variable


def _close(copies: list[Primitive], replacements: dict[Variable, Variable]) -> None:
    for node in copies:
        node.replace_inputs(replacements)
    infer_again(copies)


def _are_kept(leaves: Sequence[Variable], method: CloneMethod) -> bool:
    """Whether a copy would hold the same leaves anyway, save for numbers."""
    return method is CloneMethod.share and all(isinstance(leaf, (Parameter, Constant)) for leaf in leaves)


def _copy_leaf(leaf: Variable, method: CloneMethod) -> Variable:
    if isinstance(leaf, Literal) and leaf.spec.dtype is None:
        return Literal(leaf.given)
    if isinstance(leaf, (Parameter, Constant)):
        if method is CloneMethod.share:
            return leaf
        if method is CloneMethod.clone and isinstance(leaf, Parameter):
            return Parameter(leaf.shape, leaf.initial, leaf.dtype, leaf.device, leaf.name)
        return Constant(leaf.initial, leaf.shape, leaf.dtype, leaf.device, leaf.name)
    kind_of = Input if isinstance(leaf, Input) else Placeholder
    return kind_of(leaf.spec, leaf.name, needs_gradient=leaf.needs_gradient)


def _as_memo(substitutions: dict[Any, Any] | None) -> dict[Variable, Variable]:
    if substitutions is None:
        return {}
    if not isinstance(substitutions, dict):
        raise TypeError(f"clone: substitutions must be a dictionary of variables, got {type(substitutions).__name__}")
    memo: dict[Variable, Variable] = {}
    for old, new in substitutions.items():
        if old is None or new is None:
            raise AttributeError(f"clone: cannot put {new!r} in the place of {old!r}; neither may be None")
        for item in (old, new):
            if not isinstance(item, (Variable, Function)):
                raise TypeError(f"clone: substitutions are variables or functions, got {type(item).__name__} {item!r:.80}")
        memo[as_variable(old)] = as_variable(new)
    return memo


def _root_of(variable: Variable) -> Primitive:
    from .block import Combine

    return variable.owner if isinstance(variable, Output) else Combine([variable])


def replace_placeholders(function: Function, substitutions: dict[Any, Any]) -> None:
    """See :meth:`Function.replace_placeholders`."""
    since = min((latest_behind(old) for old in substitutions if isinstance(old, Placeholder)), default=math.inf)
    changing = open_primitives(function.root_function, since)
    known = open_placeholders(function, changing)
    replacements: dict[Variable, Variable] = {}
    for old, new in substitutions.items():
        if old not in known:
            raise ValueError(f"replace_placeholders: {old!r} is not a placeholder of {function}; those are {list(function.placeholders)}")
        replacements[old] = as_variable(new)
    if isinstance(function, Composite):
        function.fix_order()
    changed = [node for node in changing if any(v in replacements or _is_unresolved(v) for v in node.inputs)]
    for node in changed:
        node.replace_inputs(replacements)
    order = open_primitives(function.root_function, since)
    note_bound(replacements)
    affected = depending_on(order, changed)
    infer_again([node for node in order if node in affected])


def open_placeholders(function: Function, changing: Sequence[Primitive] | None = None) -> set[Placeholder]:
    """The placeholders of a function, among the operands of *changing* primitives where these are given."""
    nodes = [function] if function.is_primitive else open_primitives(function.root_function) if changing is None else changing
    return {v for node in nodes for v in node.inputs if isinstance(v, Placeholder)}


def _is_unresolved(variable: Variable) -> bool:
    """Whether it has dimensions that may be inferred from another primitive."""
    return isinstance(variable, (Parameter, Constant)) and has_inferred_dimensions(variable)
