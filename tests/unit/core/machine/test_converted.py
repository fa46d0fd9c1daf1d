"""Loops for arguments of kinds that there is no machine code for, where none can be compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)

from cntk.backends.fused import csr, folds
from cntk.commands.compile import PACKAGES
from cntk.core.extension.compiled import Unusable
from cntk.core.machine import loops, precompile
from cntk.core.machine.converted import can_convert


@pytest.fixture
def only_brought(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is code for the kinds of arguments that a package brings it along for, and none other."""
    address_of, brought = loops.address_of, precompile.loops(PACKAGES).values()

    def address_of_brought(function: Any, kinds: Any) -> int:
        if list(kinds) not in [loop.kinds(is_double) for loop in brought if loop.function is function for is_double in (False, True)]:
            raise Unusable(f"there is no machine code for loop '{function.__qualname__}'")
        return int(address_of(function, kinds))

    monkeypatch.setattr(loops, "address_of", address_of_brought)


def fresh(loop: Any) -> Any:
    return loops.Loop(loop.function, loop.signature)


@pytest.mark.parametrize("is_bound", [False, True])
@pytest.mark.usefixtures("only_brought")
def test_arrays_that_lie_apart_are_copied_and_written_to(is_bound: bool) -> None:
    x = np.arange(60, dtype=np.float32).reshape(5, 12)[:, ::2]
    out = np.zeros(10, np.float32)[::2]
    total = fresh(folds.total)
    if is_bound:
        total.bound(False, x, out, 1.0)()
    else:
        total.run(False, x, out, 1.0)
    np.testing.assert_array_equal(out, x.sum(axis=1))


@pytest.mark.usefixtures("only_brought")
def test_one_array_given_twice_stays_one() -> None:
    from cntk.backends.fused import distributions

    x = np.arange(24, dtype=np.float64).reshape(4, 6)[:, ::2]
    wanted = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    fresh(distributions.softmax).run(False, x, x)
    np.testing.assert_allclose(x, wanted, rtol=1e-12)


@pytest.mark.usefixtures("only_brought")
def test_whole_numbers_of_another_size_are_converted() -> None:
    rows = np.array([2.0, 3.0]), np.array([1, 0]), np.array([0, 1, 2])
    out = np.empty((2, 2))
    fresh(csr.multiply).run(False, *rows, np.eye(2), out)
    np.testing.assert_array_equal(out, [[0, 2], [3, 0]])
    too_large = rows[0], np.array([1, 2**40]), rows[2]
    with pytest.raises(OverflowError, match="an index of int64 is too large"):
        fresh(csr.multiply).run(False, *too_large, np.eye(2), out)


@pytest.mark.usefixtures("only_brought")
def test_what_cannot_be_converted_is_refused() -> None:
    with pytest.raises(ImportError, match="there is no machine code for loop 'total'"):
        fresh(folds.total).run(False, np.ones((2, 2), np.int64), np.ones(2, np.int64), 1.0)


@pytest.mark.parametrize(
    ("kinds", "others", "can"),
    [
        (["<f4:1:A"], ["<f4:1:C"], True),
        (["<f4:1:C"], ["<f8:1:C"], False),
        (["<f4:2:C"], ["<f4:1:C"], False),
        (["<i8:1:C"], ["<i4:1:C"], True),
        (["<u8:1:C"], ["<i8:1:C"], False),
        (["q", "?"], ["q", "q"], True),
        (["(2)"], ["(3)"], False),
        (["q"], ["q", "q"], False),
    ],
)
def test_which_arguments_become_others(kinds: list[str], others: list[str], can: bool) -> None:
    assert can_convert(kinds, others) == can
