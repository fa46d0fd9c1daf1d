"""The site that ``make site`` has made: all pages are in its navigation, links lead somewhere, nothing comes from elsewhere."""

from __future__ import annotations

import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "site"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "_static" not in path.parts)
MADE_BY_SPHINX = {"genindex.html", "py-modindex.html", "search.html"}
SIGNATURES = ROOT / "tests" / "data" / "signatures.txt"

FOR_OLD_PROGRAMS = {"cntk.cntk_py", "cntk.tests.test_utils"}
"""Modules of CNTK's engine and tests, most of whose names are there under others."""

pytestmark = pytest.mark.skipif(not PAGES, reason="make site makes what is tested")

LOADED = {"audio": "src", "embed": "src", "iframe": "src", "img": "src", "object": "data", "script": "src", "source": "src", "video": "src"}
"""Attributes by which elements load something."""

FETCHED = re.compile(r"(?:url\(|@import|\bfetch\(|\bimport\(?)\s*['\"]?(?:https?:)?//")
"""What style sheets and programs load from elsewhere."""


class Page(HTMLParser):
    """The anchors of a page, its links, what it loads, and the links of its navigation."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.navigation: list[str] = []
        self._in_navigation = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "div" and (self._in_navigation or "sidebar-tree" in given.get("class", "")):
            self._in_navigation += 1
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
            if self._in_navigation:
                self.navigation.append(given["href"])
        if tag == "link" and given.get("rel") not in ("index", "search", "next", "prev", "canonical"):
            self.loads.append(given.get("href", ""))
        if given.get(LOADED.get(tag, "")):
            self.loads.append(given[LOADED[tag]])

    def handle_endtag(self, tag: str) -> None:
        if tag == "div" and self._in_navigation:
            self._in_navigation -= 1


@cache
def page(name: str) -> Page:
    return Page((SITE / name).read_text(encoding="utf-8"))


def target(origin: str, link: str) -> tuple[str, str]:
    """The file in the site that a link leads to, and the anchor."""
    parts = urlsplit(link)
    path = (SITE / origin).parent / unquote(parts.path) if parts.path else SITE / origin
    return path.resolve().relative_to(SITE).as_posix(), unquote(parts.fragment)


@cache
def search_index() -> dict[str, Any]:
    text = (SITE / "searchindex.js").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    return found


def test_the_navigation_lists_every_page() -> None:
    listed = {target("index.html", link)[0] for link in page("index.html").navigation}
    sources = {
        path.relative_to(ROOT / "build" / "site-sources").with_suffix(".html").as_posix(): path.read_text(encoding="utf-8")
        for path in (ROOT / "build" / "site-sources").rglob("*.*")
        if path.suffix in (".md", ".rst", ".py", ".ipynb")
    }
    linked_only = {name for name, text in sources.items() if text.startswith("---\norphan: true")}
    assert set(PAGES) - listed - MADE_BY_SPHINX - linked_only - {"index.html"} == set()


@pytest.mark.parametrize("name", PAGES)
def test_links_and_anchors_lead_somewhere(name: str) -> None:
    missing = []
    for link in page(name).links:
        if urlsplit(link).scheme or link.startswith("//") or link == "#":
            continue
        path, anchor = target(name, link)
        if not (SITE / path).is_file() or (anchor and path.endswith(".html") and anchor not in page(path).anchors):
            missing.append(link)
    assert missing == []


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_loaded_from_elsewhere(name: str) -> None:
    outside = [load for load in page(name).loads if urlsplit(load).netloc]
    assert outside == []
    assert not FETCHED.search((SITE / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", sorted(path for kind in ("css", "js") for path in SITE.rglob(f"*.{kind}")), ids=lambda path: path.name)
def test_style_sheets_and_programs_load_nothing_from_elsewhere(file: Path) -> None:
    assert FETCHED.search(file.read_text(encoding="utf-8")) is None


@pytest.mark.parametrize("file", sorted(SITE.rglob("*.svg")), ids=lambda path: path.name)
def test_pictures_load_nothing_from_elsewhere(file: Path) -> None:
    assert re.search(r"<(?:image|use|script)[^>]*href=\"(?:https?:)?//|url\(['\"]?(?:https?:)?//", file.read_text(encoding="utf-8")) is None


def test_the_search_knows_every_public_name() -> None:
    objects = search_index()["objects"]
    known = {f".{prefix}.{entry[4]}" for prefix, entries in objects.items() for entry in entries}
    ends = {path[place:] for path in known for place, letter in enumerate(path) if letter == "."}
    claimed = [
        (part.splitlines()[0], line.strip().partition("(")[0])
        for part in SIGNATURES.read_text(encoding="utf-8").split("\n\n")
        for line in part.splitlines()[1:]
        if part.splitlines()[0] not in FOR_OLD_PROGRAMS
    ]
    assert [f"{module}.{name}" for module, name in claimed if "__" not in name and f".{name}" not in ends] == []


def test_every_page_has_a_title_of_its_own() -> None:
    index = search_index()
    assert all(index["titles"])
    assert len(set(index["docnames"])) == len(index["docnames"])


@pytest.mark.parametrize("name", ["from_keras.html", "from_pytorch.html"])
def test_programs_stand_side_by_side(name: str) -> None:
    assert "side-by-side" in (SITE / name).read_text(encoding="utf-8")


def test_names_in_code_lead_to_the_reference() -> None:
    assert "reference/cntk.learners.html#cntk.adam" in page("from_pytorch.html").links
    assert "reference/operators/product.html#cntk.times" in page("functions.html").links
