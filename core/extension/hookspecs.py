"""The hooks a plugin may implement.

Each is called once, when plugins are loaded, with a ``register`` function.  A plugin hands over names with import strings
(``"package.module:object"``) or objects; import strings keep start-up light, for nothing is imported before its first use.
"""

from __future__ import annotations

from typing import Protocol

import pluggy

hookspec = pluggy.HookspecMarker("cntk")
hookimpl = pluggy.HookimplMarker("cntk")


class Register(Protocol):
    """Hand over one named thing: an object, or the import string of one."""

    def __call__(self, name: str, target: object) -> None: ...


class Command(Protocol):
    """A command of the ``cntk`` program; the first line of its docstring shows in ``cntk --help``.

    >>> from cntk.extend import Command
    >>> def greet(arguments):
    ...     '''Greet someone.'''
    ...     print('Hello', *arguments)
    >>> command: Command = greet
    >>> command(['world'])
    Hello world
    """

    def __call__(self, arguments: list[str], /) -> int | None:
        """Run it with the arguments behind its name; gives the exit status, None for 0."""


class RegisterKernel(Protocol):
    """Hand over a kernel, which replaces, on one backend, the methods of an operator or a learner, given by its class or the class's
    import string."""

    def __call__(self, cls: type | str, backend: str, target: object) -> None: ...


class RegisterEngine(Protocol):
    """Hand over an engine, which computes more than one operator on one backend, by its name."""

    def __call__(self, name: str, backend: str, target: object) -> None: ...


class RegisterOnnxWriter(Protocol):
    """Hand over what writes an operator, given by its class or the class's import string, to ONNX files."""

    def __call__(self, operator: type | str, target: object) -> None: ...


class RegisterOnnxReader(Protocol):
    """Hand over what reads an operator of ONNX, given by its type and its domain, which is empty for ONNX's own."""

    def __call__(self, op_type: str, domain: str, target: object) -> None: ...


class RegisterNativeFunction(Protocol):
    """Hand over a factory of the operator of a native user function, under the names of its module and itself."""

    def __call__(self, module_name: str, factory_method_name: str, target: object) -> None: ...


@hookspec
def cntk_register_ops(register: Register) -> None:
    """Register operators: functions that become ``cntk.ops.<name>`` and ``cntk.<name>``."""


@hookspec
def cntk_register_operator_rows(register: Register) -> None:
    """Register how operators are written to CNTK's model files that CNTK has as well: objects of ``cntk.plugins.formats.row.Row``."""


@hookspec
def cntk_register_kernels(register: RegisterKernel) -> None:
    """Register faster implementations of an operator or a learner on one backend, by its class.  They also serve subclasses that do not
    redefine its methods.  The last one registered has precedence."""


@hookspec
def cntk_register_engines(register: RegisterEngine) -> None:
    """Register what does the work of several operators on one backend: what recurrences do, as ``Recurrence``, chains of operators, as
    ``Chain``, and what products use, as ``Csr`` and ``Products``.  The last one registered has precedence."""


@hookspec
def cntk_register_native_functions(register: RegisterNativeFunction) -> None:
    """Register what ``cntk.ops.functions.register_native_user_function`` finds by the names of a module and a factory."""


@hookspec
def cntk_register_passes(register: Register) -> None:
    """Register passes over programs that are being compiled: objects of subclasses of ``cntk.core.program.passes.Pass``, by their names."""


@hookspec
def cntk_register_backends(register: Register) -> None:
    """Register backends: classes that follow ``cntk.core.extension.backend.Backend``."""


@hookspec
def cntk_register_learners(register: Register) -> None:
    """Register learners: functions that become ``cntk.learners.<name>`` and ``cntk.<name>``."""


@hookspec
def cntk_register_distributed_strategies(register: Register) -> None:
    """Register ways of training on several workers: subclasses of ``cntk.plugins.distributed.base.Strategy``."""


@hookspec
def cntk_register_deserializers(register: Register) -> None:
    """Register deserializers: what reads a format for minibatch sources; they become ``cntk.io.<name>``."""


@hookspec
def cntk_register_progress_writers(register: Register) -> None:
    """Register progress writers: classes that become ``cntk.logging.<name>``."""


@hookspec
def cntk_register_model_formats(register: Register) -> None:
    """Register formats of model files by name, such as those of ``cntk.ModelFormat``: objects that recognise, write and read files."""


@hookspec
def cntk_register_onnx_writers(register: RegisterOnnxWriter) -> None:
    """Register how operators are written to ONNX files: functions that are called with the operator, the graph that is being written and
    the operands, and return the result.  The last one registered has precedence."""


@hookspec
def cntk_register_onnx_readers(register: RegisterOnnxReader) -> None:
    """Register how operators of ONNX are read: functions that are called with the node and its operands, and return the results.  The last
    one registered has precedence."""


@hookspec
def cntk_register_launchers(register: Register) -> None:
    """Register what starts the workers of ``cntk launch --with <name>``: functions that take a ``cntk.extend.Job``, run it and return the
    exit status."""


@hookspec
def cntk_register_commands(register: Register) -> None:
    """Register commands of the ``cntk`` program: functions that take the list of arguments after the command's name."""
