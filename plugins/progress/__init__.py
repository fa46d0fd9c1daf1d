"""The built-in progress writers, a file each."""

from ...core.hookspecs import Register, hookimpl


@hookimpl
def cntk_register_progress_writers(register: Register) -> None:
    register("ProgressPrinter", "cntk.plugins.progress.printer:ProgressPrinter")
    register("TensorBoardProgressWriter", "cntk.plugins.progress.tensorboard:TensorBoardProgressWriter")
    register("RichProgressBar", "cntk.plugins.progress.rich_bar:RichProgressBar")
    register("MLflowProgressWriter", "cntk.plugins.progress.mlflow_writer:MLflowProgressWriter")
    register("TrainingSummaryProgressCallback", "cntk.plugins.progress.summary:TrainingSummaryProgressCallback")
