"""Services that lower packages need from higher ones."""

from __future__ import annotations

import pytest

from cntk.core.common.services import Services, services


def test_a_service_is_called_by_its_name() -> None:
    made = Services()
    made.provide(apply=lambda op: f"applied {op}", save=len)
    assert (made.apply("plus"), made.save("abc")) == ("applied plus", 3)


def test_a_service_that_nobody_asks_for_is_refused() -> None:
    made = Services()
    with pytest.raises(TypeError, match="there is no service 'aply'; expected one of apply, start, evaluate, "):
        made.provide(aply=len)
    assert not hasattr(made, "aply")


def test_the_package_provides_all_of_them() -> None:
    assert [name for name in Services.__annotations__ if not callable(getattr(services, name, None))] == []
