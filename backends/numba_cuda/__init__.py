"""NVIDIA GPUs by Numba: the bodies of the compiled loops of ``fused`` as CUDA kernels on the arrays of another backend."""

from ...core.extension import compiled
from ...core.extension.hookspecs import Register, RegisterEngine, RegisterKernel, hookimpl
from ..fused import LEARNERS

BACKEND = "numba-cuda"

OPERATORS = {
    "dropout:Dropout": "dropout:DropoutKernel",
    "loss:CrossEntropyWithSoftmax": "cross_entropy:CrossEntropyKernel",
    "product:Times": "times:TimesKernel",
    "product:TransposeTimes": "times:TimesKernel",
    "softmax:LogSoftmax": "softmax:LogSoftmaxKernel",
    "softmax:Softmax": "softmax:SoftmaxKernel",
}
"""Kernels by operator."""


@hookimpl
def cntk_register_backends(register: Register) -> None:
    register(BACKEND, "cntk.backends.numba_cuda.backend:NumbaCudaBackend")


@hookimpl
def cntk_register_kernels(register: RegisterKernel) -> None:
    if not compiled.is_wanted():
        return
    for learner in LEARNERS:
        register(f"cntk.learners.{learner}", BACKEND, f"cntk.backends.numba_cuda.learners:{learner.partition(':')[2]}")
    for operator, kernel in OPERATORS.items():
        register(f"cntk.plugins.ops.{operator}", BACKEND, f"cntk.backends.numba_cuda.{kernel}")


@hookimpl
def cntk_register_engines(register: RegisterEngine) -> None:
    if compiled.is_wanted():
        register("Recurrence", BACKEND, "cntk.backends.numba_cuda.recurrence:fuse")
