"""Lays out the sources of the site: ``python docs/site/sources.py build/site-sources``.

The pages are those of ``docs``, in the order of ``docs/index.md``, whose headings are those of the navigation.  Beside them are the
reference, the notebooks, the programs that pages link to, and what is told to contributors.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import reference

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
NOTEBOOKS = ROOT / "examples" / "notebooks"

LINK = re.compile(r"(?<=\]\()(?P<path>[^)#:\s]+)(?P<anchor>#[^)]*)?(?=\))")
SECTION = re.compile(r"^## (?P<title>.+?)$(?P<entries>.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
ENTRY = re.compile(r"^\* \[(?P<title>[^\]]+)\]\((?P<path>[^)#]+)\)", re.MULTILINE)
MADE = {"The first hour": ["notebooks/index"], "Reference": ["reference/index"]}
"""Pages that are made here, by the heading of the index below which they stand, behind the others."""

LANGUAGES = {".py": "python", ".yaml": "yaml", "": "docker"}


def lay_out(place: Path) -> None:
    """Write all sources, and remove what is there of older ones; files that stay as they are keep their times."""
    written = set()
    for path, content in _files():
        file = place / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_bytes() != content:
            file.write_bytes(content)
        written.add(file)
    for file in place.rglob("*"):
        if file.is_file() and file not in written:
            file.unlink()


def navigation(index: str) -> dict[str, list[str]]:
    """The pages below each heading of the index, without ``.md``."""
    found = {section["title"]: [entry["path"] for entry in ENTRY.finditer(section["entries"])] for section in SECTION.finditer(index)}
    return {title: paths for title, paths in found.items() if paths}


def _files() -> Iterator[tuple[str, bytes]]:
    """What the site is made of, by path."""
    notebooks = dict(_notebooks())
    for path, text in (*_pages(bool(notebooks)).items(), *reference.sources()):
        yield path, text.encode()
    yield from notebooks.items()
    for file in sorted(DOCS.rglob("*")):
        if file.suffix in (".svg", ".png") and "site" not in file.relative_to(DOCS).parts:
            yield _staged(file), file.read_bytes()


def _pages(with_notebooks: bool) -> dict[str, str]:
    """The pages of ``docs``, and all files that they link to, and so on."""
    found: dict[str, str] = {}
    files = sorted(DOCS.glob("*.md"))
    for file in files:
        text, linked = _with_links(file)
        found[_page(file)] = text if file.suffix == ".md" else _shown(file, text)
        files += [other for other in linked if other not in files]
    made = MADE if with_notebooks else {title: [page for page in pages if "notebooks" not in page] for title, pages in MADE.items()}
    sections = navigation(found["index.md"])
    for title, pages in made.items():
        sections[title] += pages
    found["index.md"] += "".join(_toctree(title, pages) for title, pages in sections.items())
    known = {page for pages in sections.values() for page in pages} | {"index.md"}
    return {path: text if path in known else f"---\norphan: true\n---\n\n{text}" for path, text in found.items()}


def _with_links(file: Path) -> tuple[str, list[Path]]:
    """The text of a file, with links to where files are in the site, and the files that it links to."""
    text, linked = file.read_text(encoding="utf-8"), []

    def replaced(match: re.Match[str]) -> str:
        target = (file.parent / match["path"]).resolve()
        if not target.is_file():
            return match[0]
        if target.suffix not in (".svg", ".png"):
            linked.append(target)
        path = _staged(target) if target.suffix in (".svg", ".png") else _page(target)
        return os.path.relpath(path, Path(_page(file)).parent) + (match["anchor"] or "")

    return (LINK.sub(replaced, text), linked) if file.suffix == ".md" else (text, [])


def _staged(file: Path) -> str:
    return str(file.relative_to(DOCS if file.is_relative_to(DOCS) else ROOT))


def _page(file: Path) -> str:
    return _staged(file) if file.suffix == ".md" else f"{_staged(file).replace('.', '-')}.md"


def _shown(file: Path, text: str) -> str:
    return f"# {file.name}\n\nThe file `{file.relative_to(ROOT)}`.\n\n````{LANGUAGES[file.suffix]}\n{text}````\n"


def _notebooks() -> Iterator[tuple[str, bytes]]:
    """The notebooks, and a page of them: with their results where these have been kept, else as they are written."""
    written = sorted(NOTEBOOKS.glob("*.py"))
    for file in written:
        made = file.with_suffix(".ipynb")
        shown = made if made.exists() else file
        yield f"notebooks/{shown.name}", shown.read_bytes()
    if written:
        names = "".join(f"{file.stem}\n" for file in written)
        yield "notebooks/index.md", f"# Notebooks\n\n```{{toctree}}\n:maxdepth: 1\n\n{names}```\n".encode()


def _toctree(title: str, pages: list[str]) -> str:
    return f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "".join(f"{page.removesuffix('.md')}\n" for page in pages) + "```\n"


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]))
