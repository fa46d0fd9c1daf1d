"""The numbers of our operators in CNTK's file format, and the names of their attributes.

A row of :data:`ROWS` is an operator that the file has as well.  Operators that CNTK makes of others are in ``expansions``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...core.extension import plugins
from ...core.graph.nodes import Primitive
from ...core.graph.variable import Variable
from ...core.operators.op import Op
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
    AXIS,
    BOOL,
    DOUBLE,
    DTYPE,
    FLAGS,
    INT,
    NEW_AXIS,
    SEED,
    SHAPE,
    SIZE,
    SIZES,
    TEXT,
    list_of,
)
from .opcodes import WHERE
from .row import Given, Row
from .special_rows import (
    CropRow,
    EditDistanceRow,
    FilterRow,
    LastAxisRow,
    NoAxisRow,
    NormalizationRow,
    OperandRow,
    PoolingRow,
    RandomRow,
    ReductionRow,
    ReshapeRow,
    SequenceMakingRow,
    SliceRow,
    SpliceRow,
    SqueezeRow,
    TimesRow,
    TransposeRow,
    UnitRow,
    UnpackRow,
    WhereRow,
)


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
    """The row by which *node* is written as one operator; None if it is not."""
    row = BY_CLASS.get(type(node.op)) or next((row for row in _of_plugins() if row.cls is type(node.op)), None)
    return row if row is not None and row.handles(node) else None


def row_of(number: int, given: Given, inputs: Sequence[Variable]) -> Row:
    """The row that reads the operator of a file.

    Raises:
        ValueError: there is no such operator here.
    """
    for row in (*BY_NUMBER.get(number, ()), *(row for row in _of_plugins() if row.number == number)):
        if row.reads(given, inputs):
            return row
    raise ValueError(f"expected an operator that is known here, found number {number} with the attributes {sorted(given)}")


def _of_plugins() -> Iterator[Row]:
    """The rows that plugins have registered."""
    return (plugins.operator_rows.get(name) for name in plugins.operator_rows)
