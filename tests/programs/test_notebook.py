"""A notebook in a kernel of Jupyter: what it shows of a model and its training."""

from __future__ import annotations

from typing import Any

import pytest

CELLS = (
    """
import cntk as C, numpy as np
x, y = C.input_variable(2, name='x'), C.input_variable(2)
X = np.random.default_rng(0).normal(size=(2000, 2)).astype(np.float32)
Y = np.eye(2, dtype=np.float32)[(X[:, 0] * X[:, 1] > 0).astype(int)]
z = C.layers.Sequential([C.layers.Dense(16, C.tanh, name='h1'), C.layers.Dense(2)])(x)
criterion = C.combine(C.cross_entropy_with_softmax(z, y), C.classification_error(z, y))
z""",
    "z.parameters[0]",
    """
plot, bar = C.logging.LivePlot(), C.logging.RichProgressBar(num_epochs=3)
learner = C.sgd(z.parameters, C.learning_parameter_schedule(0.3))
criterion.train((X, Y), minibatch_size=32, max_epochs=3, parameter_learners=[learner], callbacks=[plot, bar])
measured = criterion.test((X, Y), callbacks=[plot, bar])""",
    """
trainer = C.Trainer(z, criterion, [learner], [plot])
for _ in range(3):
    trained = trainer.train_minibatch({x: X[:32], y: Y[:32]})
print(z)""",
    "[z]",
    """
import sys
bar.update_training(10, 5.0, 0.0)
print('ipywidgets' in sys.modules, 'matplotlib' in sys.modules)
raise KeyboardInterrupt""",
)


@pytest.fixture(scope="module")
def outputs() -> list[list[Any]]:
    """What each cell has put out."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    pytest.importorskip("rich", reason="rich is not installed")
    from nbformat.v4 import new_code_cell, new_notebook

    notebook = new_notebook(cells=[new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", allow_errors=True).execute()
    return [cell.outputs for cell in notebook.cells]


def shown(output: list[Any], kind: str) -> list[str]:
    return [one.data[kind] for one in output if kind in one.get("data", {})]


def printed(output: list[Any]) -> str:
    return "".join(one.text for one in output if one.output_type == "stream")


@pytest.mark.slow
def test_the_last_line_of_a_cell_is_shown_as_picture_and_tables(outputs: list[list[Any]]) -> None:
    (page,) = shown(outputs[0], "text/html")
    assert "<svg" in page
    assert "h1/W" in page
    assert shown(outputs[0], "image/svg+xml")[0].startswith("<svg")
    assert shown(outputs[0], "text/plain")[0].startswith("layer  kind")
    assert "deviation" in shown(outputs[1], "text/html")[0]
    assert shown(outputs[4], "text/plain")[0].startswith("[Composite(Dense): Input(")


@pytest.mark.slow
def test_curves_are_one_picture_and_bars_leave_lines_alone(outputs: list[list[Any]]) -> None:
    pages = shown(outputs[2], "text/html")
    curves = [page for page in pages if "<svg" in page]
    assert len(curves) == 1
    assert "test " in curves[0]
    assert [page for page in pages if "<progress" in page] == []
    assert pages.count("") == 1  # the place of the bars
    lines = [line for line in printed(outputs[2]).split("\n") if line.strip()]
    assert [line.split(":")[0] for line in lines] == [
        "Learning rate per minibatch",
        "Finished Epoch[1 of 3]",
        "Finished Epoch[2 of 3]",
        "Finished Epoch[3 of 3]",
        "Finished Evaluation [1]",
    ]
    assert shown(outputs[3], "text/html") == []
    assert shown(outputs[2], "text/plain")[0] != "LivePlot: nothing yet"


@pytest.mark.slow
def test_printing_is_cntks_and_an_interrupted_bar_goes(outputs: list[list[Any]]) -> None:
    assert printed(outputs[3]) == "Composite(x: Tensor[2]) -> Tensor[2]\n"
    assert printed(outputs[5]) == "False False\n"
    assert [page for page in shown(outputs[5], "text/html") if "<progress" in page] == []
    assert [one.ename for one in outputs[5] if one.output_type == "error"] == ["KeyboardInterrupt"]
