"""Evaluating functions: from a user's data through a program and back."""

from __future__ import annotations

import itertools
import operator
import threading
from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ..common.switches import benchmark, checked_mode, deterministic_algorithms, math, passes
from ..common.user_frame import warn_user
from ..extension.device import require_device, use_default_device
from ..graph.block import as_outputs
from ..graph.function import Function
from ..graph.graph import depth_first_search, leaves_of, read_off
from ..graph.variable import Constant, Input, Parameter, Variable
from ..machine.first_calls import first_calls
from ..program.program import Program
from ..types import csr
from ..types.csr import is_csr
from ..types.sparse import RowSparse, SparseRows
from ..values.feed import Feed, feed, match_arguments
from ..values.unfeed import pack, sparse_value_of, unfeed, unfeed_sparse, value_of
from ..values.value import Lease
from .workspace import Run, start

_uses = itertools.count()

PROGRAMS_KEPT = 32
"""Programs that a function keeps; of more, the one that has not been used for longest is forgotten."""


def set_checked_mode(enable: bool) -> None:
    """Check every result for NaN from now on, and name the operator that made the first one.

    >>> x = C.input_variable(1)
    >>> C.debugging.set_checked_mode(True)
    >>> (C.exp(x) * 0).eval([[1000]])
    Traceback (most recent call last):
        ...
    ValueError: ElementTimes(...): produced NaN, first at index (0, 0) of its result of shape (1, 1) ...
    >>> C.debugging.set_checked_mode(False)
    """
    checked_mode.value = bool(enable)


def switches() -> tuple[Any, ...]:
    """The switches of the process that programs depend on."""
    return checked_mode.value, passes.value, math.value, benchmark.value, deterministic_algorithms.value


def program_for(
    function: Function,
    roots: Sequence[Variable],
    device: Any = None,
    wrt: Sequence[Variable] = (),
    gradient_roots: Sequence[Variable] = (),
    training: bool = False,
) -> Program:
    """The function's program for these roots and gradients, compiled now or earlier.

    A program stays valid when placeholders are bound, since it has none behind its roots.
    """
    if device is None:
        device = use_default_device()
    else:
        require_device("device", device)
    backend = device.backend
    key = (tuple(roots), tuple(wrt), tuple(gradient_roots), training, backend, switches())
    programs = function.__dict__.setdefault("_programs", {})
    entry = programs.get(key)
    if entry is None:
        entry = programs[key] = [Program(roots, backend, wrt, gradient_roots, training, checked_mode.value), 0]
        if len(programs) > PROGRAMS_KEPT:
            others = [(used, other) for other, (_, used) in list(programs.items()) if other != key]
            programs.pop(min(others, key=operator.itemgetter(0))[1], None)
    entry[1] = next(_uses)
    program: Program = entry[0]
    return program


class Outputs(dict[Variable, Any]):
    """Results by variable; a function of one output stands for this."""

    def __missing__(self, key: Any) -> Any:
        variable = _variable_of(key)
        if variable is None or variable not in self:
            raise KeyError(key)
        return self[variable]

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or super().__contains__(_variable_of(key))

    def get(self, key: Any, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default


def _variable_of(key: Any) -> Variable | None:
    return key.output if isinstance(key, Function) and len(key.outputs) == 1 else None


def feeds_for(program: Program, arguments: Any, function: Function | None = None) -> Iterable[Feed]:
    """Convert a user's arguments for a program's inputs, and warn about data for variables that the function does not have."""
    plain = program.fast_inputs.feeds(arguments)
    if plain is not None:
        return plain
    found = match_arguments(program.arguments, arguments, function)
    return [feed(variable, found[variable]) for variable in program.arguments]


def evaluate(function: Function, arguments: Any, outputs: Any, device: Any, as_numpy: bool) -> Any:
    """See :meth:`Function.eval`."""
    with first_calls:
        values = _evaluated(function, arguments, outputs, device, as_numpy)
    return next(iter(values.values())) if len(values) == 1 else Outputs(values)


def forward(
    function: Function, arguments: Any, outputs: Any, keep_for_backward: Any, device: Any, as_numpy: bool
) -> tuple[State | None, dict[Variable, Any]]:
    """See :meth:`Function.forward`."""
    if not keep_for_backward:
        return None, Outputs(_evaluated(function, arguments, outputs, device, as_numpy))
    roots, kept = _roots(function, outputs), as_outputs(keep_for_backward)
    every = list(dict.fromkeys([*(roots if outputs is None else _within(function, roots)), *kept]))
    program = program_for(function, every, device, _differentiable_leaves(function), kept, training=True)
    run = start(program, [_own(fed) for fed in feeds_for(program, _by_argument(program, arguments), function)])
    try:
        with run.guard():
            run.forward()
            values = Outputs((root, _read(run, root, run.value(root), device, as_numpy)) for root in roots)
            _lease(function, values, as_numpy)
    except BaseException:
        run.close()
        raise
    return State(run, kept), values


def _evaluated(function: Function, arguments: Any, outputs: Any, device: Any, as_numpy: bool) -> dict[Variable, Any]:
    """The outputs by variable."""
    roots = _roots(function, outputs)
    program = program_for(function, roots if outputs is None else _within(function, roots), device)
    run = start(program, feeds_for(program, _by_argument(program, arguments), function))
    try:
        with run.guard():
            run.forward()
            values = {root: _read(run, root, run.value(root), device, as_numpy) for root in roots}
            _lease(function, values, as_numpy)
            run.finish()
    finally:
        run.close()
    return values


def _roots(function: Function, outputs: Any) -> Sequence[Variable]:
    """The variables that are asked for, each once; all outputs if None."""
    roots = function.outputs if outputs is None else as_outputs(outputs)
    if not roots:
        raise ValueError(f"{function} cannot be evaluated without outputs; name at least one to compute")
    return roots if len(roots) == 1 else list(dict.fromkeys(roots))


def backward(function: Function, state: Any, root_gradients: Any, variables: Iterable[Any], as_numpy: bool) -> dict[Variable, Any]:
    """See :meth:`Function.backward`."""
    if not isinstance(state, State):
        raise ValueError("backward: there is no state to go back from; call forward with keep_for_backward first")
    if not isinstance(root_gradients, dict):
        root_gradients = {function.output: root_gradients}
    run = state.take()
    try:
        seeds = {root: _seed(run, root, gradient) for root, gradient in _items_by_output(root_gradients)}
        if len(seeds) > 1:
            raise RuntimeError(f"backward: gradients can start from one output at a time, got {len(seeds)}")
        for root in seeds:
            if root not in state.roots:
                raise ValueError(f"backward: {root!r} was not in keep_for_backward of the forward pass")
        wanted = as_outputs(variables)
        with run.guard():
            run.backward(seeds)
            result = Outputs((variable, _read(run, variable, _gradient(run, variable), None, as_numpy)) for variable in wanted)
            run.finish()
        return result
    finally:
        run.close()


def grad(function: Function, at: Any, wrt: Any, outputs: Any, device: Any, as_numpy: bool, grad_root: Any) -> Any:
    """See :meth:`Function.grad`."""
    root = function.output if grad_root is None else as_outputs([grad_root])[0]
    by = [v for v in function.arguments if v.needs_gradient] if wrt is None else as_outputs(wrt)
    if not by:
        raise ValueError(f"grad: no input of {function} has needs_gradient=True; name what to differentiate by with wrt=")
    extra = as_outputs(outputs or ())
    every = list(dict.fromkeys([root, *(_within(function, extra) if extra else ())]))
    program = program_for(function, every, device, by, [root], training=True)
    run = start(program, feeds_for(program, _by_argument(program, at), function))
    try:
        with run.guard():
            run.forward()
            values = Outputs((output, _read(run, output, run.value(output), device, as_numpy)) for output in extra)
            run.backward()
            gradients = Outputs((variable, _read(run, variable, _gradient(run, variable), device, as_numpy)) for variable in by)
            _lease(function, {**values, **gradients}, as_numpy)
            run.finish()
    finally:
        run.close()
    result = gradients[by[0]] if len(by) == 1 else gradients
    if outputs is None:
        return result
    return result, (values[extra[0]] if len(extra) == 1 else values)


class _Leases(threading.local):
    """Leases of the values that a thread's last evaluations gave, by function."""

    def __init__(self) -> None:
        self.by_function: WeakKeyDictionary[Function, Lease] = WeakKeyDictionary()


_leases = _Leases()


def _lease(function: Function, values: dict[Variable, Any], as_numpy: bool) -> None:
    """End the values of this thread's evaluation before; those of this one last until the next."""
    held = _leases.by_function
    if held and (ended := held.pop(function, None)) is not None:
        ended.is_current = False
    if not as_numpy:
        lease = held[function] = Lease()
        for value in values.values():
            value._lease = lease


def _within(function: Function, roots: Sequence[Variable]) -> Sequence[Variable]:
    """What to compute for *roots*, which must be part of the function's graph: for one inside a block, the whole first.

    Raises:
        ValueError: a root is not part of the graph.
    """
    if _variables_of(function, 0).issuperset(roots):
        return roots
    inner = _variables_of(function, -1)
    for root in roots:
        if root not in inner:
            raise ValueError(f"{root!r} is not part of {function}, so it cannot be evaluated with it; evaluate the function it comes from")
    return [*function.outputs, *roots]


@read_off
def _variables_of(function: Function, depth: int) -> frozenset[Variable]:
    nodes = depth_first_search(function.root_function, lambda node: True, depth)
    return frozenset(v for node in nodes for v in ([node] if isinstance(node, Variable) else node.outputs))


class State:
    """What a forward pass keeps for one backward pass."""

    def __init__(self, run: Run, roots: Sequence[Variable]) -> None:
        self._run: Run | None = run
        self.roots = tuple(roots)

    def __reduce__(self) -> Any:
        raise TypeError("the state of a forward pass is in the memory that backward works in, and cannot be pickled or copied")

    def take(self) -> Run:
        """The forward pass's run, which can be taken once.

        Raises:
            ValueError: a backward pass has used it.
        """
        run, self._run = self._run, None
        if run is None:
            raise ValueError("backward: this state has been used by an earlier backward pass; call forward again")
        return run


def _own(fed: Feed) -> Feed:
    """The feed with sparse data copied, which a later backward pass must find as they were."""
    return fed._replace(data=fed.data.copy()) if is_csr(fed.data) else fed


def _by_argument(program: Program, arguments: Any) -> Any:
    """Data that is not a dictionary belongs to the only input; for a single unused input it is left out."""
    if isinstance(arguments, dict) or arguments is None or program.arguments:
        return arguments
    return {}


def _items_by_output(gradients: dict[Any, Any]) -> list[tuple[Variable, Any]]:
    return [(as_outputs([key])[0], value) for key, value in gradients.items()]


def _differentiable_leaves(function: Function) -> list[Variable]:
    leaves = leaves_of(function.root_function)
    return [v for v in leaves if v.needs_gradient and isinstance(v, (Input, Parameter, Constant))]


def _seed(run: Run, root: Variable, gradient: Any) -> Any:
    try:
        return pack(gradient, run.value(root).shape, run.layout(root))
    except (ValueError, TypeError) as error:
        raise ValueError(f"backward: the gradient of {root!r} does not fit: {error}") from None


def _gradient(run: Run, variable: Variable) -> Any:
    if variable not in run.program.gradient_slots:
        raise ValueError(f"there is no gradient of {variable!r}: it does not need one, or the function does not depend on it")
    return run.gradient(variable)


def _read(run: Run, variable: Variable, array: Any, device: Any, as_numpy: bool) -> Any:
    """A root or gradient as the user gets it: memory of its own."""
    backend = run.binding.backend
    axes = variable.spec.axes or ()
    layout = run.layout(variable)
    if isinstance(array, (SparseRows, RowSparse)) and not as_numpy:
        return sparse_value_of(array.to_csr(backend), array.shape, axes, layout, device)
    if isinstance(array, SparseRows):
        warn_user(f"{variable!r} is sparse and is given as {csr.type_name()}")
        return unfeed_sparse(array.to_csr(backend), array, axes, layout)
    if isinstance(array, RowSparse):
        array = array.to_dense(backend.xp)
    host = backend.to_numpy(array)
    return unfeed(host, axes, layout) if as_numpy else value_of(host, axes, layout, device)
