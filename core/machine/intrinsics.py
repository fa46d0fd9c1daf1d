"""The functions of :mod:`.language` as compiled code has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from .language import carray, copy_bytes, overload_for, prange, share, slot
from .pool import OFFER, OFFERED_HELPERS, OFFERED_PIECES, PIECES, SHARE

_number: Any = types.ExternalFunction("cntk_number", types.int32())
_count: Any = types.ExternalFunction("cntk_count", types.int32())
_slot: Any = types.ExternalFunction("cntk_slot", types.int32())
_share, _offer = (
    types.ExternalFunction(name, types.void(types.voidptr, types.voidptr, types.int32, types.int32)) for name in (SHARE, OFFER)
)
_copy: Any = types.ExternalFunction("memcpy", types.voidptr(types.voidptr, types.voidptr, types.uintp))


LARGEST = 2**48 - 1
"""No loop has more iterations.  LLVM vectorises a loop only if it can prove that its indices are not negative."""


def _array_at(typing: Any, pointer: Any, size: Any) -> Any:
    """What :func:`numba.carray` gives, without the calls of Numba's runtime that it makes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.return_type)(context, builder)
        itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(pointer.dtype)))
        populate_array(array, arguments[0], (context.cast(builder, arguments[1], size, types.intp),), (itemsize,), itemsize, None)
        return array._getvalue()

    return types.Array(pointer.dtype, 1, "C")(pointer, size), generate


_array: Any = intrinsic(_array_at)


@overload_for(prange)
def _prange(turns: Any) -> Callable[..., Any]:
    def share(turns):  # type: ignore[no-untyped-def]
        turns, piece, pieces = max(turns, 0), _number(), _count()
        return range(turns * piece // pieces & LARGEST, turns * (piece + 1) // pieces & LARGEST)

    return share


@overload_for(slot)
def _slot_of_thread() -> Callable[..., Any]:
    return lambda: _slot()


@overload_for(share)
def _share_call(code: Any, arguments: Any, helpers: Any, is_offered: Any) -> Callable[..., Any]:
    def call(code, arguments, helpers, is_offered):  # type: ignore[no-untyped-def]
        if is_offered:
            helpers = min(helpers, OFFERED_HELPERS)
            _offer(code, arguments, (helpers + 1) * OFFERED_PIECES, helpers)
        else:
            _share(code, arguments, (helpers + 1) * PIECES, helpers)

    return call


@overload_for(carray)
def _carray(pointer: Any, size: Any) -> Callable[..., Any]:
    return lambda pointer, size: _array(pointer, size)


@overload_for(copy_bytes)
def _copy_bytes(target: Any, source: Any, size: Any) -> Callable[..., Any]:
    def copy(target, source, size):  # type: ignore[no-untyped-def]
        _copy(target, source, size)

    return copy
