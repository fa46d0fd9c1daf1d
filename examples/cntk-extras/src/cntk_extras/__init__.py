"""A plugin for opencntk: the operator ``swish``, the learner ``lion`` and the progress writer ``CSVWriter``."""

from cntk.core.hookspecs import Register, hookimpl


@hookimpl
def cntk_register_ops(register: Register) -> None:
    register("swish", "cntk_extras.swish:swish")


@hookimpl
def cntk_register_learners(register: Register) -> None:
    register("lion", "cntk_extras.lion:lion")


@hookimpl
def cntk_register_progress_writers(register: Register) -> None:
    register("CSVWriter", "cntk_extras.csv_writer:CSVWriter")
