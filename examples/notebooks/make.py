"""Makes a Jupyter notebook of a script, and runs it, so that it opens with its outputs.

python examples/notebooks/make.py examples/notebooks/01_tour.py build/notebooks/01_tour.ipynb

The first picture is written beside the notebook.  `make notebooks` does this for all scripts that have changed.
"""

from __future__ import annotations

import argparse
import base64
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient

KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
SECONDS = 600
"""What a cell may take."""


def executed(script: Path) -> Any:
    """The notebook of a script, with the outputs of its cells; it runs in a folder of its own.

    Raises:
        CellExecutionError: a cell raised an error, or a claim of the notebook does not hold.
    """
    notebook = jupytext.read(script)
    notebook.metadata = {"kernelspec": KERNEL}
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    return notebook


def first_picture(notebook: Any) -> bytes:
    """The first picture in a notebook's outputs, a PNG file."""
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", ()))
    return base64.b64decode(next(output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Make a notebook of a script, with outputs.")
    parser.add_argument("script", type=Path)
    parser.add_argument("notebook", type=Path)
    options = parser.parse_args(arguments)

    notebook = executed(options.script)
    options.notebook.parent.mkdir(parents=True, exist_ok=True)
    options.notebook.with_suffix(".png").write_bytes(first_picture(notebook))
    nbformat.write(notebook, options.notebook)


if __name__ == "__main__":
    main()
