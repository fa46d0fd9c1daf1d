"""``cntk new``: a program that trains a network, with data and a test, to start from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cntk.plugins.progress.png import png

from .arguments import Parser
from .templates import filled, text_of, write_new

TEMPLATES = "project-templates"


class Kind(NamedTuple):
    """What a program trains: in words, what its data are, the file they are in, and what to install."""

    title: str
    data: str
    file: str
    requirements: str = "opencntk"


KINDS = {
    "classifier": Kind(
        "A classifier of the rows of a table",
        "`flowers.csv` has 150 irises that R. A. Fisher published in 1936. Put a table of your own in its place: a column with the "
        "classes, all others with numbers.",
        "flowers.csv",
    ),
    "sequence-tagger": Kind(
        "A tagger of the words of sentences",
        "`sentences.txt` has sentences that were made up. Put sentences of your own in its place: a word and its tag a line, an empty line "
        "between sentences.",
        "sentences.txt",
    ),
    "images": Kind(
        "A classifier of images",
        "`images` has 400 handwritten digits of E. Alpaydin and C. Kaynak, 1998 (UCI Machine Learning Repository). Put images of your own "
        "in its place, of any size: a folder a class.",
        "digits.txt",
        "opencntk[image]",
    ),
}
"""By the name of the folder with its templates."""

FILES = {
    "project/README.md.in": "README.md",
    "project/requirements.txt.in": "requirements.txt",
    "project/gitignore.in": ".gitignore",
    "$kind/train.py.in": "train.py",
    "$kind/test_train.py.in": "test_train.py",
}
"""The path of each template's file in the folder."""


def run(arguments: Sequence[str]) -> int:
    """Make a program that trains a network: the code, data to begin with, and a test.

    Args:
        arguments: the name of a folder, ``--kind``, ``--json``, or ``--help``.

    Returns:
        0.

    Raises:
        FileExistsError: there is something in the folder.
        OSError: it cannot be written.

    >>> import pathlib, tempfile
    >>> from cntk.commands.new import run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run([str(pathlib.Path(folder, "flowers")), "--kind", "classifier"])
    A classifier of the rows of a table, in ...flowers:
        README.md
        requirements.txt
        .gitignore
        train.py
        test_train.py
        flowers.csv
    next:
        cd ...flowers
        python train.py
    0
    """
    parser = Parser(prog="cntk new", description="Make a program that trains a network, with data and a test.")
    parser.add_argument("folder", type=Path, help="where to put it; its last part is the name of the program")
    parser.add_argument("--kind", choices=KINDS, default="classifier", help="what the network does, %(default)s where nothing is said")
    parser.add_argument("--json", action="store_true", help="print what was made for programs")
    options = parser.parse_args(arguments)
    files = made(options.folder.resolve().name, options.kind)
    write_new(options.folder, files)
    if options.json:
        print(json.dumps({"folder": str(options.folder), "kind": options.kind, "files": list(files)}, indent=2))
        return 0
    print(f"{KINDS[options.kind].title}, in {options.folder}:")
    shown = [path for path in files if not path.startswith("images/")]
    print(*(f"    {path}" for path in shown), sep="\n")
    if len(files) > len(shown):
        print(f"    images/ ({len(files) - len(shown)} images)")
    install = [] if KINDS[options.kind].requirements == "opencntk" else ["pip install -r requirements.txt"]
    print("next:", f"cd {options.folder}", *install, "python train.py", sep="\n    ")
    return 0


def made(name: str, kind: str) -> dict[str, bytes]:
    """The files of a program by their paths in its folder.

    Args:
        name: what it is called.
        kind: one of :data:`KINDS`.
    """
    values = {"name": name, "kind": kind, **KINDS[kind]._asdict()}
    files = {path: text.encode() for path, text in filled(TEMPLATES, FILES, values).items()}
    data = text_of(TEMPLATES, kind, KINDS[kind].file)
    return files | (_digits(data) if kind == "images" else {KINDS[kind].file: data.encode()})


def _digits(text: str) -> dict[str, bytes]:
    """The images in a text, a line an image: its class, and its 64 pixels from 0 for black to g for white."""
    images = {}
    for number, line in enumerate(text.splitlines()):
        label, pixels = line.split()
        grey = np.array([int(pixel, 17) for pixel in pixels]) * 255 // 16
        images[f"images/{label}/{number:03}.png"] = png(grey.astype(np.uint8).reshape(8, 8, 1))
    return images
