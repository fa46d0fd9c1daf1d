"""Which of our operators CNTK's file format knows by which number, and under which names it keeps their attributes.

A row of :data:`ROWS` is an operator that the file has as well.  Operators that CNTK makes of others are in ``expansions``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.axis import Axis
from ...core.function import Primitive
from ...core.op import Op
from ...core.variable import Constant, Variable
from ..ops import (
    activation,
    arithmetic,
    batch,
    batch_normalization,
    comparison,
    convolution,
    cosine,
    cropping,
    ctc,
    custom_proxy,
    delay,
    dropout,
    edit_distance,
    elementary,
    extremum,
    eye,
    identity,
    logistic,
    maximum,
    metric,
    pooling,
    product,
    random_distribution,
    random_sampling,
    ranking,
    reduction,
    rnnstack,
    roipooling,
    sequence_broadcast,
    sequence_gathering,
    sequence_making,
    sequence_product,
    sequence_unpacking,
    shaping,
    slicing,
    softmax,
    sorting,
    spatial,
    trigonometry,
)
from .attributes import (
    ANY_AXES,
    ANY_AXIS,
    AXIS,
    BOOL,
    DOUBLE,
    DTYPE,
    FLAGS,
    FLOAT,
    INT,
    NEW_AXIS,
    SEED,
    SHAPE,
    SIZE,
    SIZES,
    STREAM,
    TEXT,
    WORDS,
    Kind,
    file_axes,
    list_of,
    operand_of,
    python_axes,
    static,
    static_axis,
)
from .wire import FileAxis

COMBINE, BLOCK, PACKED_INDEX, GATHER_PACKED, SCATTER_PACKED, WHERE = 44, 57, 28, 29, 30, 13
TRANSPOSE, FILTER, STOP_GRADIENT, TO_SEQUENCE, TO_SEQUENCE_LIKE, UNPACK, SEQUENCE_SHAPE = 12, 33, 64, 70, 71, 72, 97


class Given(dict[str, Any]):
    """Attributes from a file, read by kind."""

    def read(self, name: str, kind: Kind, *default: Any) -> Any:
        """The value of an attribute.

        Raises:
            ValueError: it is missing, or of another kind.
        """
        if name not in self:
            if default:
                return default[0]
            raise ValueError(f"expected the attribute '{name}', found {sorted(self)}")
        try:
            return kind.read(self[name])
        except ValueError as error:
            raise ValueError(f"attribute '{name}': {error}") from None


@dataclass
class Row:
    """One operator of the file format.

    Attributes:
        number: CNTK's number of the operator.
        cls: our operator.
        kinds: kinds of its attributes by the names of our fields; the file's names are these in camel case.
        defaults: values of attributes that older files leave out, by our names.
        names: the file's names where they are others.
        backwards: whether files list the operands last first.
    """

    number: int
    cls: type[Op]
    kinds: dict[str, Kind] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    backwards: bool = False

    def handles(self, node: Primitive) -> bool:
        """Whether *node* is written by this row."""
        return type(node.op) is self.cls

    def write(self, node: Primitive) -> dict[str, Any]:
        """Attributes in the file."""
        found = {self.file_name(name): kind.write(getattr(node.op, name), operand_of(node)) for name, kind in self.kinds.items()}
        return {**found, **progress_of(node.op)}

    def reads(self, given: Given, inputs: Sequence[Variable]) -> bool:
        """Whether what a file has under this number is this operator."""
        return True

    def make(self, given: Given, inputs: Sequence[Variable]) -> Op:
        """The operator of a node in a file."""
        read = {
            name: given.read(self.file_name(name), kind, *([self.defaults[name]] if name in self.defaults else []))
            for name, kind in self.kinds.items()
        }
        return go_on(self.cls(**read), given)

    def file_name(self, name: str) -> str:
        """Name of a field of ours in the file."""
        head, *rest = name.split("_")
        return self.names.get(name) or head + "".join(word.capitalize() for word in rest)

    def operands(self, node: Primitive) -> list[Any]:
        """Operands in the file: variables, and numbers for those that are attributes here."""
        return list(reversed(node.inputs)) if self.backwards else list(node.inputs)

    def inputs(self, given: Given, operands: list[Variable]) -> list[Variable]:
        """Our operands of those in a file."""
        return operands[::-1] if self.backwards else operands


def progress_of(op: Op) -> dict[str, Any]:
    """Where a random operator stands: the numbers it has drawn and, for a sequential generator, the words that it made them of."""
    stream = getattr(op, "_stream", None)
    if stream is None:
        return {}
    words = {WORDS: np.uint64(stream.words)} if hasattr(stream, "words") else {}
    return {STREAM: np.uint64(stream.draws), **words}


def go_on(op: Op, given: Given) -> Op:
    """Bring a random operator to where it stood; files of CNTK take it that a number is made of one word."""
    stream = getattr(op, "_stream", None)
    if stream is not None:
        stream.draws = given.read(STREAM, SEED, 0)
        if hasattr(stream, "words"):
            stream.skip(given.read(WORDS, SEED, stream.draws))
    return op


# ---- rows of their own kind ----------------------------------------------------------------------


class ReductionRow(Row):
    """ReduceElements: one number for all reductions; 'axis' for one axis, 'axisVec' for several.

    CNTK computes with static axes that are kept, or with others; what is both, or takes axes away, is made of several.
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
        where = {"axis": axes[0]} if len(axes) == 1 and node.op.axis_vec[0] in _SINGLE else {"axisVec": axes}
        if len(axes) == 1 and node.op.axis_vec[0].is_static_axis:
            where = {"axis": axes[0]}
        keep = node.op.reduction_keep_dimensions and not over_all
        return {**where, "reductionOpName": self.cls.reduction_op_name, "reductionKeepDimensions": bool(keep)}  # type: ignore[attr-defined]

    def reads(self, given: Given, inputs: Sequence[Variable]) -> bool:
        return given.read("reductionOpName", TEXT) == self.cls.reduction_op_name  # type: ignore[attr-defined]

    def make(self, given: Given, inputs: Sequence[Variable]) -> Op:
        axes = (given.read("axis", ANY_AXIS),) if "axis" in given else given.read("axisVec", ANY_AXES)
        over_all = axes in ((Axis.all_static_axes(),), (Axis.all_axes(),))
        keep = over_all or given.read("reductionKeepDimensions", BOOL, True)
        return self.cls(axis_vec=axes, reduction_keep_dimensions=keep)


_SINGLE = (Axis.all_static_axes(),)


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

    END = 2**31 - 2

    def write(self, node: Primitive) -> dict[str, Any]:
        x = operand_of(node)
        begin, end = (_place(axis, None if x.shape is None else x.rank) for axis in (node.op.begin_axis, node.op.end_axis))
        return {"newShape": SHAPE.write(node.op.new_shape, x), "beginAxis": end, "endAxis": begin}

    def make(self, given: Given, inputs: Sequence[Variable]) -> Op:
        new_shape = given.read("newShape", SHAPE)
        end = _from_place(given.get("beginAxis", static(0)))
        begin = _from_place(given.get("endAxis", static(self.END)))
        return self.cls(new_shape=new_shape, begin_axis=begin, end_axis=end)


def _place(axis: Any, rank: int | None) -> FileAxis:
    """A place between axes, counted from the end."""
    if axis == Axis.new_leading_axis():
        return static(0)
    index = shaping.index_of(axis)
    if rank is None:
        return static(-index if index else ReshapeRow.END)
    return static(rank - (index if index >= 0 else index + rank))


def _from_place(axis: Any) -> Any:
    if not isinstance(axis, FileAxis):
        raise ValueError(f"expected an axis, found {axis!r}")
    if axis.number == ReshapeRow.END:
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
        found: dict[str, Any] = {"newDynamicAxes": file_axes(node.outputs[0].spec.axes)}
        if node.op._typeinfo is not None:
            factor, addend = node.op._typeinfo
            found |= {_FACTOR: np.uint64(factor), _ADDEND: np.int32(addend)}
        return found

    def make(self, given: Given, inputs: Sequence[Variable]) -> Op:
        typeinfo = (given.read(_FACTOR, SIZE), given.read(_ADDEND, INT)) if _FACTOR in given else None
        if typeinfo is None and len(python_axes(given.get("newDynamicAxes")) or ()) == 1:
            typeinfo = (0, 1)
        return on_axis(sequence_gathering.Where("where", typeinfo), given)


_FACTOR, _ADDEND = "newSequenceAxisLengthScalingFactor", "newSequenceAxisLengthAdditiveFactor"


def on_axis(op: Any, given: Given) -> Op:
    """Let an operator that makes a sequence axis make the one that the file names."""
    axes = python_axes(given.get("newDynamicAxes"))
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


def _plain(pairs: dict[int, type[Op]]) -> list[Row]:
    return [Row(number, cls) for number, cls in pairs.items()]


_NUMBER_OF: dict[int, type[Op]] = {
    0: arithmetic.Negate, 2: activation.Tanh, 3: activation.ReLU, 4: elementary.Exp, 5: elementary.Log, 6: elementary.Sqrt,
    7: elementary.Floor, 8: arithmetic.Abs, 9: arithmetic.Reciprocal, 11: softmax.Hardmax, 19: arithmetic.Plus, 20: arithmetic.Minus,
    21: arithmetic.ElementTimes, 22: comparison.Equal, 23: comparison.NotEqual, 24: comparison.Less, 25: comparison.LessEqual,
    26: comparison.Greater, 27: comparison.GreaterEqual, 41: elementary.Clip, 42: comparison.Select, 48: logistic.Logistic,
    50: sequence_broadcast.ReconcileDynamicAxis, 52: maximum.LogPlus, 53: cosine.CosDistance, 54: trigonometry.Sin, 55: trigonometry.Cos,
    59: ranking.LambdaRank, 60: ranking.Ndcg, 62: identity.NoOp, 63: ctc.LabelsToGraph, 64: identity.StopGradient, 69: arithmetic.Pow,
    71: sequence_making.ToSequenceLike, 73: identity.Assign, 75: activation.Sigmoid, 77: trigonometry.Sinh, 78: trigonometry.Cosh,
    79: batch.UnpackBatchAxis, 80: batch.ToBatchAxis, 81: trigonometry.Asin, 82: trigonometry.Acos, 85: trigonometry.Atanh,
    86: trigonometry.Asinh, 94: activation.StraightThrough, 95: trigonometry.Tan, 96: trigonometry.Atan,
}  # fmt: skip

_REDUCTIONS = (
    reduction.ReduceSum, reduction.ReduceMean, reduction.ReduceProd, reduction.ReduceLogSum, extremum.ReduceMax, extremum.ReduceMin,
    extremum.ArgMax, extremum.ArgMin,
)  # fmt: skip
_DISTRIBUTIONS = (random_distribution.Uniform, random_distribution.Normal, random_distribution.Gumbel, random_distribution.Bernoulli)
_SAMPLES = {"num_samples": SIZE, "allow_duplicates": BOOL, "rng_seed": SEED}
_WINDOW = {"pooling_type": SIZE, "strides": SHAPE, "auto_padding": FLAGS}
_TIMES = {"output_rank": SIZE, "infer_input_rank_to_map": INT}
_NORMALIZATION = {
    "spatial": BOOL,
    "normalization_time_constant": DOUBLE,
    "blend_time_constant": DOUBLE,
    "epsilon": DOUBLE,
    "use_cu_d_n_n_engine": BOOL,
    "disable_regularization": BOOL,
}

ROWS: list[Row] = [
    *_plain(_NUMBER_OF),
    Row(1, activation.Sigmoid),
    NoAxisRow(10, softmax.Softmax),
    TransposeRow(12, shaping.TransposeAxes, {"axis_vec": list_of(AXIS, backwards=True)}),
    TransposeRow(12, shaping.SwapAxes, {"axis1": AXIS, "axis2": AXIS}),
    WhereRow(WHERE, sequence_gathering.Where),
    SliceRow(14, slicing.Slice),
    Row(15, dropout.Dropout, {"dropout_rate": DOUBLE, "rng_seed": SEED}),
    ReshapeRow(16, shaping.Reshape),
    PoolingRow(
        17,
        pooling.Pooling,
        {**_WINDOW, "pooling_window_shape": SHAPE, "ceil_out_dim": BOOL, "include_pad": BOOL},
        {"ceil_out_dim": False, "include_pad": False},
    ),
    TimesRow(31, product.Times, _TIMES, {"infer_input_rank_to_map": -1}, backwards=True),
    TimesRow(31, sequence_product.TimesOverSteps, _TIMES, backwards=True),
    Row(32, product.TransposeTimes, {"output_rank": SIZE}, backwards=True),
    FilterRow(33, convolution.Convolution),
    FilterRow(33, convolution.ConvolutionTranspose),
    OperandRow(36, metric.TopNClassificationError, {"top_n": SIZE}),
    Row(37, delay.PastValue, {"offset": SIZE}),
    Row(38, delay.FutureValue, {"offset": SIZE}),
    *(ReductionRow(39, cls) for cls in _REDUCTIONS),
    NormalizationRow(40, batch_normalization.BatchNormalization, _NORMALIZATION, {"disable_regularization": False}),
    SpliceRow(43, slicing.Splice, {"axis": AXIS}),
    Row(45, random_sampling.RandomSample, _SAMPLES),
    Row(46, random_sampling.RandomSampleInclusionFrequency, _SAMPLES),
    Row(47, roipooling.ROIPooling, {"pooling_type": SIZE, "roi_output_shape": SHAPE, "spatial_scale": DOUBLE}),
    Row(49, rnnstack.OptimizedRNNStack, {"bidirectional": BOOL, "num_layers": SIZE, "hidden_size": SIZE, "recurrent_op": TEXT}),
    PoolingRow(58, pooling.Unpooling, {**_WINDOW, "unpooling_window_shape": SHAPE}),
    EditDistanceRow(61, edit_distance.EditDistanceError),
    UnitRow(65, activation.ELU, {"alpha": DOUBLE}),
    Row(
        66,
        ctc.ForwardBackward,
        {"blank_token_id": SIZE, "delay_constraint": INT},
        names={"blank_token_id": "BlankTokenId", "delay_constraint": "DelayConstraint"},
    ),
    OperandRow(67, cosine.CosDistanceWithNegativeSamples, {"shift": SIZE, "num_negative_samples": SIZE}),
    Row(68, slicing.OneHot, {"num_class": SIZE, "one_hot_output_sparse": BOOL, "onehot_axis": NEW_AXIS}),
    SequenceMakingRow(70, sequence_making.ToSequence),
    SequenceMakingRow(70, sequence_making.ToSequenceOfLengths),
    UnpackRow(72, sequence_unpacking.UnpackSequence, {"sequence_unpack_padding_value": DOUBLE}),
    UnpackRow(72, sequence_unpacking.UnpackSequenceWithMask, {"sequence_unpack_padding_value": DOUBLE}),
    NoAxisRow(74, slicing.Gather, defaults={"axis": 0}, backwards=True),
    *(RandomRow(76, cls) for cls in _DISTRIBUTIONS),
    Row(
        83,
        spatial.Pad,
        {"padding_mode": SIZE, "padding_head": SIZES, "padding_foot": SIZES, "padding_constant_value": DOUBLE},
    ),
    CropRow(84, cropping.Crop, {"offset": list_of(SIZE)}),
    LastAxisRow(87, sorting.TopK, {"num_items": SIZE, "axis": AXIS}),
    SqueezeRow(88, shaping.Squeeze, {"axis_vec": list_of(AXIS)}),
    Row(89, identity.ConstantOp, {"fill_value": DOUBLE}),
    Row(91, identity.Cast, {"new_data_type": DTYPE}),
    Row(92, eye.EyeLike, {"OutputSparse": BOOL}),
    Row(93, custom_proxy.CustomProxyOp, {"custom_op": TEXT, "output_shape": SHAPE, "new_data_type": DTYPE}),
]

BY_CLASS: dict[type[Op], Row] = {}
BY_NUMBER: dict[int, list[Row]] = {}
for _row in ROWS:
    BY_CLASS.setdefault(_row.cls, _row)
    BY_NUMBER.setdefault(_row.number, []).append(_row)


def row_for(node: Primitive) -> Row | None:
    """How *node* is written as one operator; None where it is not."""
    row = BY_CLASS.get(type(node.op))
    return row if row is not None and row.handles(node) else None


def row_of(number: int, given: Given, inputs: Sequence[Variable]) -> Row:
    """What reads the operator of a file.

    Raises:
        ValueError: there is no such operator here.
    """
    for row in BY_NUMBER.get(number, ()):
        if row.reads(given, inputs):
            return row
    raise ValueError(f"expected an operator that is known here, found number {number} with the attributes {sorted(given)}")
