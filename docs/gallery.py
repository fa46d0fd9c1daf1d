"""Makes the pictures of docs/gallery.md and docs/first_hour.md, in docs/gallery, by running these pages: ``python docs/gallery.py``."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).resolve().parent
FOLDER = DOCS / "gallery"
PAGES = ("first_hour.md", "gallery.md")
LARGEST = 60_000
"""Bytes of a picture at most."""


def shown(page: str) -> list[str]:
    """The names of the pictures in a page."""
    return re.findall(r"\]\(gallery/([\w.]+)\)", (DOCS / page).read_text(encoding="utf-8"))


def run(page: str) -> None:
    """Run the examples of a page in the current folder."""
    text = re.sub("^```.*$", "", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    if runner.run(doctest.DocTestParser().get_doctest(text, {}, page, page, 0)).failed:
        raise SystemExit(f"{page}: an example gives something else")


def keep(name: str) -> None:
    """Bring a picture from the current folder to that of pictures, with no more colours than it needs."""
    if name.endswith(".png"):
        Image.open(name).convert("RGB").quantize(128, Image.Quantize.MAXCOVERAGE).save(name, optimize=True)
    if (size := os.path.getsize(name)) > LARGEST:
        raise SystemExit(f"{name} has {size} bytes; at most {LARGEST} are allowed")
    shutil.copy(name, FOLDER / name)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    os.environ["MPLBACKEND"] = "Agg"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run([sys.executable, str(DOCS.parent / "examples" / "mnist.py"), "--epochs", "4", "--output", "digits.png"], check=True)
        for page in PAGES:
            run(page)
        for name in sorted({name for page in PAGES for name in shown(page)}):
            keep(name)


if __name__ == "__main__":
    main()
