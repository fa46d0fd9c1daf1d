"""Names of CNTK's native engine that programs use."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from cntk.comparison import are_equal, are_equivalent
from cntk.core import threads
from cntk.core.axis import Axis
from cntk.core.device import DeviceDescriptor, DeviceKind, always_allow_setting_default_device
from cntk.core.dtypes import DataType
from cntk.core.function import Function, allow_renaming_functions
from cntk.core.model_files import write_file
from cntk.core.native import is_native_user_function_registered
from cntk.core.progress import ProgressWriter
from cntk.core.random import (
    generate_random_seed,
    get_random_seed,
    is_random_seed_fixed,
    reset_random_seed,
    set_fixed_random_seed,
)
from cntk.core.shape import FreeDimension, InferredDimension
from cntk.core.value import NDArrayView, Value
from cntk.core.variable import Constant as _Constant
from cntk.core.variable import Parameter as _Parameter
from cntk.core.variable import Variable
from cntk.learners import Learner
from cntk.learners.engine import (
    AdditionalLearningOptions,
    SizeTWrapper,
    ada_delta_learner,
    ada_grad_learner,
    adam_learner,
    fsada_grad_learner,
    momentum_sgd_learner,
    nesterov_learner,
    rmsprop_learner,
    sgd_learner,
)
from cntk.learners.schedules import TrainingParameterSchedule as training_double_parameter_schedule
from cntk.learners.schedules import momentum_as_time_constant_schedule
from cntk.learners.universal_learner import Universal as universal_learner
from cntk.plugins.formats import wire
from cntk.statistics import compute_input_per_dim_means_and_inv_std_devs

DeviceKind_CPU = DeviceKind.CPU
DeviceKind_GPU = DeviceKind.GPU
DataType_Unknown = DataType.Unknown
DataType_Float = DataType.Float
DataType_Double = DataType.Double
DataType_UChar = DataType.UChar
DataType_Float16 = DataType.Float16
DataType_Int8 = DataType.Int8
DataType_Int16 = DataType.Int16


class _EngineClass(type):
    """A class of the engine: made with its argument order, the result is an object of the public class, which counts as its instance."""

    public: Any

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.public)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.public)


class Parameter(metaclass=_EngineClass):
    """``cntk_py.Parameter(shape, data_type, initial value, device, name)``; see :class:`cntk.Parameter`."""

    public = _Parameter

    def __new__(cls, shape: Any, data_type: Any, value: Any = 0, device: Any = None, name: str = "") -> Any:
        return _Parameter(shape, value, data_type, device, name)


class Constant(metaclass=_EngineClass):
    """``cntk_py.Constant(shape, data_type, value, device, name)``; see :class:`cntk.Constant`."""

    public = _Constant

    def __new__(cls, shape: Any, data_type: Any, value: Any = 0, device: Any = None, name: str = "") -> Any:
        return _Constant(value, shape, data_type, device, name)


class DictionaryValue:
    """The value of an entry of a :class:`Dictionary`: a bool, number, string, list, dictionary, array or None."""

    __slots__ = ("value",)

    def __init__(self, value: Any = None) -> None:
        self.value: Any = value.value if isinstance(value, DictionaryValue) else value

    def has_value(self) -> bool:
        """Whether there is a value."""
        return self.value is not None

    def save(self, filename: Any) -> None:
        """Write it to a file, as CNTK does.

        Raises:
            TypeError: it holds something that files do not have.
        """
        write_file(filename, wire.write_value(self.value))

    @staticmethod
    def load(filename: Any) -> DictionaryValue:
        """The value in a file.

        Raises:
            RuntimeError: the file is damaged, or holds something else.
        """
        with open(filename, "rb") as file:
            return DictionaryValue(wire.plain(wire.read_value(file.read())))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DictionaryValue) and _equal(self.value, other.value)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"DictionaryValue({self.value!r})"


class Dictionary(dict[str, Any]):
    """Entries by name, as the engine's configurations hold them; what is missing is None.

    >>> config = C.cntk_py.Dictionary()
    >>> config['traceLevel'] = 1
    >>> config['traceLevel'], config['frameMode']
    (1, None)

    Raises:
        TypeError: the key is no string.
    """

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"Dictionary: keys are strings, got {type(key).__name__} {key!r:.80}")
        super().__setitem__(key, value.value if isinstance(value, DictionaryValue) else value)

    def __missing__(self, key: str) -> None:
        return None

    def save(self, filename: Any) -> None:
        """Write it to a file, as CNTK does.

        Raises:
            TypeError: it holds something that files do not have.
        """
        write_file(filename, wire.write_dictionary(self))

    @staticmethod
    def load(filename: Any) -> Dictionary:
        """The dictionary in a file, such as a model or checkpoint.

        Raises:
            RuntimeError: the file is damaged, or holds something else.

        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     C.plus(C.input_variable(2), 1).save(os.path.join(folder, 'model'))
        ...     model = C.cntk_py.Dictionary.load(os.path.join(folder, 'model'))
        >>> model['type'], len(model['inputs'])
        ('CompositeFunction', 2)
        """
        with open(filename, "rb") as file:
            return Dictionary(wire.plain(wire.read_dictionary(file.read())))

    def contains(self, key: str) -> bool:
        """Whether there is such an entry."""
        return key in self

    def size(self) -> int:
        """Number of entries."""
        return len(self)


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return getattr(left, "dtype", None) == getattr(right, "dtype", None) and np.array_equal(left, right)
    return type(left) is type(right) and bool(left == right)


_deterministic = False


def force_deterministic_algorithms() -> None:
    """Ask for algorithms whose results do not depend on the order of threads; the NumPy backend has no others."""
    global _deterministic
    _deterministic = True


def should_force_deterministic_algorithms() -> bool:
    """Whether :func:`force_deterministic_algorithms` has been called."""
    return _deterministic


minibatch_size_schedule = training_double_parameter_schedule
"""The engine has schedules of sizes and of rates; here they are one class."""


def text_format_minibatch_source(path: str, stream_configs: Any, epoch_size: int = 2**64 - 1, randomize: bool = True) -> Any:
    """A minibatch source of a file in CNTK's text format, as the engine makes it.

    Args:
        path: the file.
        stream_configs: a ``StreamConfiguration`` for each stream.
        epoch_size: samples after which it ends; ``INFINITELY_REPEAT`` for never, ``FULL_DATA_SWEEP`` for all there are.
        randomize: whether to shuffle.
    """
    from cntk.core import plugins
    from cntk.io import MinibatchSource, StreamDef, StreamDefs

    streams = {
        config.name: StreamDef(
            field=config.stream_alias or config.name, shape=config.dim, is_sparse=config.is_sparse, defines_mb_size=config.defines_mb_size
        )
        for config in stream_configs
    }
    deserializer = plugins.deserializers.get("CTFDeserializer")(path, StreamDefs(**streams))
    return MinibatchSource(deserializer, max_samples=epoch_size, randomize=randomize)


def set_max_num_cputhreads(num_cpu_threads: int) -> None:
    """Let at most so many threads share the work of an update; the libraries below go by their own settings.

    Raises:
        ValueError: the number is less than 1.
    """
    threads.set_max_threads(operator.index(num_cpu_threads))


def get_max_num_cputhreads() -> int:
    """The number last set; without one, that of the processors this process may run on."""
    return threads.max_threads()


def _accepted(*args: Any) -> None:
    """Accepted for compatibility: the switch concerns the native engine."""


set_computation_network_trace_level = _accepted
set_math_lib_trace_level = _accepted
set_gpumemory_allocation_trace_level = _accepted
use_sparse_gradient_aggregation_in_data_parallel_sgd = _accepted
print_built_info = _accepted
enable_cpueval_optimization = _accepted
disable_cpueval_optimization = _accepted
enable_forward_values_sharing = _accepted
disable_forward_values_sharing = _accepted
enable_gradient_accumulation_optimization = _accepted
disable_gradient_accumulation_optimization = _accepted

__all__ = [
    "AdditionalLearningOptions",
    "Axis",
    "Constant",
    "DataType_Double",
    "DataType_Float",
    "DataType_Float16",
    "DataType_Int8",
    "DataType_Int16",
    "DataType_UChar",
    "DataType_Unknown",
    "DeviceDescriptor",
    "DeviceKind_CPU",
    "DeviceKind_GPU",
    "Dictionary",
    "DictionaryValue",
    "FreeDimension",
    "Function",
    "InferredDimension",
    "Learner",
    "MinibatchSourceConfig",
    "NDArrayView",
    "Parameter",
    "ProgressWriter",
    "SizeTWrapper",
    "Value",
    "Variable",
    "ada_delta_learner",
    "ada_grad_learner",
    "adam_learner",
    "allow_renaming_functions",
    "always_allow_setting_default_device",
    "are_equal",
    "are_equivalent",
    "compute_input_per_dim_means_and_inv_std_devs",
    "force_deterministic_algorithms",
    "fsada_grad_learner",
    "generate_random_seed",
    "get_max_num_cputhreads",
    "get_random_seed",
    "is_native_user_function_registered",
    "is_random_seed_fixed",
    "minibatch_size_schedule",
    "momentum_as_time_constant_schedule",
    "momentum_sgd_learner",
    "nesterov_learner",
    "reset_random_seed",
    "rmsprop_learner",
    "set_fixed_random_seed",
    "set_max_num_cputhreads",
    "sgd_learner",
    "should_force_deterministic_algorithms",
    "text_format_minibatch_source",
    "to_dictionary",
    "training_double_parameter_schedule",
    "universal_learner",
]


from cntk.io.config import MinibatchSourceConfig, to_dictionary  # noqa: E402  (cntk.io needs Dictionary)
