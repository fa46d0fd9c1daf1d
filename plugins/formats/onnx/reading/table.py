"""Which function reads which of ONNX's operators, by module."""

from __future__ import annotations

import re


def function_of(op_type: str) -> str:
    """The name of the function that reads an operator: ``read_mat_mul`` for MatMul, ``read_lstm`` for LSTM."""
    return "read_" + re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", op_type).lower()


_OPERATORS = {
    "experimental": "Affine Crop DynamicSlice ImageScaler ParametricSoftplus Scale ScaledTanh",
    "elementary": (
        "Abs Acos Acosh Add And Asin Asinh Atan Atanh Ceil Cos Cosh Div Equal Erf Exp Floor Greater GreaterOrEqual IsInf IsNaN Less "
        "LessOrEqual Log Max Mean Min Mod Mul Neg Not Or Pow Reciprocal Round Sign Sin Sinh Sqrt Sub Sum Tan Where Xor Clip"
    ),
    "activation": (
        "Celu Dropout Elu Gelu HardSigmoid HardSwish Hardmax Identity LeakyRelu LogSoftmax Mish PRelu Relu Selu Shrink Sigmoid Softmax "
        "Softplus Softsign Swish Tanh ThresholdedRelu"
    ),
    "shapes": (
        "Cast CastLike Concat Constant ConstantOfShape DepthToSpace Expand EyeLike Flatten Pad Range Reshape Shape Size Slice "
        "SpaceToDepth Split Squeeze Tile Transpose Trilu Unsqueeze"
    ),
    "windows": ("AveragePool Conv ConvTranspose GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool MaxUnpool Resize Upsample"),
    "products": "Einsum Gemm MatMul",
    "reductions": (
        "ArgMax ArgMin CumSum ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
        "ReduceSumSquare TopK"
    ),
    "normalizations": (
        "BatchNormalization GroupNormalization InstanceNormalization LRN LayerNormalization LpNormalization MeanVarianceNormalization "
        "RMSNormalization"
    ),
    "selections": "Compress Gather GatherElements GatherND NonZero OneHot ReverseSequence ScatterElements ScatterND Scatter",
    "recurrences": "GRU LSTM RNN",
    "control": "If Loop Scan",
    "attention": "Attention RotaryEmbedding",
    "lists": (
        "Optional OptionalGetElement OptionalHasElement "
        "ConcatFromSequence SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength "
        "SplitToSequence"
    ),
    "quantization": ("ConvInteger DequantizeLinear DynamicQuantizeLinear MatMulInteger QLinearConv QLinearMatMul QuantizeLinear"),
    "features": "ArrayFeatureExtractor Binarizer LinearClassifier LinearRegressor Normalizer Scaler",
    "losses": "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
}

DOMAINS = {"features": "ai.onnx.ml"}
"""The domains of operators that are not ONNX's own, by module."""
READERS = {module: {op_type: function_of(op_type) for op_type in names.split()} for module, names in _OPERATORS.items()}
