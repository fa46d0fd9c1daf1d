"""Kernels for this backend's arrays, in generated CUDA C++ and by NVIDIA's libraries; a separate plugin, without which operators use
CuPy's functions."""

from ...core.extension.hookspecs import RegisterEngine, RegisterKernel, hookimpl
from ..fused import LEARNERS

OPERATORS = {
    "attention:Attention": "attention:AttentionKernel",
    "attention_heads:AttentionHeads": "attention:AttentionKernel",
    "batch_normalization:BatchNormalization": "batch_normalization:BatchNormalizationKernel",
    "convolution:Convolution": "convolution:ConvolutionKernel",
    "convolution:ConvolutionTranspose": "convolution:ConvolutionKernel",
    "delay:FutureValue": "delay:DelayKernel",
    "delay:PastValue": "delay:DelayKernel",
    "dropout:Dropout": "dropout:DropoutKernel",
    "embedded_product:EmbeddedTimes": "sparse_products:EmbeddedTimesKernel",
    "extremum:ArgMax": "reduction:ReductionKernel",
    "extremum:ReduceMax": "reduction:ReductionKernel",
    "extremum:ReduceMin": "reduction:ReductionKernel",
    "loss:CrossEntropyWithSoftmax": "rows:CrossEntropyKernel",
    "metric:ClassificationError": "rows:ErrorKernel",
    "pooling:Pooling": "pooling:PoolingKernel",
    "pooling:Unpooling": "unpooling:UnpoolingKernel",
    "product:Times": "products:TimesKernel",
    "product:TransposeTimes": "products:TimesKernel",
    "reduction:ReduceLogSum": "reduction:ReductionKernel",
    "reduction:ReduceMean": "reduction:ReductionKernel",
    "reduction:ReduceSum": "reduction:ReductionKernel",
    "rnnstack:OptimizedRNNStack": "rnnstack:OptimizedRNNStackKernel",
    "sequence_attention:SequenceAttention": "attention:SequenceAttentionKernel",
    "sequence_broadcast:BroadcastAs": "sequences:BroadcastKernel",
    "sequence_broadcast:ReconcileDynamicAxis": "sequences:BroadcastKernel",
    "sequence_ends:IsFirst": "marks:EndKernel",
    "sequence_ends:IsLast": "marks:EndKernel",
    "sequence_reduction:SequenceReduceMax": "sequences:MaxKernel",
    "sequence_reduction:SequenceReduceSum": "sequences:SumKernel",
    "sequence_softmax:SequenceSoftmax": "sequences:SoftmaxKernel",
    "sequence_unpacking:UnpackSequenceWithMask": "marks:UnpackKernel",
    "sequence_windows:SequenceWindows": "windows:WindowsKernel",
    "softmax:LogSoftmax": "rows:LogSoftmaxKernel",
    "softmax:Softmax": "rows:SoftmaxKernel",
}
"""Kernels by operator."""

ENGINES = {
    "Chain": "chains:ChainKernel",
    "Products": "products:Products",
    "Recurrence": "recurrence:fuse",
}
"""Kernels shared by several operators: for chains of element-wise ones, products of dense matrices, and recurrences."""


@hookimpl
def cntk_register_kernels(register: RegisterKernel) -> None:
    for learner in LEARNERS:
        register(f"cntk.learners.{learner}", "cupy", f"cntk.backends.cupy.learner_kernels:{learner.partition(':')[2]}")
    for operator, kernel in OPERATORS.items():
        register(f"cntk.plugins.ops.{operator}", "cupy", f"cntk.backends.cupy.{kernel}")
    register("cntk.core.operators.inserted_ops:Expand", "cupy", "cntk.backends.cupy.sequences:ExpandKernel")


@hookimpl
def cntk_register_engines(register: RegisterEngine) -> None:
    for name, engine in ENGINES.items():
        register(name, "cupy", f"cntk.backends.cupy.{engine}")
