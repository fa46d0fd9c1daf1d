"""The built-in progress writers, a file each; those for other programs are plugins of their own, so that each can be left out."""

from ...core.extension.hookspecs import Register, hookimpl


class _Writer:
    """A plugin that has one progress writer."""

    def __init__(self, name: str, target: str) -> None:
        self._name, self._target = name, target

    @hookimpl
    def cntk_register_progress_writers(self, register: Register) -> None:
        register(self._name, self._target)


tensorboard_plugin = _Writer("TensorBoardProgressWriter", "cntk.plugins.progress.tensorboard:TensorBoardProgressWriter")
rich_plugin = _Writer("RichProgressBar", "cntk.plugins.progress.rich_bar:RichProgressBar")
mlflow_plugin = _Writer("MLflowProgressWriter", "cntk.plugins.progress.mlflow_writer:MLflowProgressWriter")


@hookimpl
def cntk_register_progress_writers(register: Register) -> None:
    register("LivePlot", "cntk.plugins.progress.live_plot:LivePlot")
    register("ProgressPrinter", "cntk.plugins.progress.printer:ProgressPrinter")
    register("TrainingSummaryProgressCallback", "cntk.plugins.progress.summary:TrainingSummaryProgressCallback")
