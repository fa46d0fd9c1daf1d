"""The nodes that a file can have: their names, their attributes as they follow, and the numbers that the current format has for them."""

from __future__ import annotations

from ..opcodes import FILTER, GATHER_PACKED, PACKED_INDEX, SCATTER_PACKED, TO_SEQUENCE, TO_SEQUENCE_LIKE, UNPACK, WHERE
from ..wire import NDShape
from .kinds import AXIS, DOUBLE, END, FLAG, FLAGS, FLOAT, INT, SHAPE, SIZE, SIZES, TEXT
from .rows import (
    NEWEST,
    CropRow,
    DelayRow,
    DropoutRow,
    Field,
    NormalizationRow,
    PoolingKindRow,
    RecurrentRow,
    ReductionRow,
    ReshapeRow,
    Row,
    SliceRow,
    SpliceRow,
    SqueezeRow,
    TransposeRow,
    WhereRow,
    WindowRow,
)

_PLAIN = {
    "Negate": 0, "Sigmoid": 1, "Tanh": 2, "RectifiedLinear": 3, "Exp": 4, "Log": 5, "Sqrt": 6, "Floor": 7, "Abs": 8, "Reciprocal": 9,
    "Softmax": 10, "Hardmax": 11, "Plus": 19, "Minus": 20, "ElementTimes": 21, "Equal": 22, "NotEqual": 23, "Less": 24, "LessEqual": 25,
    "Greater": 26, "GreaterEqual": 27, "PackedIndex": PACKED_INDEX, "If": 42, "ReconcileDynamicAxis": 50, "LogPlus": 52,
    "CosDistance": 53, "Sin": 54, "Cosine": 55, "Pass": 62, "LabelsToGraph": 63, "StopGradient": 64,
    "CosDistanceWithNegativeSamples": 67, "StableSigmoid": 75, "Sinh": 77, "Cosh": 78, "Asin": 81, "Acos": 82, "StraightThrough": 94,
}  # fmt: skip
_ONLY_READ = {
    "ExponentialLinearUnit": 65, "Pow": 69, "ToSequenceLike": TO_SEQUENCE_LIKE, "Gather": 74, "Atanh": 85, "Asinh": 86, "Tan": 95,
    "Atan": 96,
}  # fmt: skip
_UNPACKED = (Field("sequenceUnpackPaddingValue", FLOAT), Field("sequenceUnpackSuppressMaskOutput", FLAG))
_SWAPPED = {"ClassificationError": 36, "Logistic": 48, "LambdaRank": 59, "NDCG1Eval": 60}

_PRODUCT = (Field("outputRank", SIZE, 1), Field("inferInputRankToMap", INT, -1, since=12))
_DELAY = (Field("offset", INT), Field("shape", SHAPE), Field("initial", FLOAT, 0.0))
_DRAWS = (Field("rngSeed", SIZE, 0, since=16), Field("rngOffset", SIZE, 0, since=16))
_SAMPLE = (Field("allowDuplicates", FLAG), Field("numSamples", SIZE), Field("rngSeed", SIZE), Field("rngOffset", SIZE))
_RESHAPE = (Field("beginAxis", AXIS), Field("endAxis", END), Field("newShape", SHAPE))
_WINDOW = (
    Field("kernelShape", SHAPE),
    Field("mapCount", SHAPE),
    Field("strides", SHAPE),
    Field("sharing", FLAGS),
    Field("autoPadding", FLAGS),
    Field("lowerPad", SHAPE),
    Field("upperPad", SHAPE),
    Field("poolingType", INT, 0),
    Field("layout", INT, 1),
    Field("maxTempMemSizeInSamples", SIZE, 0),
    Field("transpose", FLAG, False, since=9),
    Field("outputShape", SHAPE, NDShape((0,)), since=20),
    Field("ceilOutDim", FLAG, False, since=21),
    Field("includePad", FLAG, False, since=23),
)
_FILTER = (Field("flat", FLAG, False), Field("dilation", SHAPE, NDShape((1,)), since=18))

ROWS: list[Row] = [
    *(Row(name, number) for name, number in _PLAIN.items()),
    *(Row(name, number, written=False) for name, number in _ONLY_READ.items()),
    *(Row(name, number, order=(1, 0)) for name, number in _SWAPPED.items()),
    Row("Times", 31, _PRODUCT),
    Row("TransposeTimes", 32, _PRODUCT),
    Row("Clip", 41, order=(1, 2, 0)),
    Row("GatherPacked", GATHER_PACKED, order=(1, 0)),
    Row("ScatterPacked", SCATTER_PACKED, order=(2, 1, 0)),
    WhereRow("Where", WHERE, (Field("sequenceAxis", TEXT),), since=11),
    WhereRow("ToSequence", TO_SEQUENCE, (Field("sequenceAxis", TEXT),), since=NEWEST, written=False),
    Row("UnpackSequence", UNPACK, _UNPACKED, since=NEWEST, written=False),
    TransposeRow("TransposeDimensions", 12),
    SliceRow("Slice", 14),
    DropoutRow("Dropout", 15, _DRAWS),
    ReshapeRow("Reshape", 16, _RESHAPE),
    SqueezeRow("Reshape", 88, _RESHAPE),
    WindowRow("Pooling", 17, _WINDOW),
    WindowRow("MaxUnpooling", 58, _WINDOW, since=9),
    WindowRow("Convolution", FILTER, (*_WINDOW, *_FILTER)),
    DelayRow("PastValue", 37, _DELAY),
    DelayRow("FutureValue", 38, _DELAY),
    ReductionRow("ReduceElements", 39),
    NormalizationRow(
        "BatchNormalization",
        40,
        (
            Field("spatial", FLAG),
            Field("normalizationTimeConstant", DOUBLE),
            Field("blendTimeConstant", DOUBLE),
            Field("layout", INT, 1),
            Field("samples", SIZE, 0),
            Field("epsilon", DOUBLE),
            Field("useCntkEngine", FLAG),
        ),
        since=13,
    ),
    SpliceRow("RowStack", 43, (Field("axis", AXIS),)),
    Row("RandomSample", 45, _SAMPLE, since=16),
    Row("RandomSampleInclusionFrequency", 46, _SAMPLE, since=16),
    PoolingKindRow("ROIPooling", 47, (Field("roiOutputShape", SHAPE), Field("poolingType", INT), Field("spatialScale", DOUBLE)), since=26),
    RecurrentRow(
        "OptimizedRNNStack",
        49,
        (
            Field("bidirectional", SIZE),
            Field("numLayers", SIZE),
            Field("hiddenSize", SIZE),
            Field("recurrentOp", TEXT),
            Field("axis", INT, -1),
        ),
        order=(1, 0),
        since=NEWEST,
    ),
    Row(
        "EditDistanceError",
        61,
        (
            Field("SubstitutionPenalty", FLOAT),
            Field("DeletionPenalty", FLOAT),
            Field("InsertionPenalty", FLOAT),
            Field("SquashInputs", FLAG),
            Field("TokensToIgnore", SIZES),
        ),
        since=10,
    ),
    Row("ForwardBackward", 66, (Field("DelayConstraint", INT), Field("BlankTokenId", SIZE)), since=10),
    CropRow("Crop", 84, (Field("x", DOUBLE), Field("y", DOUBLE)), since=NEWEST, written=False),
]

BY_NAME: dict[str, Row] = {}
BY_NUMBER: dict[int, Row] = {}
for _row in ROWS:
    BY_NAME.setdefault(_row.name, _row)
    BY_NUMBER.setdefault(_row.number, _row)
