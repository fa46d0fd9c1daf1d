"""Learners' steps, operators and recurrences on NumPy arrays, compiled by Numba, on several threads."""

from ...core import compiled
from ...core.hookspecs import RegisterKernel, hookimpl

LEARNERS = (
    "sgd_learner.SGD",
    "momentum_sgd_learner.MomentumSGD",
    "nesterov_learner.Nesterov",
    "adagrad_learner.AdaGrad",
    "adadelta_learner.AdaDelta",
    "rmsprop_learner.RMSProp",
    "fsadagrad_learner.FSAdaGrad",
    "adam_learner.Adam",
    "adam_learner.Adamax",
)
"""Learners that have a kernel, which is called like them."""

OPERATORS = {
    "BatchNormalization": "batch_normalization:BatchNormalizationKernel",
    "Chain": "chains:ChainKernel",
    "Convolution": "convolution:ConvolutionKernel",
    "CrossEntropyWithSoftmax": "cross_entropy:CrossEntropyKernel",
    "Csr": "csr:Csr",
    "Dropout": "dropout:DropoutKernel",
    "LogSoftmax": "softmax:LogSoftmaxKernel",
    "OptimizedRNNStack": "rnnstack:OptimizedRNNStackKernel",
    "Pooling": "pooling:PoolingKernel",
    "Products": "dense:Products",
    "Recurrence": "recurrence:fuse",
    "ReduceElements": "reduction:ReductionKernel",
    "Softmax": "softmax:SoftmaxKernel",
}
"""The kernel of each operator, and what serves several: products of CSR rows and dense ones, chains, and the loops of recurrences."""


@hookimpl
def cntk_register_kernels(register: RegisterKernel) -> None:
    if not compiled.is_wanted():
        return
    for learner in LEARNERS:
        register(f"cntk.learners.{learner}", "numpy", f"cntk.backends.fused.learner_kernels:{learner.partition('.')[2]}")
    for operator, kernel in OPERATORS.items():
        register(operator, "numpy", f"cntk.backends.fused.{kernel}")
