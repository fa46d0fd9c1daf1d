# Names that plugins register, for editors and type checkers; made by: make stubs

from cntk.plugins.progress.live_plot import LivePlot as LivePlot
from cntk.plugins.progress.mlflow_writer import MLflowProgressWriter as MLflowProgressWriter
from cntk.plugins.progress.printer import ProgressPrinter as ProgressPrinter
from cntk.plugins.progress.rich_bar import RichProgressBar as RichProgressBar
from cntk.plugins.progress.summary import TrainingSummaryProgressCallback as TrainingSummaryProgressCallback
from cntk.plugins.progress.tensorboard import TensorBoardProgressWriter as TensorBoardProgressWriter

__all__ = [
    "LivePlot",
    "MLflowProgressWriter",
    "ProgressPrinter",
    "RichProgressBar",
    "TensorBoardProgressWriter",
    "TrainingSummaryProgressCallback",
]
