"""Stepping through a model: a node after each of its own shows what passes, and waits for commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from cntk.core.graph import graph
from cntk.core.graph.block import Combine, combine
from cntk.core.graph.function import Function
from cntk.core.graph.nodes import Composite, Primitive
from cntk.core.graph.variable import Output, Variable
from cntk.core.run.evaluate import set_checked_mode
from cntk.debugging.profiler import set_node_timing
from cntk.plugins.models import files as model_files
from cntk.plugins.user_functions import UserFunction, output_variable

DEBUG_USAGE = """\
    Commands:
        n            go to the next node
        n <number>   go on for so many nodes
        u f          go on to the forward pass
        u b          go on to the backward pass
        u <name>     go on to the node of that name
        u <lambda>   go on until it is true of the data and the node, for example
                     lambda arg, node: node.op_name == 'Times'
                     lambda arg, node: np.var(arg) > 1   (np is numpy)
        c            go on to the end, without further stops
        p            print the data (forward) or the gradient (backward)
        d            start pdb here
        q            quit
"""

Condition = Callable[[str, Any, Any], bool]
FORWARD, BACKWARD = "forward", "backward"


class _Session:
    """One debugging session: its streams, and the condition for the next stop."""

    def __init__(self, in_stream: Any, out_stream: Any, exit_func: Callable[[int], Any]) -> None:
        self._in, self._out, self._exit = in_stream, out_stream, exit_func
        self._pass = ""
        self._is_there: Condition = _steps(1)

    def arrive(self, current: str, data: Any, node: Any) -> None:
        """Tell that *data* pass behind *node*; return when the user lets them."""
        if current != self._pass:
            self._write(f"{'=' * 35} {current:8} {'=' * 35}\n")
            self._pass = current
        self._write(f"\n{node} with uid '{node.uid}'\n")
        if not self._is_there(current, data, node):
            return
        prompt = _DebugNode.PROMPT_FORWARD if current == FORWARD else _DebugNode.PROMPT_BACKWARD
        waiting = True
        while waiting:
            self._write(prompt)
            line = self._in.readline()
            waiting = bool(line) and not self._obey(line.strip(), data)

    def _obey(self, command: str, data: Any) -> bool:
        """Carry out a command; tells whether it lets the data pass."""
        if command == "p":
            self._write(f"shape {getattr(data, 'shape', len(data))}:\n{data}\n")
        elif command == "d":
            breakpoint()
        elif command == "q":
            self._exit(0)
        elif (condition := _condition(command)) is not None:
            self._is_there = condition
            return True
        elif command:
            self._write(DEBUG_USAGE)
        return False

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def _condition(command: str) -> Condition | None:
    """The condition for the next stop, for a command that sets one."""
    verb, what = command[:1], command[1:].strip()
    if verb == "c" and not what:
        return lambda current, data, node: False
    if verb == "n" and (not what or what.isdigit()):
        return _steps(int(what or 1))
    if verb == "u" and what.startswith("lambda"):
        return _condition_in_python(what)
    if verb == "u" and what in ("f", "b"):
        return lambda current, data, node: current.startswith(what)
    if verb == "u" and what:
        return lambda current, data, node: bool(node.name == what)
    return None


def _steps(count: int) -> Condition:
    left = iter(range(count - 1))
    return lambda current, data, node: next(left, None) is None


def _condition_in_python(text: str) -> Condition | None:
    import numpy as np

    try:
        condition = eval(text, {"np": np})
    except SyntaxError:
        return None
    return lambda current, data, node: bool(condition(data, node))


class _DebugNode(UserFunction):
    """Passes on the value of a node, and its gradient, unchanged, and stops there if the user has asked for it."""

    PROMPT_FORWARD = "[CNTK forward] >>> "
    PROMPT_BACKWARD = "[CNTK backward] >>> "

    def __init__(self, after: Variable, session: _Session) -> None:
        super().__init__([after], name=f"D_{after.uid}")
        self._session = session

    @property
    def after(self) -> Any:
        """The node, a function or a leaf of the graph, that comes before."""
        (after,) = self.inputs
        return after.owner if isinstance(after, Output) else after

    def clone(self, cloned_inputs: Sequence[Variable]) -> UserFunction:  # type: ignore[override]
        return _DebugNode(cloned_inputs[0], self._session)

    def infer_outputs(self) -> list[Variable]:
        (x,) = self.inputs
        return [output_variable(x.shape, x.dtype, x.dynamic_axes)]

    def forward(self, argument: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:  # type: ignore[override]
        self._session.arrive(FORWARD, argument, self.after)
        return None, argument

    def backward(self, state: Any, root_gradients: Any) -> Any:  # type: ignore[override]
        self._session.arrive(BACKWARD, root_gradients, self.after)
        return root_gradients


def debug_model(model: Function, in_stream: Any = None, out_stream: Any = None, exit_func: Callable[[int], Any] = sys.exit) -> Composite:
    """A model that stops at each of its nodes, forward and backward, and waits for commands; see ``DEBUG_USAGE``.

    Args:
        model: the model; it is left alone, and shares its parameters and inputs with the result.
        in_stream: where commands come from (``readline``); standard input if None. At its end the session no longer stops.
        out_stream: where everything is shown (``write``, ``flush``); standard output where None.
        exit_func: called with 0 by the command ``q``.

    Raises:
        ValueError: the model has recurrent loops.

    >>> import io
    >>> x = C.input_variable(2, name='x')
    >>> model = C.debugging.debug_model(C.sigmoid(x, name='s'), in_stream=io.StringIO('u s\\np\\nc\\n'))
    >>> value = model.eval([[0, 0]])
    =================================== forward  ===================================
    <BLANKLINE>
    Input('x', [#], [2]) with uid 'Input...'
    [CNTK forward] >>>
    s: StableSigmoid(Tensor[2]) -> Tensor[2] with uid 'StableSigmoid...'
    [CNTK forward] >>> shape (1, 2):
    [[0.5 0.5]]
    [CNTK forward] >>>
    """
    session = _Session(in_stream or sys.stdin, out_stream or sys.stdout, exit_func)
    root = model.root_function
    watched: dict[Variable, Variable] = {leaf: _DebugNode(leaf, session).output for leaf in graph.leaves_of(root)}
    for node in graph.primitives_of([root]):
        if not isinstance(node, Combine):
            _watch(node, watched, session)
    return combine([watched[output] for output in root.outputs])


def _watch(node: Primitive, watched: dict[Variable, Variable], session: _Session) -> None:
    missing = [v for v in node.inputs if v not in watched]
    if missing:
        raise ValueError(f"debug_model: {node} is part of a recurrent loop through {missing[0]!r}; loops cannot be stepped through")
    copy = node.copy_on([watched[v] for v in node.inputs], watched)
    for before, output in zip(node.outputs, copy.outputs, strict=True):
        watched[before] = _DebugNode(output, session).output


def set_computation_network_trace_level(level: int) -> None:
    """Accepted for compatibility: CNTK's engine then prints values; here :func:`debug_model` shows them.

    >>> C.debugging.set_computation_network_trace_level(1)
    """


def save_as_legacy_model(root_op: Function, filename: str) -> None:
    """Save a function in the format of CNTK's first version, for programs that know no other; ``Function.load`` reads both.

    That format has fewer operators, one element type in a file, no custom attributes and no blocks, of which the content is saved.
    A dropout has no rate there, and does nothing once it is loaded.

    Args:
        root_op: the function.
        filename: the path of the file.

    Raises:
        ValueError: the format does not have something in the function.

    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, 'model.dnn')
    >>> C.debugging.save_as_legacy_model(C.tanh(C.input_variable(2, name='x'), name='y'), path)
    >>> print(C.Function.load(path))
    y: Tanh(x: Tensor[2]) -> Tensor[2]
    >>> folder.cleanup()
    """
    model_files.save(root_op, filename, "CNTKv1")


__all__ = [
    "DEBUG_USAGE",
    "debug_model",
    "save_as_legacy_model",
    "set_checked_mode",
    "set_computation_network_trace_level",
    "set_node_timing",
]
