"""Kernels for arrays on GPUs."""

from ...core.extension.hookspecs import RegisterEngine, RegisterKernel, hookimpl

OPERATORS = {
    "batch_normalization:BatchNormalization": "batch_normalization:BatchNormalizationKernel",
    "convolution:Convolution": "convolution:ConvolutionKernel",
    "convolution:ConvolutionTranspose": "convolution:ConvolutionKernel",
    "pooling:Pooling": "pooling:PoolingKernel",
    "product:Times": "products:TimesKernel",
    "product:TransposeTimes": "products:TimesKernel",
    "rnnstack:OptimizedRNNStack": "rnnstack:OptimizedRNNStackKernel",
}
"""The kernel of each operator."""

ENGINES = {
    "Products": "products:Products",
}
"""What serves several operators."""


@hookimpl
def cntk_register_kernels(register: RegisterKernel) -> None:
    for operator, kernel in OPERATORS.items():
        register(f"cntk.plugins.ops.{operator}", "cupy", f"cntk.backends.cupy.{kernel}")


@hookimpl
def cntk_register_engines(register: RegisterEngine) -> None:
    for name, engine in ENGINES.items():
        register(name, "cupy", f"cntk.backends.cupy.{engine}")
