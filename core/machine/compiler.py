"""Compiles loops to machine code: Numba infers types and generates LLVM code, which is optimised once, as a whole.

Numba itself spends most of its time on optimising each function twice, alone and where it is called, and on functions that Python can
call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numba
import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler import Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.extending import overload
from numba.np.arrayobj import populate_array

from . import intrinsics as intrinsics
from . import language
from .array_layout import DATA, SHAPE, STRIDES

ENTRY = "cntk_loop"
"""The name of a loop's entry function."""

TUNING = "-prefer-256-bit"
"""Features of all levels: LLVM leaves half of a vector of 512 bits unused otherwise, as the first such processors had lower clocks then."""

_unread = language.Unread()

_word, _byte, _int = ir.IntType(64), ir.IntType(8), ir.IntType(32)


@global_compiler_lock
def compiled(function: Callable[..., None], kinds: Sequence[str], level: str | None) -> tuple[bytes, list[str]]:
    """Object code of a loop for arguments of some kinds, and the names of the external functions that it calls.

    Args:
        function: the loop.
        kinds: those of its arguments.
        level: the level of processors to compile for; None for the processor that Numba chooses.

    Raises:
        TypeError: it cannot be compiled for such arguments.
    """
    _register_overloads()
    flags: Any = Flags()
    flags.nrt = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.error_model = "numpy"
    arguments = tuple(map(_type, kinds))
    context = cpu_target.target_context
    with _unfinished(context, _codegen(level)) as codegen:
        made = compile_extra(cpu_target.typing_context, context, function, arguments, types.none, flags, {})
        library = codegen.create_library(ENTRY)
        library.add_ir_module(_entry(context, library, made.fndesc, arguments))
        library.add_linking_library(made.library)
        library.finalize()
    module = library.optimised()
    if any(variable.name.startswith("numba.dynamic.globals") for variable in module.global_variables):
        raise TypeError(f"{function.__qualname__} refers to memory of this process")
    wanted = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    return codegen._tm.emit_object(module), wanted


def _type(kind: str) -> Any:
    """Numba's type for the kind of an argument."""
    if kind[0] == "(":
        return types.UniTuple(types.int64, int(kind[1:-1]))
    if len(kind) == 1:
        return {"q": types.int64, "d": types.float64, "f": types.float32, "?": types.boolean}[kind]
    dtype, dimensions, layout = kind.split(":")
    array: Any = types.Array
    return array(numba.from_dtype(np.dtype(dtype)), int(dimensions), layout)


def _register_overloads() -> None:
    for function, choose, options in _unread:
        chosen: Any = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True, **options}
        inline = chosen.pop("inline", "never")
        overload(function, jit_options=chosen, inline=inline, strict=False)(choose)


class _Unfinished(JITCodeLibrary):
    """LLVM's code of a function, neither optimised nor turned into machine code."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    def optimised(self) -> Any:
        """The module, without what :data:`ENTRY` does not need, optimised."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.name != ENTRY:
                function.linkage = "internal"
        for variable in self._final_module.global_variables:
            if not variable.is_declaration:
                variable.linkage = "internal"
        super()._optimize_final_module()
        passes = binding.create_new_module_pass_manager()  # counting references is gone only now, and the functions for it are left over
        passes.add_global_dead_code_eliminate_pass()
        passes.add_strip_dead_prototype_pass()
        passes.run(self._final_module, self._codegen._pass_builder())
        return self._final_module


class _Codegen(JITCPUCodegen):
    """Makes :class:`_Unfinished` libraries, for processors of a level."""

    _library_class = _Unfinished

    def __init__(self, level: str | None) -> None:
        self._level = level
        super().__init__("cntk")

    def _customize_tm_options(self, options: dict[str, Any]) -> None:
        super()._customize_tm_options(options)
        if self._level is not None:
            options.update(cpu=self._level, features=TUNING)

    def set_env(self, env_name: str, env: Any) -> None:
        """Nothing: there is no machine code yet."""


@lru_cache(maxsize=1)
def _codegen(level: str | None) -> _Codegen:
    return _Codegen(level)


@contextmanager
def _unfinished(context: Any, codegen: _Codegen) -> Iterator[_Codegen]:
    """Let Numba generate LLVM code that is neither optimised nor turned into machine code."""
    finishing = context._internal_codegen
    context._internal_codegen = codegen
    try:
        yield codegen
    finally:
        context._internal_codegen = finishing


def _entry(context: Any, library: Any, description: Any, arguments: Sequence[Any]) -> Any:
    """The function that takes the loop's arguments out of a row of words."""
    module = library.create_ir_module(ENTRY)
    entry = ir.Function(module, ir.FunctionType(ir.VoidType(), [_byte.as_pointer()]), ENTRY)
    builder = ir.IRBuilder(entry.append_basic_block())
    words = builder.bitcast(entry.args[0], _word.as_pointer())
    values, place = [], 1
    for of in arguments:
        size = len(of) if isinstance(of, types.UniTuple) else 1
        row = [builder.load(builder.gep(words, [ir.Constant(_int, place + i)])) for i in range(size)]
        values.append(_value(context, builder, of, row))
        place += size
    target = context.declare_function(module, description)
    status, _ = context.call_conv.call_function(builder, target, types.none, arguments, values)
    with builder.if_then(status.is_error):
        builder.store(ir.Constant(_word, 1), words)
    builder.ret_void()
    return module


def _value(context: Any, builder: Any, of: Any, row: Sequence[Any]) -> Any:
    """An argument of a type, from its words."""
    if isinstance(of, types.UniTuple):
        return context.make_tuple(builder, of, row)
    (word,) = row
    if of == types.float64:
        return builder.bitcast(word, ir.DoubleType())
    if of == types.float32:
        return builder.fptrunc(builder.bitcast(word, ir.DoubleType()), ir.FloatType())
    if of == types.boolean:
        return builder.trunc(word, ir.IntType(1))
    return _array(context, builder, of, word) if isinstance(of, types.Array) else word


def _array(context: Any, builder: Any, of: Any, address: Any) -> Any:
    """What compiled code takes for a NumPy array at an address."""

    def field(offset: int, element: Any) -> Any:
        place = builder.add(address, ir.Constant(_word, offset))
        return builder.load(builder.inttoptr(place, element.as_pointer().as_pointer()))

    def numbers(offset: int) -> list[Any]:
        start = field(offset, _word)
        return [builder.load(builder.gep(start, [ir.Constant(_int, axis)])) for axis in range(of.ndim)]

    array = context.make_array(of)(context, builder)
    data = field(DATA, context.get_data_type(of.dtype))
    itemsize = ir.Constant(_word, context.get_abi_sizeof(context.get_data_type(of.dtype)))
    populate_array(array, data, numbers(SHAPE), numbers(STRIDES), itemsize, None)
    return array._getvalue()
