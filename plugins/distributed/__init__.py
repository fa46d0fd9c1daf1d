"""The built-in strategies of training one model on several workers, a file each, and the transport of data between workers."""

from ...core.extension.hookspecs import Register, hookimpl


@hookimpl
def cntk_register_distributed_strategies(register: Register) -> None:
    register("data_parallel", "cntk.plugins.distributed.data_parallel:DataParallel")
    register("quantized_data_parallel", "cntk.plugins.distributed.quantized:QuantizedDataParallel")
    register("block_momentum", "cntk.plugins.distributed.block_momentum:BlockMomentum")
