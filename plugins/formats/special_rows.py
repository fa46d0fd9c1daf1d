"""Operators whose attributes in a file differ from ours, or depend on one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.graph.nodes import Primitive
from ...core.graph.variable import Constant, Variable
from ...core.operators.op import Op
from ...core.types.axis import Axis
from ..ops import convolution, cropping, sequence_gathering, sequence_making, sequence_product, sequence_unpacking, shaping
from .attributes import (
    ANY_AXES,
    ANY_AXIS,
    AXIS,
    BEHIND_ALL,
    BOOL,
    DOUBLE,
    DTYPE,
    FLAGS,
    FLOAT,
    INT,
    SEED,
    SHAPE,
    SIZE,
    TEXT,
    Kind,
    file_axes,
    list_of,
    operand_of,
    python_axes,
    static,
    static_axis,
)
from .row import Given, Row, go_on, progress_of
from .wire import FileAxis


class ReductionRow(Row):
    """ReduceElements: one number for all reductions; 'axis' for one axis, 'axisVec' for several.

    CNTK computes with static axes that are kept, or with others; both together, or dropping axes, takes several operators.
    """

    def handles(self, node: Primitive) -> bool:
        op: Any = node.op
        if type(op) is not self.cls:
            return False
        static_ones = [axis for axis in op.axis_vec if axis.is_static_axis]
        kept = op.reduction_keep_dimensions and len(static_ones) == len(op.axis_vec)
        return not static_ones or kept or operand_of(node).shape is None

    def write(self, node: Primitive) -> dict[str, Any]:
        axes = ANY_AXES.write(node.op.axis_vec, operand_of(node))
        over_all = node.op.axis_vec in ((Axis.all_static_axes(),), (Axis.all_axes(),))
        alone = len(axes) == 1 and (node.op.axis_vec[0].is_static_axis or node.op.axis_vec[0] == Axis.all_static_axes())
        where = {"axis": axes[0]} if alone else {"axisVec": axes}
        keep = node.op.reduction_keep_dimensions and not over_all
        return {**where, "reductionOpName": self.cls.reduction_op_name, "reductionKeepDimensions": bool(keep)}  # type: ignore[attr-defined]

    def reads(self, given: Given, inputs: Sequence[Variable]) -> bool:
        return given.read("reductionOpName", TEXT) == self.cls.reduction_op_name  # type: ignore[attr-defined]

    def make(self, given: Given, inputs: Sequence[Variable]) -> Op:
        axes = (given.read("axis", ANY_AXIS),) if "axis" in given else given.read("axisVec", ANY_AXES)
        over_all = axes in ((Axis.all_static_axes(),), (Axis.all_axes(),))
        keep = over_all or given.read("reductionKeepDimensions", BOOL, True)
        return self.cls(axis_vec=axes, reduction_keep_dimensions=keep)


class SliceRow(Row):
    """Slice: one range, or lists of axes and ranges."""

    def write(self, node: Primitive) -> dict[str, Any]:
        cuts = node.op.cuts
        ranges = [list(map(np.int32, numbers)) for numbers in zip(*(cut[1:] for cut in cuts), strict=True)]
        axes = [AXIS.write(cut[0], operand_of(node)) for cut in cuts]
        if len(cuts) == 1:
            return dict(zip(_CUT, (axes[0], *(numbers[0] for numbers in ranges)), strict=True))
        return dict(zip(_CUTS, (axes, *ranges), strict=True))

    def make(self, given: Given, inputs: Sequence[Variable]) -> Op:
        if "axis" in given:
            numbers = [given.read(name, INT) for name in _CUT[1:3]]
            return self.cls(
                axis=given.read("axis", AXIS), begin_index=numbers[0], end_index=numbers[1], slice_strides=given.read(_CUT[3], INT, 1)
            )
        axes, begins, ends = (given.read(name, kind) for name, kind in zip(_CUTS[:3], (list_of(AXIS), _INTS, _INTS), strict=True))
        strides = given.read(_CUTS[3], _INTS, (1,) * len(axes))
        if not len(axes) == len(begins) == len(ends) == len(strides):
            raise ValueError(f"expected as many ranges as axes, found {len(axes)} axes, {len(begins)} begins, {len(ends)} ends")
        return self.cls(axis_vec=axes, begin_index_vec=begins, end_index_vec=ends, slice_strides_vec=strides)


_INTS = list_of(INT)
_CUT = ("axis", "beginIndex", "endIndex", "sliceStrides")
_CUTS = ("axisVec", "beginIndexVec", "endIndexVec", "sliceStridesVec")


class ReshapeRow(Row):
    """Reshape: a range of axes, from its end to its begin."""

    def write(self, node: Primitive) -> dict[str, Any]:
        x = operand_of(node)
        begin, end = (_place(axis, None if x.shape is None else x.rank) for axis in (node.op.begin_axis, node.op.end_axis))
        return {"newShape": SHAPE.write(node.op.new_shape, x), "beginAxis": end, "endAxis": begin}

    def make(self, given: Given, inputs: Sequence[Variable]) -> Op:
        new_shape = given.read("newShape", SHAPE)
        end = _from_place(given.get("beginAxis", static(0)))
        begin = _from_place(given.get("endAxis", static(BEHIND_ALL)))
        return self.cls(new_shape=new_shape, begin_axis=begin, end_axis=end)


def _place(axis: Any, rank: int | None) -> FileAxis:
    """A place between axes, counted from the end."""
    if axis == Axis.new_leading_axis():
        return static(0)
    index = shaping.index_of(axis)
    if rank is None:
        return static(-index if index else BEHIND_ALL)
    return static(rank - (index if index >= 0 else index + rank))


def _from_place(axis: Any) -> Any:
    if not isinstance(axis, FileAxis):
        raise ValueError(f"expected an axis, found {axis!r}")
    if axis.number == BEHIND_ALL:
        return 0
    return -axis.number if axis.number else Axis.new_leading_axis()


class FilterRow(Row):
    """Convolution and its transpose, which shares the number; filters and operand have an axis of channels in the file."""

    def handles(self, node: Primitive) -> bool:
        return type(node.op) is self.cls and bool(node.op.reduction_rank)

    def write(self, node: Primitive) -> dict[str, Any]:
        x = operand_of(node)
        shown = node.op.attributes
        kinds = {**dict.fromkeys(_FILTER_SHAPES, SHAPE), "sharing": FLAGS, "autoPadding": FLAGS, "transpose": BOOL, "sequential": BOOL}
        kinds |= {"maxTempMemSizeInSamples": SIZE, "groups": SIZE}
        return {name: kind.write(shown[name], x) for name, kind in kinds.items()}

    def reads(self, given: Given, inputs: Sequence[Variable]) -> bool:
        return bool(given.read("transpose", BOOL)) == (self.cls is convolution.ConvolutionTranspose)

    def make(self, given: Given, inputs: Sequence[Variable]) -> Op:
        if any(given.read("lowerPad", SHAPE, ())) or any(given.read("upperPad", SHAPE, ())):
            raise ValueError("a convolution with padding of a given width cannot be loaded; use pad in front of it")
        return self.cls(
            strides=given.read("strides", SHAPE),
            sharing=given.read("sharing", FLAGS),
            auto_padding=given.read("autoPadding", FLAGS),
            dilation=given.read("dilation", SHAPE, (1,)),
            groups=given.read("groups", SIZE, 1),
            output_shape=given.read("outputShape", SHAPE, (0,)),
            transpose=given.read("transpose", BOOL),
            sequential=False,
            max_temp_mem_size_in_samples=given.read("maxTempMemSizeInSamples", SIZE),
            reduction_rank=1,
        )


_FILTER_SHAPES = ("strides", "dilation", "outputShape", "kernelShape", "lowerPad", "upperPad")


class PoolingRow(Row):
    """Pooling and unpooling, with the widths of padding, which are not used."""

    def write(self, node: Primitive) -> dict[str, Any]:
        none = SHAPE.write((0,), operand_of(node))
        return {**super().write(node), "lowerPad": none, "upperPad": none}

    def make(self, given: Given, inputs: Sequence[Variable]) -> Op:
        if any(given.read("lowerPad", SHAPE, ())) or any(given.read("upperPad", SHAPE, ())):
            raise ValueError("pooling with padding of a given width cannot be loaded; use pad in front of it")
        return super().make(given, inputs)


class RandomRow(Row):
    """RandomDistribution: one number for all of them."""

    def write(self, node: Primitive) -> dict[str, Any]:
        op, x = node.op, operand_of(node)
        own = {} if op.new_shape is None else {"newShape": SHAPE.write(op.new_shape, x), "newDataType": DTYPE.write(op.new_data_type, x)}
        common = {"randomDistributionType": op.kind, "randomDistributionArgs": list(map(float, op.arguments))}
        return {**common, "rngSeed": SEED.write(op.rng_seed, x), **progress_of(op), **own}

    def reads(self, given: Given, inputs: Sequence[Variable]) -> bool:
        return given.read("randomDistributionType", TEXT) == self.cls.kind  # type: ignore[attr-defined]

    def make(self, given: Given, inputs: Sequence[Variable]) -> Op:
        arguments = given.read("randomDistributionArgs", list_of(DOUBLE))
        shape, dtype = given.read("newShape", SHAPE, None), given.read("newDataType", DTYPE, None)
        if (shape is None) == (not inputs):
            raise ValueError("expected either an operand or a shape")
        return go_on(self.cls(arguments, given.read("rngSeed", SEED), shape, dtype), given)  # type: ignore[call-arg]


class SequenceMakingRow(Row):
    """ToSequenceOp, with one or two operands."""

    def write(self, node: Primitive) -> dict[str, Any]:
        return {"sequenceAxis": node.op._prefix, "newDynamicAxes": file_axes(node.outputs[0].spec.axes)}

    def reads(self, given: Given, inputs: Sequence[Variable]) -> bool:
        return (len(inputs) == 1) == (self.cls is sequence_making.ToSequence)

    def make(self, given: Given, inputs: Sequence[Variable]) -> Op:
        return on_axis(self.cls(given.read("sequenceAxis", TEXT)), given)  # type: ignore[call-arg]


class WhereRow(Row):
    """Where, whose result is on an axis that the file names."""

    def write(self, node: Primitive) -> dict[str, Any]:
        axes = node.outputs[0].spec.axes
        found: dict[str, Any] = {} if axes is None else {"newDynamicAxes": file_axes(axes)}
        if node.op._typeinfo is not None:
            factor, addend = node.op._typeinfo
            found |= {_FACTOR: np.uint64(factor), _ADDEND: np.int32(addend)}
        return found

    def make(self, given: Given, inputs: Sequence[Variable]) -> Op:
        typeinfo = (given.read(_FACTOR, SIZE), given.read(_ADDEND, INT)) if _FACTOR in given else None
        if typeinfo is None and len(python_axes(given.get("newDynamicAxes", [])) or ()) == 1:
            typeinfo = (0, 1)
        return on_axis(sequence_gathering.Where("where", typeinfo), given)


_FACTOR, _ADDEND = "newSequenceAxisLengthScalingFactor", "newSequenceAxisLengthAdditiveFactor"


def on_axis(op: Any, given: Given) -> Op:
    """Let an operator that makes a sequence axis make the one that the file names."""
    axes = python_axes(given.get("newDynamicAxes", []))
    if axes and len(axes) == 2:
        op._axis = axes[1]
    return op


class UnpackRow(Row):
    """UnpackSequenceOp, with or without a mask."""

    def write(self, node: Primitive) -> dict[str, Any]:
        return {**super().write(node), _NO_MASK: self.cls is sequence_unpacking.UnpackSequence}

    def reads(self, given: Given, inputs: Sequence[Variable]) -> bool:
        return bool(given.read(_NO_MASK, BOOL)) == (self.cls is sequence_unpacking.UnpackSequence)


_NO_MASK = "sequenceUnpackSuppressMaskOutput"


class TimesRow(Row):
    """Times, and the kind of it that sums over the steps."""

    def reads(self, given: Given, inputs: Sequence[Variable]) -> bool:
        over_steps = given.read("inferInputRankToMap", INT, -1) == sequence_product.REDUCE_SEQUENCE_AXIS
        return over_steps == (self.cls is sequence_product.TimesOverSteps)


class TransposeRow(Row):
    """TransposeAxes: a permutation, or two axes."""

    def write(self, node: Primitive) -> dict[str, Any]:
        if self.cls is shaping.SwapAxes:
            return super().write(node)
        return {"axisVec": list_of(AXIS, backwards=True).write(node.op.axis_vec, operand_of(node))}

    def reads(self, given: Given, inputs: Sequence[Variable]) -> bool:
        return ("axis1" in given) == (self.cls is shaping.SwapAxes)


class SqueezeRow(Row):
    """Squeeze, of all axes or some."""

    def write(self, node: Primitive) -> dict[str, Any]:
        return {} if node.op.axis_vec is None else super().write(node)

    def make(self, given: Given, inputs: Sequence[Variable]) -> Op:
        return super().make(given, inputs) if "axisVec" in given else self.cls()


class OperandRow(Row):
    """An operator with attributes that are operands in the file: numbers behind the others."""

    def write(self, node: Primitive) -> dict[str, Any]:
        return {}

    def operands(self, node: Primitive) -> list[Any]:
        return [*node.inputs, *(getattr(node.op, name) for name in self.kinds)]

    def inputs(self, given: Given, operands: list[Variable]) -> list[Variable]:
        return operands[: len(operands) - len(self.kinds)]

    def reads(self, given: Given, inputs: Sequence[Variable]) -> bool:
        return len(inputs) > len(self.kinds)

    def make(self, given: Given, inputs: Sequence[Variable]) -> Op:
        values = dict(zip(self.kinds, inputs[len(inputs) - len(self.kinds) :], strict=True))
        for name, variable in values.items():
            if not isinstance(variable, Constant) or variable.spec.shape != () or not float(variable.value).is_integer():
                raise ValueError(f"expected a whole constant number as {name}, found {variable!r}")
        numbers = {name: int(variable.value) for name, variable in values.items() if isinstance(variable, Constant)}
        return self.cls(**numbers)


class SpliceRow(Row):
    """Splice, whose axis is one of the operand with most axes."""

    def write(self, node: Primitive) -> dict[str, Any]:
        ranks = [v.spec.rank for v in node.inputs if v.spec.shape is not None]
        return {"axis": static_axis(node.op.axis, max(ranks) if len(ranks) == len(node.inputs) else None)}


class NormalizationRow(Row):
    """BatchNormalization; older files have no count of samples."""

    def inputs(self, given: Given, operands: list[Variable]) -> list[Variable]:
        return [*operands, Constant(0.0)] if len(operands) == 5 else operands


class EditDistanceRow(Row):
    """EditDistanceError, whose attributes have CNTK's older style of names."""

    def write(self, node: Primitive) -> dict[str, Any]:
        shown, x = node.op.attributes, operand_of(node)
        return {name: kind.write(shown[name], x) for name, kind in _EDITS.items()}

    def make(self, given: Given, inputs: Sequence[Variable]) -> Op:
        return self.cls(*(given.read(name, kind) for name, kind in _EDITS.items()))


_EDITS: dict[str, Kind] = {
    "SubstitutionPenalty": FLOAT,
    "DeletionPenalty": FLOAT,
    "InsertionPenalty": FLOAT,
    "SquashInputs": BOOL,
    "TokensToIgnore": list_of(SIZE),
}


class CropRow(Row):
    """Crop; without an offset it is found in the graph."""

    def make(self, given: Given, inputs: Sequence[Variable]) -> Any:
        if "offset" in given:
            return super().make(given, inputs)
        find: Any = cropping.crop_automatic if len(inputs) == 2 else cropping.crop_automatic_with_ancestors
        return find(*inputs).root_function.op

    def inputs(self, given: Given, operands: list[Variable]) -> list[Variable]:
        return operands[:2]


class UnitRow(Row):
    """An operator with a parameter that the file has for 1 only."""

    def handles(self, node: Primitive) -> bool:
        return type(node.op) is self.cls and getattr(node.op, self._field) == 1

    def write(self, node: Primitive) -> dict[str, Any]:
        return {}

    def make(self, given: Given, inputs: Sequence[Variable]) -> Op:
        return self.cls(**{self._field: 1.0})

    @property
    def _field(self) -> str:
        return next(iter(self.kinds))


class NoAxisRow(Row):
    """An operator that the file has for the default axis only."""

    def handles(self, node: Primitive) -> bool:
        return type(node.op) is self.cls and getattr(node.op, "axis", None) in (None, self.defaults.get("axis"))


class LastAxisRow(Row):
    """An operator that the file has along the last axis only."""

    def handles(self, node: Primitive) -> bool:
        return type(node.op) is self.cls and AXIS.write(node.op.axis, operand_of(node)).number == 0
