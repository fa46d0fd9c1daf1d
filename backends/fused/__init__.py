"""Learners' steps, operators and recurrences on NumPy arrays, compiled by Numba, on several threads."""

from ...core.extension import compiled
from ...core.extension.hookspecs import RegisterEngine, RegisterKernel, hookimpl

LEARNERS = (
    "sgd_learner:SGD",
    "momentum_sgd_learner:MomentumSGD",
    "nesterov_learner:Nesterov",
    "adagrad_learner:AdaGrad",
    "adadelta_learner:AdaDelta",
    "rmsprop_learner:RMSProp",
    "fsadagrad_learner:FSAdaGrad",
    "adam_learner:Adam",
    "adam_learner:Adamax",
)
"""Learners that have a kernel, which is called like them."""

OPERATORS = {
    "attention:Attention": "attention:AttentionKernel",
    "batch_normalization:BatchNormalization": "batch_normalization:BatchNormalizationKernel",
    "convolution:Convolution": "convolution:ConvolutionKernel",
    "convolution:ConvolutionTranspose": "convolution:ConvolutionKernel",
    "dropout:Dropout": "dropout:DropoutKernel",
    "extremum:ReduceMax": "reduction:ReductionKernel",
    "extremum:ReduceMin": "reduction:ReductionKernel",
    "loss:CrossEntropyWithSoftmax": "cross_entropy:CrossEntropyKernel",
    "pooling:Pooling": "pooling:PoolingKernel",
    "reduction:ReduceLogSum": "reduction:ReductionKernel",
    "reduction:ReduceMean": "reduction:ReductionKernel",
    "reduction:ReduceSum": "reduction:ReductionKernel",
    "rnnstack:OptimizedRNNStack": "rnnstack:OptimizedRNNStackKernel",
    "sequence_attention:SequenceAttention": "sequence_attention:SequenceAttentionKernel",
    "sequence_reduction:SequenceReduceSum": "sequence_reduction:SequenceReduceSumKernel",
    "slicing:Gather": "gather:GatherKernel",
    "softmax:LogSoftmax": "softmax:LogSoftmaxKernel",
    "softmax:Softmax": "softmax:SoftmaxKernel",
}
"""The kernel of each operator."""

ENGINES = {
    "Chain": "chains:ChainKernel",
    "Csr": "csr:Csr",
    "Products": "dense:Products",
    "Recurrence": "recurrence:fuse",
    "Twister": "twister:TwisterLoops",
}
"""What serves several operators: chains, products of CSR rows and dense ones, the loops of recurrences, and random numbers."""


@hookimpl
def cntk_register_kernels(register: RegisterKernel) -> None:
    if not compiled.is_wanted():
        return
    for learner in LEARNERS:
        register(f"cntk.learners.{learner}", "numpy", f"cntk.backends.fused.learner_kernels:{learner.partition(':')[2]}")
    for operator, kernel in OPERATORS.items():
        register(f"cntk.plugins.ops.{operator}", "numpy", f"cntk.backends.fused.{kernel}")


@hookimpl
def cntk_register_engines(register: RegisterEngine) -> None:
    if not compiled.is_wanted():
        return
    for name, engine in ENGINES.items():
        register(name, "numpy", f"cntk.backends.fused.{engine}")
