"""Files made wrong: byte by byte, and as dictionaries whose values are exchanged for others."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from cntk.plugins.formats.wire import FileAxis, NDShape, read_dictionary, write_dictionary

MODULES = ("os", "subprocess", "builtins", "this", "antigravity", "decoy", "__main__", "cntk.cntk_py", "pickle", "../decoy", "")
HUGE = (-(2**31), -1, 0, 1, 2**31 - 1, 2**31, 2**40, 2**63 - 1, 2**64 - 1)
VARINTS = (b"\x00", b"\x7f", b"\xff\x01", b"\x80" * 9 + b"\x01", b"\xff" * 9 + b"\x01", b"\xff" * 12, b"\xff\xff\xff\xff\x07")


def mutated(seeds: list[bytes], chance: random.Random, structured: bool) -> bytes:
    """One of the seeds, wrong in one to a few ways."""
    data = chance.choice(seeds)
    if structured and chance.random() < 0.6:
        return _as_dictionary(data, seeds, chance)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        data = chance.choice(BYTEWISE)(data, seeds, chance)
    return data


# ---- bytes ---------------------------------------------------------------------------------------


def _flip(data: bytes, seeds: list[bytes], chance: random.Random) -> bytes:
    at = _place(data, chance)
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :] if data else data


def _set(data: bytes, seeds: list[bytes], chance: random.Random) -> bytes:
    at = _place(data, chance)
    return data[:at] + bytes([chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))]) + data[at + 1 :]


def _truncate(data: bytes, seeds: list[bytes], chance: random.Random) -> bytes:
    return data[: _place(data, chance)]


def _cut_out(data: bytes, seeds: list[bytes], chance: random.Random) -> bytes:
    at = _place(data, chance)
    return data[:at] + data[at + chance.randrange(64) :]


def _splice(data: bytes, seeds: list[bytes], chance: random.Random) -> bytes:
    other = chance.choice(seeds)
    at, begin = _place(data, chance), _place(other, chance)
    taken = other[begin : begin + chance.choice((4, 32, 256, 2048))]
    return data[:at] + taken + data[at + chance.choice((0, len(taken))) :]


def _length_lie(data: bytes, seeds: list[bytes], chance: random.Random) -> bytes:
    """A number in the place of a field's length."""
    at = data.find(bytes([chance.choice((0x0A, 0x12, 0x1A, 0x22, 0x42, 0x4A, 0x5A, 0x62, 0x6A))]), _place(data, chance)) + 1
    return data[:at] + chance.choice(VARINTS) + data[at + 1 :]


def _append(data: bytes, seeds: list[bytes], chance: random.Random) -> bytes:
    return data + chance.choice((chance.randbytes(16), data[: _place(data, chance)], bytes(chance.randrange(300))))


def _random(data: bytes, seeds: list[bytes], chance: random.Random) -> bytes:
    return data[: chance.choice((0, 3, 8, 40))] + chance.randbytes(chance.choice((0, 1, 7, 100, 1000)))


BYTEWISE: tuple[Callable[[bytes, list[bytes], random.Random], bytes], ...] = (
    _flip, _flip, _set, _set, _truncate, _cut_out, _splice, _splice, _length_lie, _length_lie, _append, _random,
)  # fmt: skip


def _place(data: bytes, chance: random.Random) -> int:
    return chance.randrange(max(len(data), 1))


# ---- dictionaries --------------------------------------------------------------------------------


def _as_dictionary(data: bytes, seeds: list[bytes], chance: random.Random) -> bytes:
    tree = read_dictionary(data)
    for _ in range(chance.choice((1, 1, 2, 3, 8))):
        places = list(_places(tree))
        if places:
            _change(tree, places, chance)
    try:
        return b"".join(write_dictionary(tree))
    except (TypeError, ValueError, RecursionError):  # what no file can say
        return _splice(data, seeds, chance)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a tree with every key or index into it."""
    stack = [value]
    while stack:
        held = stack.pop()
        for key, one in held.items() if isinstance(held, dict) else enumerate(held):
            yield held, key
            if isinstance(one, (dict, list)):
                stack.append(one)


def _change(tree: Any, places: list[tuple[Any, Any]], chance: random.Random) -> None:
    """Change one value of a tree; those of the same kind and key are likely to be exchanged, which gives cycles and equal uids."""
    held, key = chance.choice(places)
    value, what = held[key], chance.randrange(10)
    if what == 0:
        held[key] = _anything(chance)
    elif what == 1:
        del held[key]
    elif what == 2 and isinstance(held, list):
        held.insert(chance.randrange(len(held) + 1), value)
    elif what == 3:
        other, place = chance.choice(places)
        held[key], other[place] = deepcopy(other[place]), deepcopy(value)
    elif what in (4, 5):
        alike = [(other, place) for other, place in places if place == key or type(other[place]) is type(value)]
        other, place = chance.choice(alike)
        held[key] = deepcopy(other[place])
    elif what == 6:
        held, key = chance.choice([(other, place) for other, place in places if isinstance(other[place], (int, np.integer))] or places)
        held[key] = np.uint64(chance.randrange(100) if chance.random() < 0.5 else chance.choice(HUGE) % 2**64)
    elif what == 7 and isinstance(value, (NDShape, np.ndarray)):
        huge = NDShape(chance.choice(HUGE) for _ in range(chance.randrange(5)))
        held[key] = huge if isinstance(value, NDShape) else value.reshape(-1)[1:]
    elif what == 8 and isinstance(held, dict):
        held[chance.choice((key + "x", "uid", "root", "inputs", ""))] = held.pop(key)
    else:
        for _ in range(chance.choice((1, 3, 120))):
            value = {"a": value} if chance.random() < 0.3 else [value]
        held[key] = value


def _anything(chance: random.Random) -> Any:
    shape = NDShape(chance.choice((0, 1, 3, -1, -2, -3, 2**20, 2**31, 2**62)) for _ in range(chance.choice((0, 1, 2, 5, 80))))
    pool = (
        None, True, chance.choice(HUGE) % 2**31, np.uint64(chance.choice(HUGE) % 2**64), np.float32(np.nan), 1e308, -np.inf, 1e-320,
        "", "x" * 3000, chance.choice(MODULES), "Output_0_Output_0", "ü\0\n", [], {}, [None] * 50, {"uid": "x", "version": np.uint64(1)},
        shape, FileAxis(chance.choice(HUGE[:6]) % 2**31 - 5, "an axis", chance.random() < 0.5), np.zeros((0, 3), np.float32),
        np.zeros((3, 2), np.int16), np.float16([1, 2]), np.arange(5, dtype=np.int8), np.full((2, 2), np.nan),
    )  # fmt: skip
    return chance.choice(pool)
