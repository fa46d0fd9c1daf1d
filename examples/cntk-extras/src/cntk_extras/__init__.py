"""A plugin for opencntk: an operator, a learner, a progress writer, a way to train on several workers, and a native function."""

from cntk.core.extension.hookspecs import Register, RegisterNativeFunction, hookimpl


@hookimpl
def cntk_register_ops(register: Register) -> None:
    register("swish", "cntk_extras.swish:swish")


@hookimpl
def cntk_register_learners(register: Register) -> None:
    register("lion", "cntk_extras.lion:lion")


@hookimpl
def cntk_register_distributed_strategies(register: Register) -> None:
    register("top_k", "cntk_extras.top_k:TopK")


@hookimpl
def cntk_register_progress_writers(register: Register) -> None:
    register("CSVWriter", "cntk_extras.csv_writer:CSVWriter")


@hookimpl
def cntk_register_native_functions(register: RegisterNativeFunction) -> None:
    register("Extras.Native-1.0", "CreateGain", "cntk_extras.gain:Gain")
