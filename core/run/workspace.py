"""Workspaces: the memory that a program runs in, and the run of one call.

A workspace serves one call at a time; calls on several threads use several.  Whatever depends on sizes is computed once for
each size of minibatch and kept as a :class:`~cntk.core.run.binding.Binding`, so that a step of training looks nothing up and
allocates nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import le
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import proxy

from ..common.shape import Shape
from ..common.threads import max_threads
from ..extension.backend import DType
from ..machine.first_calls import first_calls
from ..types.axis import Axes
from ..types.layout import Layout
from ..types.sparse import RowSparse
from ..values.fast_feed import FastFeeds
from ..values.feed import Feed
from . import memory, profiling
from .binding import Binding
from .placed_rows import Room
from .recurrence import BoundLoop
from .sizes import Sizes

if TYPE_CHECKING:
    from ..graph.variable import Variable
    from ..program.program import Program
    from ..program.slots import Loop

ROOMY = 1.5
"""Up to so many times the bytes of its arrays a minibatch takes up in places that were found for larger ones."""

KEPT = 64
"""How many sizes of minibatch bindings are kept for; all share the memory of arrays."""


Lives = tuple[tuple[int, int], ...]
"""First and last moment at which each array is needed."""


class Placement(NamedTuple):
    """Where the arrays of a stage lie.

    Attributes:
        nbytes, lives: the room that each array has, and when it is needed.
        arena, offsets: the memory, and where each array begins in it.
        bound_loops: loops at work on arrays that lie so, by loop and :meth:`~cntk.core.run.sizes.Sizes.of_samples`.
    """

    nbytes: tuple[int, ...]
    lives: Lives
    arena: Any
    offsets: Sequence[int]
    bound_loops: dict[Any, BoundLoop]

    def has_room(self, nbytes: tuple[int, ...]) -> bool:
        """Whether arrays of so many bytes lie well in these places."""
        return all(map(le, nbytes, self.nbytes)) and sum(self.nbytes) <= ROOMY * sum(nbytes)


class Workspace:
    """Memory of one call at a time: an arena for the values of each stage, scratch space, and bindings by size of minibatch.

    Args:
        program: what runs in it.
        given: by slot, arrays in place of memory of the arena, for values of one size.
    """

    def __init__(self, program: Program, given: Mapping[int, Any] | None = None) -> None:
        self.program: Program = proxy(program)  # the program holds its workspaces; a cycle would keep the arena until it is collected
        self.given: Mapping[int, Any] = given or {}
        self.pool: dict[str, Any] = {}
        self._version, self._threads = first_calls.version, max_threads()
        self._arenas = [program.backend.allocate(0) for _ in range(program.stages)]
        self._rooms: dict[int, Room] = {}
        self._row_sparse: dict[tuple[int, Shape], RowSparse] = {}
        self._bindings: list[dict[Any, Binding]] = [{} for _ in range(program.stages)]
        self._placements: list[dict[Any, Placement]] = [{} for _ in range(program.stages)]

    @property
    def is_outdated(self) -> bool:
        """Whether loops have taken over since from NumPy, or more threads may share calls than there is scratch space for."""
        return self._threads < max_threads() or self._version != first_calls.version

    def load(self, feeds: Iterable[Feed]) -> Binding:
        """Bind the first stage to the sizes of *feeds*, one for each input, and load them.

        Raises:
            MemoryError: there is too little memory; what the workspace had of it has been given back.
        """
        try:
            if type(feeds) is FastFeeds:
                binding = self._binding(feeds.key, feeds, bool(feeds.steps), is_plain=True)
                binding.load(feeds.data)
            else:
                listed = list(feeds)
                self._check(listed)
                binding = self._binding(self._key(listed), listed, _have_sequences(listed), is_plain=False)
                binding.load([fed.data for fed in listed])
            return binding
        except MemoryError as error:
            failed = MemoryError(*error.args)
        self.release()
        raise failed

    def _binding(self, key: Any, feeds: Iterable[Feed], have_sequences: bool, is_plain: bool) -> Binding:
        """The first stage's binding to the sizes of a minibatch, of which a plain one's are known by the key."""
        if not have_sequences:
            return self._used_again(key) or self._bound(key, Sizes(self.program, list(feeds)), None)
        is_latest = next(reversed(self._bindings[0]), None) == key  # no other has taken over what they share
        binding = self._used_again(key)
        if binding is None or not (is_plain or binding.sizes.are_those_of(list(feeds))):
            return self._bound(key, Sizes(self.program, list(feeds)), None)
        return binding if is_latest else self._bound(key, binding.sizes, None)

    def _used_again(self, key: Any) -> Binding | None:
        """The first stage's binding to a size, now the last one, which is kept longest; None if there is none."""
        binding = self._bindings[0].pop(key, None)
        if binding is not None:
            self._bindings[0][key] = binding
        return binding

    def _key(self, feeds: Sequence[Feed]) -> Any:
        """The key of a minibatch's sizes: the number of samples, if they differ in nothing else."""
        if self.program.fast_inputs.all_plain and feeds[0].layout is not None:
            return feeds[0].layout.samples
        return tuple([(fed.shape, None if fed.layout is None else (fed.layout.samples, fed.layout.rows)) for fed in feeds])

    def advance(self, binding: Binding) -> Binding:
        """Bind the stage that follows, now that its rows can be decided from the results of this one.

        Raises:
            MemoryError: there is too little memory; what the workspace had of it has been given back.
        """
        try:
            decided = binding.resolve_layouts()
            key = (binding, *[(layout.samples, layout.rows, layout.shapes) for layout in decided.values()])
            return self._bound(key, binding.sizes.after(binding.stage + 1, decided), binding)
        except MemoryError as error:
            failed = MemoryError(*error.args)
        self.release()
        raise failed

    def _bound(self, key: Any, sizes: Sizes, before: Binding | None) -> Binding:
        """The binding for these sizes, made now or earlier; those used longest ago go first."""
        bindings = self._bindings[0 if before is None else before.stage + 1]
        binding = bindings.pop(key, None)
        if binding is None or not binding.fits(sizes):
            binding = Binding(self, sizes, before)
        _keep(bindings, key, binding, KEPT)
        return binding

    def place(self, stage: int, nbytes: tuple[int, ...], lives: Lives) -> Placement:
        """Where arrays of so many bytes, needed from one moment to another, lie in the arena of a stage.

        Sequences seldom have the same lengths twice: where there is room for them they lie as others did, and loops stay as they are.
        """
        placements = self._placements[stage]
        found = _with_room(placements, nbytes, lives)
        if found is None:
            found = self._placed_for_both(stage, _latest_room(placements, lives), nbytes, lives) or self._placed(stage, nbytes, lives)
        placements.pop((found.nbytes, lives), None)
        _keep(placements, (found.nbytes, lives), found, KEPT)
        return found

    def _placed_for_both(self, stage: int, room: tuple[int, ...] | None, nbytes: tuple[int, ...], lives: Lives) -> Placement | None:
        """A placement that has the room of another one, too; None where that takes too much memory, or there is no other one."""
        largest = nbytes if room is None else tuple(map(max, nbytes, room))
        if largest == nbytes or sum(largest) > ROOMY * sum(nbytes):
            return None
        try:
            return self._placed(stage, largest, lives)
        except MemoryError:
            return None

    def _placed(self, stage: int, nbytes: tuple[int, ...], lives: Lives) -> Placement:
        births, deaths = zip(*lives, strict=True) if lives else ((), ())
        offsets, total = memory.plan(nbytes, births, deaths, self.program.backend.alignment)
        return Placement(nbytes, lives, self._reserve(stage, total), offsets, {})

    def bound_loop(self, loop: Loop, binding: Binding) -> BoundLoop:
        """A loop at work on a binding's arrays; that of another size of minibatch if these lie in the same places."""
        bound_loops, key = binding.placement.bound_loops, (loop, binding.sizes.of_samples(loop.touched))
        found = bound_loops.pop(key, None)
        if found is None or not found.fits(binding):
            found = BoundLoop(binding, loop)
        else:
            found.take_over(binding)
        _keep(bound_loops, key, found, KEPT)
        return found

    def room(self, slot: int) -> Room:
        """The memory of a sparse input, for data of all sizes."""
        return self._rooms.setdefault(slot, Room(self.program.backend))

    def row_sparse(self, slot: int, shape: Shape, dtype: DType) -> RowSparse:
        """A row-sparse gradient, which holds that of the latest minibatch, of whatever size."""
        return self._row_sparse.setdefault((slot, shape), RowSparse(shape, dtype))

    def _reserve(self, stage: int, nbytes: int) -> Any:
        """An arena of at least *nbytes*; bindings to a smaller one are forgotten."""
        if nbytes > self._arenas[stage].nbytes:
            self._forget(stage)
            self._arenas[stage] = self.program.backend.allocate(0)  # the old one goes before the new one comes
            self._arenas[stage] = self.program.backend.allocate(nbytes)
        return self._arenas[stage]

    def release(self) -> None:
        """Give all memory back; what comes is bound anew."""
        self._forget(0)
        self._version, self._threads = first_calls.version, max_threads()
        self.pool.clear()
        self._rooms.clear()
        self._row_sparse.clear()
        self._arenas = [self.program.backend.allocate(0) for _ in self._arenas]

    def _forget(self, stage: int) -> None:
        """Forget the bindings of a stage and of those after it, whose arrays nobody holds then."""
        for bindings, placements in zip(self._bindings[stage:], self._placements[stage:], strict=True):
            for binding in bindings.values():
                binding.release()
            bindings.clear()
            placements.clear()

    def _hint_of_batch(self, feeds: Sequence[Feed]) -> str:
        """Advice where an input of several axes was fed as one sample, beside others of many."""
        for variable, fed in zip(self.program.arguments, feeds, strict=True):
            if fed.layout is not None and fed.layout.samples == 1 and len(variable.spec.dims) > 1 and len(variable.spec.axes or ()) == 1:
                return f"; {variable!r} was given one sample of shape {variable.spec.dims}: the batch axis is not part of an input's shape"
        return ""

    def _check(self, feeds: Sequence[Feed]) -> None:
        """Refuse minibatches of different sizes on the same dynamic axes; others are refused where they meet."""
        first: dict[Axes | None, Layout] = {}
        for variable, fed in zip(self.program.arguments, feeds, strict=True):
            if fed.layout is not None and first.setdefault(variable.spec.axes, fed.layout).samples != fed.layout.samples:
                given = [f"{v!r}: {f.layout.samples}" for v, f in zip(self.program.arguments, feeds, strict=True) if f.layout]
                raise ValueError(
                    f"the inputs' minibatches have different numbers of samples: {', '.join(given)}{self._hint_of_batch(feeds)}"
                )


def _with_room(placements: dict[Any, Placement], nbytes: tuple[int, ...], lives: Lives) -> Placement | None:
    """The placement used last among those with room for arrays of so many bytes."""
    found = (placement for placement in reversed(placements.values()) if placement.lives == lives and placement.has_room(nbytes))
    return next(found, None)


def _latest_room(placements: dict[Any, Placement], lives: Lives) -> tuple[int, ...] | None:
    """The room of each array in the placement used last among those of arrays that are needed when these are."""
    return next((placement.nbytes for placement in reversed(placements.values()) if placement.lives == lives), None)


def _have_sequences(feeds: Sequence[Feed]) -> bool:
    return any(fed.layout is not None and fed.layout.is_sequence for fed in feeds)


def _keep(items: dict[Any, Any], key: Any, item: Any, most: int) -> None:
    """Put an item last; that used longest ago goes if there are too many."""
    items[key] = item
    if len(items) > most:
        items.pop(next(iter(items)))


def start(program: Program, feeds: Iterable[Feed]) -> Run:
    """Take a workspace of a program and load data into it, one feed for each argument; the caller closes the run to give it back.

    Raises:
        ValueError: the inputs' minibatches are incompatible.
    """
    program.refresh()
    try:
        workspace = program.idle.pop()
        if workspace.is_outdated:
            workspace.release()
    except IndexError:
        workspace = Workspace(program)
    try:
        return Run(program, workspace, workspace.load(feeds))
    except BaseException:
        program.idle.append(workspace)
        raise


class Run:
    """One call of a program: data is loaded, passes are made, values are read, and the workspace goes back.

    Attributes:
        seed: what the gradient of each root begins with, where it is not said of each.
    """

    __slots__ = ("binding", "program", "seed", "workspace")

    def __init__(self, program: Program, workspace: Workspace, binding: Binding) -> None:
        self.program, self.workspace, self.binding = program, workspace, binding
        self.seed = 1.0

    def guard(self) -> Any:
        """Context in which to make the passes: the backend's floating-point warnings are silent."""
        return self.binding.backend.guard()

    def forward(self) -> None:
        """Compute the roots."""
        self.binding.run(self.binding.forward_steps)
        while not self.binding.is_last:
            self.binding = self.workspace.advance(self.binding)
            self.binding.run(self.binding.forward_steps)
        for variable in self.program.written:
            variable.version += 1

    def backward(self, seeds: dict[Variable, Any] | None = None, on_final: Mapping[Variable, Callable[[Any], None]] | None = None) -> None:
        """Compute the gradients.

        Args:
            seeds: gradients of the roots, zero for those not named; None starts each root from :attr:`seed`.
            on_final: called with the gradient of each variable, which it may overwrite, as soon as it is final.
        """
        binding, slot_of = self.binding, self.program.seed_slots
        if binding.seeding is not None:
            binding.seeding.number = None if seeds is not None or on_final else self.seed
        if binding.seeding is None or binding.seeding.number is None:
            for slot in slot_of.values():
                binding.arrays[slot].fill(self.seed if seeds is None else 0)
        if seeds:
            for root, seed in seeds.items():
                if root in slot_of:
                    binding.backend.load(binding.arrays[slot_of[root]], seed)
        if not on_final:
            binding.run(binding.whole_backward, profiling.BACKWARD)
            return
        start = 0
        for stop, variables in binding.final_gradients():
            binding.run(binding.backward_steps[start:stop], profiling.BACKWARD)
            for variable in variables:
                if variable in on_final:
                    on_final[variable](self.gradient(variable))
            start = stop

    def finish(self) -> None:
        """Run whatever is deferred to the end of the pass: assignments."""
        if self.binding.finish_steps:
            self.binding.run(self.binding.finish_steps)
            for variable in self.program.written:
                variable.version += 1

    def value(self, root: Variable) -> Any:
        """Array of a root, in the workspace's memory."""
        return self.binding.arrays[self.program.root_slots[root]]

    def gradient(self, variable: Variable) -> Any:
        """Gradient of a variable, in the workspace's memory: an array or a RowSparse."""
        return self.binding.arrays[self.program.gradient_slots[variable]]

    def layout(self, variable: Variable) -> Layout | None:
        """Layout of a root, or of a variable whose gradient is computed; None without dynamic axes."""
        slot = self.program.root_slots.get(variable)
        return self.binding.layouts[self.program.gradient_slots[variable] if slot is None else slot]

    def count(self, root: Variable) -> int:
        """Samples, or steps of sequences, that a root has values for; without dynamic axes the most that an input has."""
        layout = self.layout(root)
        if layout is not None:
            return layout.rows
        return max((known.rows for known in self.binding.layouts if known is not None), default=1)

    def close(self) -> None:
        """Give the workspace back; arrays read from it are invalid from now on."""
        self.program.idle.append(self.workspace)
