"""Writes functions as ONNX models: what writes each operator."""

from __future__ import annotations

from .....core.extension.hookspecs import RegisterOnnxWriter

OPERATORS = "cntk.plugins.ops"
HERE = "cntk.plugins.formats.onnx.writing"

ACTIVATIONS = {
    "activation:ReLU": "relu",
    "activation:LeakyReLU": "leaky_relu",
    "activation:PReLU": "prelu",
    "activation:ELU": "elu",
    "activation:SELU": "selu",
    "activation:Softplus": "softplus",
    "activation:Softsign": "softsign",
    "activation:HardSigmoid": "hard_sigmoid",
    "softmax:Softmax": "softmax",
    "softmax:LogSoftmax": "log_softmax",
    "softmax:Hardmax": "hardmax",
}
ARITHMETIC = {
    "elementary:Ceil": "ceil",
    "elementary:Clip": "clip",
}
PRODUCTS = {
    "product:Times": "times",
    "product:TransposeTimes": "times",
    "user_times:UserTimes": "user_times",
}
IDENTITIES = {
    "dropout:Dropout": "same",
    "identity:NoOp": "same",
    "identity:StopGradient": "same",
    "identity:Cast": "cast",
    "custom_proxy:CustomProxyOp": "same",
}
SHAPING = {
    "shaping:Reshape": "reshape",
    "shaping:Squeeze": "reshape",
    "shaping:ExpandDims": "reshape",
    "shaping:Flatten": "reshape",
    "shaping:TransposeAxes": "transpose",
    "shaping:SwapAxes": "transpose",
    "slicing:Slice": "cut",
    "slicing:Splice": "splice",
}
RECURRENT_OPERATORS = {
    "rnnstack:OptimizedRNNStack": "stack",
}
REDUCTIONS = {
    **{f"reduction:{name}": "reduction" for name in ("ReduceSum", "ReduceMean", "ReduceProd", "ReduceLogSum")},
    **{f"norm:{name}": "reduction" for name in ("ReduceL1", "ReduceL2", "ReduceSumSquare")},
    "extremum:ReduceMax": "reduction",
    "extremum:ReduceMin": "reduction",
    "extremum:ArgMax": "place",
    "extremum:ArgMin": "place",
}
CONVOLUTION = {
    "convolution:Convolution": "convolution",
    "convolution:ConvolutionTranspose": "transposed",
}
POOLING = {
    "pooling:Pooling": "pooling",
    "pooling:Unpooling": "unpooling",
}
NORMALIZATION = {
    "batch_normalization:BatchNormalization": "batch_normalization",
    "normalization:LocalResponseNormalization": "local_response",
    "normalization:MeanVarianceNormalization": "mean_variance",
}
LOSSES = {
    "loss:CrossEntropyWithSoftmax": "cross_entropy",
    "loss:SquaredError": "squared_error",
    "loss:BinaryCrossEntropy": "binary_cross_entropy",
    "logistic:Logistic": "weighted_binary_cross_entropy",
    "metric:ClassificationError": "classification_error",
    "metric:MeanClassificationError": "mean_classification_error",
    "metric:TopNClassificationError": "top_classification_error",
    "cosine:CosDistance": "cosine",
    "cosine:CosDistanceWithNegativeSamples": "cosine_with_others",
}
PICKING = {
    "slicing:Gather": "gather",
    "slicing:OneHot": "one_hot",
    "sorting:TopK": "top",
    "eye:EyeLike": "eye",
    "identity:ConstantOp": "constant",
}
IMAGES = {
    "spatial:Pad": "pad",
    "spatial:DepthToSpace": "depth_to_space",
    "spatial:SpaceToDepth": "space_to_depth",
    "cropping:Crop": "crop",
    "roipooling:ROIPooling": "region_pooling",
}
DRAWING = {
    "random_distribution:Uniform": "uniform",
    "random_distribution:Normal": "normal",
    "random_distribution:Gumbel": "gumbel",
    "random_distribution:Bernoulli": "bernoulli",
}
DELAYS = {
    "delay:FutureValue": "delay",
    "delay:PastValue": "delay",
}
ENDS = {
    "sequence_ends:IsFirst": "is_first",
    "sequence_ends:IsLast": "is_last",
    "sequence_slicing:SequenceSlice": "cut_steps",
}
PICKED_STEPS = {
    "sequence_gathering:Gather": "gather",
    "sequence_gathering:Scatter": "scatter",
    "sequence_gathering:Where": "where",
}
ONTO_AXES = {
    "batch:ToBatchAxis": "same_elements",
    "batch:UnpackBatchAxis": "same_elements",
    "sequence_broadcast:BroadcastAs": "repeat",
    "sequence_broadcast:ReconcileDynamicAxis": "repeat",
    "sequence_making:ToSequence": "to_sequence",
    "sequence_making:ToSequenceLike": "to_sequence_like",
    "sequence_making:ToSequenceOfLengths": "to_sequence_of_lengths",
    "sequence_unpacking:UnpackSequence": "unpack",
    "sequence_unpacking:UnpackSequenceWithMask": "unpack_with_mask",
}
ATTENTION = {
    "sequence_attention:SequenceAttention": "attention",
}
TOTALS = {
    "sequence_product:TimesOverSteps": "product",
    "sequence_reduction:SequenceReduceMax": "greatest",
    "sequence_reduction:SequenceReduceSum": "total",
    "sequence_softmax:SequenceSoftmax": "softmax",
}
WINDOWS = {
    "sequence_windows:SequenceWindows": "windows",
}

FAMILIES = {
    "activations": ACTIVATIONS,
    "arithmetic": ARITHMETIC,
    "attention": ATTENTION,
    "convolution": CONVOLUTION,
    "delays": DELAYS,
    "drawing": DRAWING,
    "ends": ENDS,
    "identities": IDENTITIES,
    "images": IMAGES,
    "losses": LOSSES,
    "normalization": NORMALIZATION,
    "onto_axes": ONTO_AXES,
    "picked_steps": PICKED_STEPS,
    "picking": PICKING,
    "pooling": POOLING,
    "products": PRODUCTS,
    "recurrent_operators": RECURRENT_OPERATORS,
    "reductions": REDUCTIONS,
    "shaping": SHAPING,
    "totals": TOTALS,
    "windows": WINDOWS,
}
"""By module here: by operator the function that writes it."""


def register_writers(register: RegisterOnnxWriter) -> None:
    """Register what writes the built-in operators; element-wise ones that are not here are written by their formulas."""
    for module, family in FAMILIES.items():
        for operator, function in family.items():
            register(f"{OPERATORS}.{operator}", f"{HERE}.{module}:{function}")
