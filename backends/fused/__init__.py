"""Learners' steps, operators and recurrences on NumPy arrays, compiled by Numba, on several threads."""

from ...core import compiled
from ...core.hookspecs import RegisterKernel, hookimpl

KERNELS = {
    "sgd_learner.SGD": "sgd:SGD",
    "momentum_sgd_learner.MomentumSGD": "momentum_sgd:MomentumSGD",
    "nesterov_learner.Nesterov": "nesterov:Nesterov",
    "adagrad_learner.AdaGrad": "adagrad:AdaGrad",
    "adadelta_learner.AdaDelta": "adadelta:AdaDelta",
    "rmsprop_learner.RMSProp": "rmsprop:RMSProp",
    "fsadagrad_learner.FSAdaGrad": "fsadagrad:FSAdaGrad",
    "adam_learner.Adam": "adam:Adam",
    "adam_learner.Adamax": "adamax:Adamax",
}
"""The kernel of each learner, in a file of its own."""

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
    for learner, kernel in KERNELS.items():
        register(f"cntk.learners.{learner}", "numpy", f"cntk.backends.fused.{kernel}")
    for operator, kernel in OPERATORS.items():
        register(operator, "numpy", f"cntk.backends.fused.{kernel}")
