"""A plugin for opencntk: convolutions of float32 on the CPU by oneDNN, where its library is installed."""

from cntk.core.extension.hookspecs import RegisterKernel, hookimpl

from .library import find


@hookimpl
def cntk_register_kernels(register: RegisterKernel) -> None:
    if find() is not None:
        register("cntk.plugins.ops.convolution:Convolution", "numpy", "cntk_onednn.convolution:ConvolutionKernel")
        register("cntk.plugins.ops.convolution:ConvolutionTranspose", "numpy", "cntk_onednn.convolution:ConvolutionKernel")
