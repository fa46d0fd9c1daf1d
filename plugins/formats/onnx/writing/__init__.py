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

FAMILIES = {
    "activations": ACTIVATIONS,
    "arithmetic": ARITHMETIC,
    "identities": IDENTITIES,
    "products": PRODUCTS,
    "shaping": SHAPING,
}
"""By module here: by operator the function that writes it."""


def register_writers(register: RegisterOnnxWriter) -> None:
    """Register what writes the built-in operators; element-wise ones that are not here are written by their formulas."""
    for module, family in FAMILIES.items():
        for operator, function in family.items():
            register(f"{OPERATORS}.{operator}", f"{HERE}.{module}:{function}")
