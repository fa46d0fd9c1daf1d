"""The built-in progress writers, a file each."""

from ...core.hookspecs import Register, hookimpl


@hookimpl
def cntk_register_progress_writers(register: Register) -> None:
    register("ProgressPrinter", "cntk.plugins.progress.printer:ProgressPrinter")
    register("TrainingSummaryProgressCallback", "cntk.plugins.progress.summary:TrainingSummaryProgressCallback")
