"""Attributes that are computed when they are first asked for."""

from __future__ import annotations

import threading
from typing import Any

from cntk.core.common.cached_property import cached_property


class Counted:
    """Counts how often its attribute is computed."""

    def __init__(self) -> None:
        self.calls = 0

    @cached_property
    def value(self) -> Any:
        """What is computed."""
        self.calls += 1
        return object()


def test_it_is_computed_once_and_when_it_is_asked_for() -> None:
    counted = Counted()
    assert counted.calls == 0
    assert counted.value is counted.value
    assert counted.calls == 1


def test_each_object_has_its_own() -> None:
    assert Counted().value is not Counted().value


def test_deleting_it_has_it_computed_anew() -> None:
    counted = Counted()
    before = counted.value
    del counted.value
    assert counted.value is not before
    assert counted.calls == 2


def test_the_class_shows_the_property_and_its_docstring() -> None:
    assert isinstance(Counted.value, cached_property)
    assert Counted.value.__doc__ == "What is computed."


def test_threads_that_ask_at_the_same_time_get_the_same_object() -> None:
    both = threading.Barrier(2, timeout=30)

    class Slow:
        @cached_property
        def value(self) -> Any:
            both.wait()
            return object()

    slow, found = Slow(), []
    threads = [threading.Thread(target=lambda: found.append(slow.value)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert found[0] is found[1] is slow.value
