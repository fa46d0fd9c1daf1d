"""The NumPy backend, which is always there, and its kernels."""

from ...core.extension.hookspecs import Register, RegisterKernel, hookimpl


@hookimpl
def cntk_register_backends(register: Register) -> None:
    register("numpy", "cntk.backends.numpy.backend:NumpyBackend")


@hookimpl
def cntk_register_kernels(register: RegisterKernel) -> None:
    register("cntk.plugins.ops.product:Times", "numpy", "cntk.backends.numpy.times:TimesKernel")
    register("cntk.plugins.ops.product:TransposeTimes", "numpy", "cntk.backends.numpy.times:TimesKernel")
