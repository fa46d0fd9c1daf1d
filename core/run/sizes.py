"""Sizes: types, layouts and array shapes of a program's values for one minibatch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from ..common.shape import Shape
from ..graph.inference import Assuming, assume, explained
from ..operators.sequence_op import SequenceOp
from ..types.axis import Axes, format_axes
from ..types.layout import Layout
from ..types.spec import Spec
from ..values.feed import Feed

if TYPE_CHECKING:
    from ..program.program import Program
    from ..program.slots import Instruction


class Sizes:
    """Sizes of a program's values for a minibatch, determined stage by stage.

    Attributes:
        specs, layouts, shapes: type, layout and full array shape of each slot; of later stages not known yet.
    """

    def __init__(self, program: Program, feeds: Sequence[Feed]) -> None:
        self.program = program
        self.specs = [slot.spec for slot in program.slots]
        self.layouts: list[Layout | None] = [None] * len(program.slots)
        self._of_axes: dict[Axes, Layout] = {}
        self._first_on: dict[Axes, int] = {}
        for index, fed in zip(program.inputs, feeds, strict=True):
            self.specs[index] = self.specs[index].but(shape=fed.shape, sparse=self.specs[index].sparse)
            self._lay(index, fed.layout)
            self._check_lengths(index, fed.layout)
            if fed.continues is not None:
                self._note_continued(index, fed.continues)
        self._complete(0, {})

    def after(self, stage: int, decided: dict[Instruction, Layout]) -> Sizes:
        """The sizes known in a later stage, given the layouts that operators decided at its beginning."""
        made = object.__new__(Sizes)
        made.program, made.specs, made.layouts = self.program, list(self.specs), list(self.layouts)
        made._of_axes, made._first_on = dict(self._of_axes), dict(self._first_on)
        made._complete(stage, decided)
        return made

    def of_samples(self, slots: Iterable[int]) -> tuple[Shape, ...]:
        """Shapes of the samples of some values; whole shapes of those that have no rows."""
        return tuple([self.shapes[index][self.layouts[index] is not None :] for index in slots])

    def are_those_of(self, feeds: Sequence[Feed]) -> bool:
        """Whether they are the sizes for other data of the same shapes, too: its sequences are as long, and none continues another."""
        for index, fed in zip(self.program.inputs, feeds, strict=True):
            layout = self.layouts[index]
            if fed.continues is not None or layout != fed.layout or (layout is not None and layout.continues is not None):
                return False
        return True

    def layouts_of(self, indices: Sequence[int]) -> list[Layout | None]:
        """Layouts of slots; of one that a later recurrence computes, that of the axes it is on."""
        return [self.layouts[i] or self._of_axes.get(self.specs[i].axes or ()) for i in indices]

    def shapes_of(self, indices: Sequence[int]) -> list[Shape]:
        """Array shapes of slots, rows included."""
        return [_with_rows(self.specs[i], layout) for i, layout in zip(indices, self.layouts_of(indices), strict=True)]

    # ---- computing them ----

    def _complete(self, stage: int, decided: dict[Instruction, Layout]) -> None:
        program = self.program
        here = [instruction for instruction in program.instructions if instruction.stage == stage]
        for loop, body in groupby(here, key=lambda instruction: instruction.loop):
            if loop is not None and not program.sized_by_data.isdisjoint(loop.body):
                self._settle(loop.body)
            for instruction in body:
                self._size(instruction, decided.get(instruction))
        if stage == program.stages - 1:
            for index, slot in enumerate(program.slots):
                if slot.like is not None:
                    self.specs[index], self.layouts[index] = self.specs[slot.like], self.layouts[slot.like]
        self.shapes = [_with_rows(spec, layout) for spec, layout in zip(self.specs, self.layouts, strict=True)]

    def _settle(self, body: Sequence[Instruction]) -> None:
        """Find the shapes in a recurrence that data decide, whose operands depend on its results, from what the operands outside tell."""
        results = {index for instruction in body for index in instruction.outputs}
        wanted = {index for index in results if not self.program.slots[index].spec.is_concrete}
        telling = [instruction for instruction in body if not wanted.isdisjoint(instruction.outputs)]
        for index in wanted:
            self.specs[index] = self.specs[index].but(shape=None)
        rounds = [Assuming.KNOWN_OPERANDS] * (len(body) + 2) + [Assuming.INITIAL_STATES] * (len(body) + 2)
        for assuming in rounds:
            before = {index: self.specs[index] for index in wanted}
            for instruction in telling:
                fixed = [i not in wanted for i in instruction.inputs]
                made = assume(instruction.op, [self.specs[i] for i in instruction.inputs], fixed, assuming)
                for index, spec in zip(instruction.outputs, made, strict=True):
                    if index in wanted:
                        self.specs[index] = spec
            after = {index: self.specs[index] for index in wanted}
            if before == after and all(spec.shape is not None for spec in after.values()):
                return

    def _size(self, instruction: Instruction, decided: Layout | None) -> None:
        if instruction in self.program.sized_by_data:
            for index, spec in zip(instruction.outputs, self._infer(instruction), strict=True):
                self.specs[index] = spec
        if decided is not None and decided.shapes is not None:
            for index, shape in zip(instruction.outputs, decided.shapes, strict=True):
                self.specs[index] = self.specs[index].but(shape=shape)
        layout = decided or self._layout_after(instruction)
        for index in instruction.outputs:
            self._lay(index, layout if self.specs[index].axes else None)

    def _lay(self, index: int, layout: Layout | None) -> None:
        """Note the layout of a slot, which is that of its axes for values whose own comes later."""
        self.layouts[index] = layout
        if layout is not None:
            axes = self.specs[index].axes or ()
            layout.continues = self._of_axes.setdefault(axes, layout).continues
            self._first_on.setdefault(axes, index)

    def _note_continued(self, index: int, continues: Sequence[int]) -> None:
        """Note which sequences are new and which continue those of the previous minibatch, for all values on their axis."""
        layout, found = self._of_axes[self.specs[index].axes or ()], np.asarray(continues)
        if layout.continues is not None and layout.continues.tolist() != found.tolist():
            raise ValueError(
                f"{self.program.slots[index].variable!r} was given flags {(found < 0).tolist()} of new sequences, but another input on its "
                f"dynamic axes was given {(layout.continues < 0).tolist()}, or continues others; give them once, or give equal flags"
            )
        layout.continues = found

    def _check_lengths(self, index: int, layout: Layout | None) -> None:
        """Check that inputs on one sequence axis have sequences of the same lengths."""
        axes = self.specs[index].axes or ()
        if layout is None or not layout.is_sequence or self._of_axes[axes] == layout:
            return
        one, other = self.program.slots[self._first_on[axes]].variable, self.program.slots[index].variable
        raise ValueError(
            f"{one!r} has {self._of_axes[axes]} and {other!r} has {layout}, though both are on the dynamic axes {format_axes(axes)}; "
            "values of other lengths need a sequence axis of their own: sequence.input_variable(..., sequence_axis=C.Axis('name')) "
            f"[made at {one.line}; {other.line}]"
        )

    def _infer(self, instruction: Instruction) -> tuple[Spec, ...]:
        op = instruction.op
        try:
            made = op.infer(*(self.specs[i] for i in instruction.inputs))
            made = made if isinstance(made, tuple) else (made,)
            shapes = None
            if isinstance(op, SequenceOp):
                shapes = op.array_shape(self.layouts_of(instruction.inputs), self.shapes_of(instruction.inputs))
            if shapes is not None:
                made = tuple(spec.but(shape=shape) for spec, shape in zip(made, (shapes,) if op.outputs == 1 else shapes, strict=True))
        except (ValueError, TypeError, RuntimeError) as error:
            raise explained(error, instruction.node) from None
        return made

    def _layout_after(self, instruction: Instruction) -> Layout | None:
        """How the rows of an instruction's result lie: as its operands' rows, or as the operator says."""
        op, axes = instruction.op, self.specs[instruction.outputs[0]].axes
        layouts = self.layouts_of(instruction.inputs)
        if isinstance(op, SequenceOp):
            try:
                made = op.make_layout(layouts, self.shapes_of(instruction.inputs))
            except (ValueError, RuntimeError) as error:
                raise explained(error, instruction.node) from None
            if made is not None:
                return made
        if not axes:
            return None
        known = zip(instruction.inputs, layouts, strict=True)
        alike = [layout for i, layout in known if layout is not None and self.specs[i].axes == axes]
        found = alike[0] if alike else self._of_axes.get(axes)
        if found is None or (not alike and len(axes) == 1 and any(one is not None and one.samples != found.samples for one in layouts)):
            found = self._batch_of(layouts, instruction)  # to_batch has made a batch that is not that of the inputs
        for like in alike:
            if like is not found and like != found:
                why = f"operands on the same dynamic axes have different samples or sequence lengths: {found} and {like}"
                raise explained(ValueError(why + self._single_sequences()), instruction.node)
        for other in layouts:
            if other is not None and other.samples != found.samples:
                why = f"operands have different numbers of samples: {found.samples} and {other.samples}"
                raise explained(ValueError(why + self._single_sequences()), instruction.node)
        return found

    def _single_sequences(self) -> str:
        """A hint about inputs whose data is a single sequence, as of an array without batch axis."""
        fed = zip(self.program.arguments, self.layouts_of(self.program.inputs), strict=True)
        alone = [(variable, layout.rows) for variable, layout in fed if layout and layout.is_sequence and layout.samples == 1 < layout.rows]
        single = [f"{variable!r} was given one sequence of {steps} steps" for variable, steps in alone]
        if not single:
            return ""
        return f"; {', '.join(single)}: an array without a batch axis is one sequence, several are a list or an array (batch, steps, ...)"

    def _batch_of(self, layouts: Sequence[Layout | None], instruction: Instruction) -> Layout:
        """The batch that sequences come from."""
        spec = self.specs[instruction.outputs[0]]
        found = next((layout.batch for layout in layouts if layout is not None), None)
        if found is None or len(spec.axes or ()) > 1:
            why = f"nothing tells the lengths of sequences on the dynamic axes {format_axes(spec.axes)}; an input on them must be involved"
            raise explained(ValueError(why), instruction.node)
        return found


def _with_rows(spec: Spec, layout: Layout | None) -> Shape:
    return spec.dims if layout is None else (layout.rows, *spec.dims)
