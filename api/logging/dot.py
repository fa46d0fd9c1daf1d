"""Pictures of graphs in the DOT language, and drawn by Graphviz."""

from __future__ import annotations

import shutil
import subprocess

from cntk.logging.picture import Picture

STYLES = {
    "block": 'shape=box, style="filled,bold", fillcolor="#d8d8d8"',
    "constant": 'shape=box, style=filled, fillcolor="#cfe4f5"',
    "function": 'shape=box, style="filled,rounded", fillcolor="#eeeeee"',
    "input": 'shape=ellipse, style=filled, fillcolor="#ffe9a8"',
    "number": "shape=plaintext",
    "output": 'shape=ellipse, style=bold, fillcolor="#ffffff"',
    "parameter": 'shape=box, style=filled, fillcolor="#cdeccd"',
    "placeholder": 'shape=ellipse, style="filled,dashed", fillcolor="#eeeeee"',
}


def dot_text(picture: Picture) -> str:
    """The picture in the DOT language."""
    boxes = [f"  {i} [label={_quoted(box.text)}, {STYLES[box.kind]}];" for i, box in enumerate(picture.boxes)]
    arrows = [f"  {arrow.start} -> {arrow.end} [label={_quoted(arrow.text)}];" for arrow in picture.arrows]
    head = ["digraph network_graph {", '  node [fontname="sans-serif", fontsize=12];', '  edge [fontname="sans-serif", fontsize=9];']
    return "\n".join([*head, *boxes, *arrows, "}", ""])


def has_graphviz() -> bool:
    """Whether the program ``dot`` is on the path."""
    return shutil.which("dot") is not None


def draw(picture: Picture, kind: str) -> bytes:
    """Draw the picture with Graphviz.

    Args:
        kind: ``'svg'``, ``'png'`` or ``'pdf'``.

    Returns:
        Content of a file of that kind.

    Raises:
        RuntimeError: the program ``dot`` failed; the message is its own.
    """
    done = subprocess.run(["dot", f"-T{kind}"], input=dot_text(picture).encode(), capture_output=True)
    if done.returncode:
        raise RuntimeError(
            f"plot: Graphviz's dot -T{kind} failed with status {done.returncode}: {done.stderr.decode(errors='replace').strip()}"
        )
    return done.stdout


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
