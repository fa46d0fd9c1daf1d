"""Registries: who has a name, what is imported when, and what is said of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cntk.core.extension.registry import CLASS, FUNCTION, INSTANCE, Registry, TakenError, one_line


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    """Writes a module that can be imported."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name: str, text: str) -> str:
        monkeypatch.delitem(sys.modules, name, raising=False)
        (tmp_path / f"{name}.py").write_text(text, "utf-8")
        return name

    return write


def test_it_is_imported_when_it_is_asked_for_and_once(module: Callable[[str, str], str]) -> None:
    name, registry = module("registered_lazily", "thing = object()"), Registry("op")
    registry.add("thing", f"{name}:thing", "mine")
    assert "thing" in registry
    assert name not in sys.modules
    found = registry.get("thing")
    del sys.modules[name]
    assert registry.get("thing") is found


def test_names_come_sorted_whatever_the_order() -> None:
    registry = Registry("op")
    for name in ("b", "c", "a"):
        registry.add(name, len, "mine")
    assert list(registry) == registry.names() == ["a", "b", "c"]
    assert len(registry) == 3


def test_a_name_belongs_to_one_plugin() -> None:
    registry = Registry("op")
    registry.add("plus", len, "mine")
    for owner in ("mine", "yours"):
        with pytest.raises(TakenError, match=f"op 'plus' is registered by mine and by {owner}; a name belongs to one plugin"):
            registry.add("plus", max, owner)
    assert registry.get("plus") is len


def test_where_names_are_stacked_the_last_one_counts_and_the_others_stay_behind() -> None:
    registry = Registry("kernel", stacked=True)
    for target, owner in ((len, "first"), (max, "second"), (min, "third")):
        registry.add("a", target, owner)
    assert (registry.get("a"), registry.owner("a")) == (min, "third")
    assert [registry.behind("a", target) for target in (min, max, len, sum)] == [max, len, None, None]
    with pytest.raises(TakenError):
        registry.add("a", sum, "first")
    registry.remove("a", "second")
    assert registry.behind("a", min) is len
    registry.remove_all_of("third")
    assert registry.get("a") is len
    registry.remove_all_of("first")
    assert "a" not in registry
    assert registry.behind("a", len) is None


def test_taking_back_leaves_the_names_of_others() -> None:
    registry = Registry("op")
    registry.add("a", len, "mine")
    registry.add("b", max, "yours")
    registry.remove("a", "yours")
    assert registry.names_of("mine") == ["a"]
    registry.remove_all_of("mine")
    assert registry.names() == ["b"]


@pytest.mark.parametrize(
    ("wanted", "good", "bad"), [(FUNCTION, len, 3), (CLASS, int, len), (INSTANCE, [], list)], ids=["function", "class", "instance"]
)
def test_what_does_not_fit_is_refused_at_once_or_when_it_is_imported(
    wanted: Any, good: Any, bad: Any, module: Callable[[str, str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry("thing", wanted)
    registry.add("good", good, "mine")
    with pytest.raises(TypeError, match=f"thing 'bad' of mine: expected {wanted.words}, got"):
        registry.add("bad", bad, "mine")
    assert registry.names() == ["good"]
    name = module("registered_wrongly", "")
    monkeypatch.setattr(__import__(name), "bad", bad, raising=False)
    registry.add("late", f"{name}:bad", "mine")
    with pytest.raises(TypeError, match=f"thing 'late' of mine: expected {wanted.words}, got"):
        registry.get("late")


@pytest.mark.parametrize("text", ["module", "module:", ":name", ""])
def test_texts_that_are_no_import_strings(text: str) -> None:
    with pytest.raises(ValueError, match="op 'a' of mine: expected an import string 'module:object', got"):
        Registry("op").add("a", text, "mine")


def test_a_name_that_is_not_there() -> None:
    registry = Registry("op")
    registry.add("plus", len, "mine")
    with pytest.raises(KeyError, match="no op is called 'minus'; registered are plus"):
        registry.get("minus")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("raise ValueError('a\\n  b')", "ValueError: a b"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("", "AttributeError: module 'registered_broken' has no attribute 'thing'"),
    ],
)
def test_what_cannot_be_imported_says_whose_it_is_and_why(text: str, complaint: str, module: Callable[[str, str], str]) -> None:
    name, registry = module("registered_broken", text), Registry("op")
    registry.add("a", f"{name}:thing", "mine")
    registry.add("b", len, "mine")
    with pytest.raises(ImportError, match=f"^op 'a' of mine cannot be imported from '{name}:thing': {complaint}"):
        registry.get("a")
    assert len(registry.problems("mine")) == 1
    assert registry.problems("yours") == []


def test_a_part_that_cannot_be_used_here_says_so_by_an_error_of_its_own(module: Callable[[str, str], str]) -> None:
    name = module("registered_elsewhere", "class Unusable(ImportError):\n    pass\n\nraise Unusable('not here')")
    registry = Registry("op")
    registry.add("a", f"{name}:thing", "mine")
    with pytest.raises(ImportError, match=r"^not here$"):
        registry.get("a")


def test_what_a_place_holds_is_imported_together(module: Callable[[str, str], str]) -> None:
    names = [module(name, "thing = 1") for name in ("registered_a", "registered_ab")]
    registry = Registry("op")
    for name in names:
        registry.add(name, f"{name}:thing", "mine")
    registry.import_from("registered_a")
    assert [name in sys.modules for name in names] == [True, False]


def test_errors_in_one_line() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert one_line(KeyError()) == "KeyError"
    assert one_line(Mute()) == "Mute: (without a message)"
    assert one_line(ImportError("partially initialized module 'cntk'")).endswith("import what uses cntk inside functions")
