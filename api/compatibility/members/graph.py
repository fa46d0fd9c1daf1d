"""Members of axes, devices, variables and functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from cntk.cntk_py.dictionary import Dictionary
from cntk.compatibility.members.engine import as_string, only_in_the_engine
from cntk.core.extension.device import (
    DeviceDescriptor,
    all_devices,
    cpu,
    get_gpu_properties,
    gpu,
    set_excluded_devices,
    try_set_default_device,
    use_default_device,
)
from cntk.core.graph.function import CloneMethod, Function
from cntk.core.graph.python_function import BlockFunction
from cntk.core.graph.variable import Constant, Parameter, Variable
from cntk.core.operators.native import native_user_function, register_native_user_function
from cntk.core.storage.model_format import ModelFormat
from cntk.core.types.axis import Axis
from cntk.core.values.value import NDArrayView
from cntk.debugging.profiler import timing_of
from cntk.plugins.formats import wire
from cntk.plugins.models import files as model_files
from cntk.plugins.models.files import format_of

_CLONE_METHODS = (CloneMethod.share, CloneMethod.clone, CloneMethod.freeze)


class _AxisMembers:
    as_string = as_string

    @staticmethod
    def end_static_axis() -> Axis:
        """The engine's marker for the end of the static axes."""
        return Axis(2**31 - 4)

    @staticmethod
    def operand_sequence_axis() -> Axis:
        """The engine's marker for the sequence axis of an operand."""
        return Axis("__operandSequenceAxis")


class _DeviceMembers:
    as_string = as_string
    all_devices = staticmethod(all_devices)
    cpu_device = staticmethod(cpu)
    gpu_device = staticmethod(gpu)
    get_gpu_properties = staticmethod(get_gpu_properties)
    set_excluded_devices = staticmethod(set_excluded_devices)
    try_set_default_device = staticmethod(try_set_default_device)
    use_default_device = staticmethod(use_default_device)


class _VariableMembers:
    uid = ""
    needs_gradient = False
    as_string = as_string

    def is_initialized(self: Any) -> bool:
        """Whether a value is known, or needs not be."""
        return True

    def get_value(self: Any) -> NDArrayView:
        """The value of a parameter or constant.

        Raises:
            RuntimeError: it is neither.
        """
        return NDArrayView.from_data(_holder(self, "get_value").value, self.device)

    def current_value_time_stamp(self: Any) -> int:
        """How often a value has been assigned to a parameter or constant.

        Raises:
            RuntimeError: it is neither.
        """
        return int(_holder(self, "current_value_time_stamp").version)


def _holder(variable: Any, what: str) -> Any:
    if not isinstance(variable, (Parameter, Constant)):
        raise RuntimeError(f"{variable!r}.{what}(): only parameters and constants have a value; evaluate a function to have that of others")
    return variable


def record_value_update(self: Any) -> None:
    """Say that the value has been changed in place."""
    self.version += 1


class _ParameterMembers:
    record_value_update = record_value_update


class _ConstantMembers:
    record_value_update = record_value_update

    @staticmethod
    def scalar(data_type: Any, value: float, device: Any = None) -> Constant:
        """A constant without axes."""
        return Constant(value, (), data_type, device)

    def clone_as(self: Any, data_type: Any) -> Constant:
        """A constant of the same value and another element type."""
        return Constant(self.value, dtype=data_type, device=self.device, name=self.name)


class _FunctionMembers:
    uid = ""
    max_num_outputs = 64
    as_string = as_string
    native_user_function = staticmethod(native_user_function)
    register_native_user_function = staticmethod(register_native_user_function)
    _placeholders_under_construction: ClassVar[set[Any]] = set()
    _udf_callback_map = model_files._callbacks
    _get_none_state = only_in_the_engine("_get_none_state", "forward returns None where there is nothing to keep")
    deserialize_method_name = only_in_the_engine("deserialize_method_name", "the class has a method called deserialize")
    module_name = only_in_the_engine("module_name", "type(function).__module__ tells it")
    restore_from_checkpoint = only_in_the_engine("restore_from_checkpoint", "restore(filename) takes the values from a file")

    def set_name(self: Any, name: str) -> None:
        """Give it a name; see ``name``."""
        self.name = name

    def set_native(self: Any, native: bool) -> None:
        """Accepted for compatibility: whether a user function is one of the native engine."""

    def get_custom_attributes(self: Any) -> Any:
        """See ``custom_attributes``."""
        return self.custom_attributes

    def reset_custom_attributes(self: Any) -> None:
        """Forget the custom attributes."""
        self.root_function.custom_attributes = {}

    def _get_or_reset_custom_attributes(self: Any, reset: bool) -> Any:
        if reset:
            self.reset_custom_attributes()
        return self.get_custom_attributes()

    def print_node_timing(self: Any) -> None:
        """Print how long operators have taken on average since :func:`cntk.debugging.set_node_timing` was switched on."""
        print(timing_of(self), end="")

    def clone_flattened(self: Any, method: Any = CloneMethod.clone) -> Function:
        """A copy without blocks: their insides take their places."""
        from cntk.misc import convert

        if isinstance(method, int):
            method = _CLONE_METHODS[method]
        made = self.clone(method)
        while made.root_function.is_block or any(node.is_block for node in _functions_of(made)):
            made = convert(made, lambda node: node.is_block, _opened)
        return made

    # ---- evaluating into dictionaries ----

    def evaluate(self: Any, arguments: Mapping[Any, Any], outputs: dict[Variable, Any], device: Any = None) -> None:
        """Fill in the values of a dictionary by output.

        Raises:
            ValueError: no output is asked for.
        """
        self._forward(arguments, outputs, device)

    def _forward(self: Any, arguments: Mapping[Any, Any], outputs: dict[Variable, Any], device: Any = None, keep: Any = None) -> Any:
        if not outputs:
            raise ValueError(f"evaluate: give a dictionary with at least one of the outputs {self.outputs} as key")
        state, values = self.forward(arguments, list(outputs), keep, device, as_numpy=False)
        outputs.update(values)
        return state

    def gradients(self: Any, arguments: Mapping[Any, Any], gradients: dict[Variable, Any], *args: Any) -> None:
        """Fill in the values of a dictionary by variable with the gradients of the output, and where another one follows its outputs.

        Raises:
            ValueError: no gradient is asked for.
        """
        if not gradients:
            raise ValueError("gradients: give a dictionary with at least one variable as key")
        outputs = args[0] if args and isinstance(args[0], dict) else {}
        device = next((arg for arg in args if isinstance(arg, DeviceDescriptor)), None)
        keys, wanted = list(gradients), list(outputs)
        found = self.grad(arguments, keys, wanted or None, device, as_numpy=False)
        grads, values = found if wanted else (found, {})
        gradients.update(grads if isinstance(grads, dict) else {keys[0]: grads})
        outputs.update(values if isinstance(values, dict) else {wanted[0]: values})

    def _backward(self: Any, state: Any, root_gradients: Mapping[Variable, Any], gradients: dict[Variable, Any]) -> None:
        gradients.update(self.backward(state, root_gradients, list(gradients), as_numpy=False))

    # ---- files ----

    def serialize(self: Any) -> Dictionary:
        """The function as it is in a file of CNTK's format.

        >>> C.relu(C.input_variable(2)).serialize()['type']
        'CompositeFunction'
        """
        return _described(self)

    def current_version(self: Any) -> int:
        """Version of the format that :meth:`serialize` writes."""
        return int(_described(self)["version"])

    def _serialize_impl(self: Any) -> Dictionary:
        return _described(self)

    @staticmethod
    def _deserialize(dictionary: Mapping[str, Any], device: Any = None) -> Function:
        """The function that :meth:`serialize` described."""
        return Function.load(b"".join(wire.write_dictionary(dict(dictionary))), device)

    @staticmethod
    def load_from_buffer(buffer: Any, device: Any = None) -> Function:
        """The function in the bytes of a file."""
        return Function.load(bytes(buffer), device)

    # ---- functions of Python ----

    @staticmethod
    def _to_Function(f: Callable[..., Any], make_block: bool = False, op_name: str | None = None, name: str | None = None) -> Function:
        return _from_python(f, make_block, op_name, name)

    @staticmethod
    def _to_Function_unchecked(f: Any, make_block: bool = False, op_name: Any = None, name: Any = None) -> tuple[Function, list[Variable]]:
        made = _from_python(f, make_block, op_name, name)
        return made, list(made.signature)

    @staticmethod
    def _sanitize_check_Function(f_out: Function, f_args: Iterable[Variable], f: Callable[..., Any]) -> Function:
        return f_out

    @staticmethod
    def _replace_args_type_check(arg_map: Mapping[Any, Any]) -> None:
        """See that what is put in the place of variables is variables and functions.

        Raises:
            TypeError: something else is among it.
        """
        for variable, replacement in arg_map.items():
            if not isinstance(replacement, (Variable, Function)):
                raise TypeError(f"{variable!r} is to be replaced by a Variable or Function, got {replacement!r:.80}")

    def _infer_outputs(self: Any, outputs: list[Variable]) -> None:
        outputs[:] = self.infer_outputs()


def _described(function: Any) -> Dictionary:
    content = b"".join(format_of(ModelFormat.CNTKv2).write(function))
    return Dictionary(wire.plain(wire.read_dictionary(content)))


def _from_python(f: Callable[..., Any], make_block: bool, op_name: str | None, name: str | None) -> Function:
    return BlockFunction(op_name or f.__name__, name or "")(f) if make_block else Function(f)


def _functions_of(function: Function) -> list[Any]:
    from cntk.logging.graph import depth_first_search

    return depth_first_search(function, lambda node: isinstance(node, Function))


def _opened(block: Any) -> Function:
    return block.block_root.clone(CloneMethod.share, dict(block.block_arguments_mapping))


MEMBERS: dict[type, type] = {
    Axis: _AxisMembers,
    DeviceDescriptor: _DeviceMembers,
    Variable: _VariableMembers,
    Parameter: _ParameterMembers,
    Constant: _ConstantMembers,
    Function: _FunctionMembers,
}
