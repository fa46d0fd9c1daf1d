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
MADE = {"Reference": "reference/index"}
"""Pages that are made here, by the heading of the index below which they stand, before the others."""

PICTURES = (".png", ".svg")
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
    for path, text in (*_pages().items(), *reference.sources()):
        yield path, text.encode()
    for file in _notebooks():
        yield _page(file), _with_links(file)[0].encode()
    for file in sorted([*DOCS.rglob("*.*"), *NOTEBOOKS.rglob("*.*")]):
        if file.suffix in PICTURES:
            yield _staged(file), file.read_bytes()


def _pages() -> dict[str, str]:
    """The pages of ``docs``, and all files that they link to, and so on."""
    found: dict[str, str] = {}
    files = sorted(DOCS.glob("*.md"))
    for file in files:
        text, linked = _with_links(file)
        found[_page(file)] = text if file.suffix == ".md" else _shown(file, text)
        files += [other for other in linked if other not in files and other not in _notebooks()]
    sections = navigation(found["index.md"])
    for title, page in MADE.items():
        sections[title].insert(0, page)
    found["index.md"] += "".join(_toctree(pages, title) for title, pages in sections.items())
    known = {page for pages in sections.values() for page in pages} | {"index.md"}
    found = {path: text if path in known else f"---\norphan: true\n---\n\n{text}" for path, text in found.items()}
    if (listing := _page(NOTEBOOKS / "README.md")) in found:
        found[listing] += _toctree([_page(file).removeprefix("examples/notebooks/") for file in _notebooks()])
    return found


def _with_links(file: Path) -> tuple[str, list[Path]]:
    """The text of a file, with links to where files are in the site, and the files that it links to."""
    text, linked = _shown_of(file).read_text(encoding="utf-8"), []

    def replaced(match: re.Match[str]) -> str:
        target = (file.parent / match["path"]).resolve()
        if not target.is_file():
            return match[0]
        if target.suffix not in PICTURES:
            linked.append(target)
        path = _staged(target) if target.suffix in PICTURES else _page(target)
        return os.path.relpath(path, Path(_page(file)).parent) + (match["anchor"] or "")

    return (LINK.sub(replaced, text), linked) if file.suffix == ".md" or file in _notebooks() else (text, [])


def _staged(file: Path) -> str:
    return str(file.relative_to(DOCS if file.is_relative_to(DOCS) else ROOT))


def _page(file: Path) -> str:
    """Where the page of a file is: it keeps its place, and all but notebooks and pages have ``.md`` behind it."""
    if file in _notebooks():
        return str(Path(_staged(file)).with_suffix(_shown_of(file).suffix))
    return _staged(file) if file.suffix == ".md" else f"{_staged(file).replace('.', '-')}.md"


def _shown(file: Path, text: str) -> str:
    return f"# {file.name}\n\nThe file `{file.relative_to(ROOT)}`.\n\n````{LANGUAGES[file.suffix]}\n{text}````\n"


def _notebooks() -> list[Path]:
    """The notebooks as they are written."""
    return sorted(NOTEBOOKS.glob("[0-9]*.py"))


def _shown_of(file: Path) -> Path:
    """What is shown of a file: of a notebook that with its results, where ``make notebooks`` has kept them; else the file itself."""
    made = ROOT / "build" / "notebooks" / f"{file.stem}.ipynb"
    return made if file.parent == NOTEBOOKS and made.exists() else file


def _toctree(pages: list[str], title: str = "") -> str:
    options = "".join(f":{option}\n" for option in ("hidden:", f"caption: {title}" if title else "") if option)
    return f"\n```{{toctree}}\n{options}\n" + "".join(f"{_document(page)}\n" for page in pages) + "```\n"


def _document(page: str) -> str:
    return re.sub(r"\.(?:md|py|ipynb)$", "", page)


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]))
