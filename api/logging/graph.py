"""Looking at graphs: walking them, finding nodes, drawing."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from cntk.core.graph import graph
from cntk.core.graph.function import Function
from cntk.core.graph.variable import Variable
from cntk.core.storage.files import write_file
from cntk.logging.picture import functions_of, picture_of, shown_inputs

PICTURES = (".svg", ".pdf", ".png", ".dot")


def depth_first_search(root: Any, visitor: Callable[[Any], bool], depth: int = 0) -> list[Any]:
    """Nodes that a predicate accepts, each before what it depends on.

    Args:
        root: a function or variable.
        visitor: called once with every node, a function or a leaf variable; tells whether to list it.
        depth: how many blocks to enter on the way from *root* to a node; -1 for all.

    >>> x = C.input_variable(2)
    >>> [node.op_name for node in C.logging.depth_first_search(C.relu(x + 1), lambda node: isinstance(node, C.Function))]
    ['ReLU', 'Plus']
    """
    return graph.depth_first_search(root, visitor, depth)


def find_by_name(node: Any, node_name: str, depth: int = 0) -> Any:
    """The node called *node_name* behind *node*, or None; blocks are entered as :func:`depth_first_search` does.

    Raises:
        ValueError: *node_name* is not a string, or several nodes have it.

    >>> z = C.layers.Dense(3, name='hidden')(C.input_variable(2))
    >>> C.logging.find_by_name(z, 'hidden').op_name
    'Dense'
    >>> C.logging.find_by_name(z, 'W'), C.logging.find_by_name(z, 'other')
    (Parameter('W', [], [2 x 3]), None)
    """
    return graph.find_by_name(node, node_name, depth)


def find_all_with_name(node: Any, node_name: str, depth: int = 0) -> list[Any]:
    """All nodes called *node_name* behind *node*; blocks are entered as :func:`depth_first_search` does.

    Raises:
        ValueError: *node_name* is not a string.

    >>> x = C.input_variable(2, name='x')
    >>> C.logging.find_all_with_name(C.relu(x), 'x')
    [Input('x', [#], [2])]
    """
    return graph.find_all_with_name(node, node_name, depth)


def find_by_uid(node: Any, node_uid: str, depth: int = 0) -> Any:
    """The node with this uid behind *node*, or None; blocks are entered as :func:`depth_first_search` does.

    Raises:
        ValueError: *node_uid* is not a string.

    >>> x = C.input_variable(2, name='x')
    >>> C.logging.find_by_uid(C.relu(x), x.uid)
    Input('x', [#], [2])
    """
    return graph.find_by_uid(node, node_uid, depth)


def get_node_outputs(node: Any, depth: int = 0) -> list[Variable]:
    """Outputs of every function behind *node*, blocks entered to *depth* levels.

    >>> x = C.input_variable(2)
    >>> len(C.logging.graph.get_node_outputs(C.relu(x + 1)))
    2
    """
    functions = depth_first_search(node, lambda item: not isinstance(item, Variable), depth)
    return [output for function in functions for output in function.outputs]


def plot(root: Function, filename: str | os.PathLike[str] | None = None) -> str:
    """Describe the graph behind *root* in a line for each output of a function, and draw it.

    A block, such as a layer, is one node; ``plot(block.block_root)`` shows what is in it.

    Args:
        root: a function.
        filename: where the picture goes; its ending says of what kind: ``.dot`` is text in Graphviz's language; ``.svg``, ``.png`` and
            ``.pdf`` are drawn by Graphviz where its program ``dot`` is installed, else by matplotlib.

    Returns:
        Lines ``operator(operands) -> output;`` with an empty line between, operands first.

    Raises:
        TypeError: *root* is not a function.
        ValueError: the file has another ending.
        ImportError: a picture is wanted and there is neither Graphviz nor matplotlib.
        RuntimeError: Graphviz failed.

    >>> x = C.input_variable(2, name='x')
    >>> print(C.logging.plot(C.relu(2 * x)).replace('\\n\\n', '\\n'))
    ElementTimes(Constant..., Input...) -> ElementTimes..._Output_0;
    ReLU(ElementTimes..._Output_0) -> ReLU..._Output_0;
    """
    if not isinstance(root, Function):
        raise TypeError(f"plot: expected a function, got {type(root).__name__} {root!r:.80}")
    if filename:
        _draw(root, os.fspath(filename))
    lines = [line for function in functions_of(root) for line in _description(function)]
    return "\n".join(reversed(lines))


def _description(function: Any) -> list[str]:
    operands = ", ".join(variable.uid for variable in shown_inputs(function))
    return [f"{function.op_name}({operands}) -> {output.uid};\n" for output in function.outputs]


def _draw(root: Function, filename: str) -> None:
    from cntk.logging import dot, figure

    ending = os.path.splitext(filename)[1].lower()
    if ending not in PICTURES:
        raise ValueError(f"plot: a picture's name ends in one of {', '.join(PICTURES)}; got {filename!r}")
    picture = picture_of(root)
    if ending == ".dot":
        data = dot.dot_text(picture).encode()
    elif dot.has_graphviz():
        data = dot.draw(picture, ending[1:])
    elif find_spec("matplotlib"):
        data = figure.draw(picture, ending[1:])
    else:
        raise ImportError(
            f"plot: a picture such as {filename!r} is drawn by matplotlib (pip install 'opencntk[plot]') or by Graphviz's program dot "
            "(apt install graphviz, brew install graphviz, or https://graphviz.org/download); neither is installed. "
            "A file that ends in .dot needs nothing"
        )
    write_file(filename, [data])


__all__ = ["depth_first_search", "find_all_with_name", "find_by_name", "find_by_uid", "get_node_outputs", "plot"]
