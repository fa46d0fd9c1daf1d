"""Numbers that the engine gives to choices and sentinels."""

from __future__ import annotations

from cntk.core.common.dtypes import DataType
from cntk.core.common.random import AUTO_SEED
from cntk.core.storage.model_format import ModelFormat
from cntk.logging.report import TraceLevel
from cntk.plugins.initializers import INFER_RANK
from cntk.train.data_unit import DataUnit

DataUnit_Sweep, DataUnit_Sample, DataUnit_Minibatch = DataUnit.sweep, DataUnit.sample, DataUnit.minibatch
MaskKind_Invalid, MaskKind_Valid, MaskKind_SequenceBegin = range(3)
ModelFormat_CNTKv2, ModelFormat_ONNX = ModelFormat.CNTKv2.value, ModelFormat.ONNX.value
PaddingMode_CONSTANTPAD, PaddingMode_REFLECTPAD, PaddingMode_SYMMETRICPAD = range(3)
ParameterCloningMethod_Share, ParameterCloningMethod_Clone, ParameterCloningMethod_Freeze, ParameterCloningMethod_Invalid = range(4)
PoolingType_Max, PoolingType_Average = range(2)
StorageFormat_Dense, StorageFormat_SparseCSC, StorageFormat_SparseBlockCol = range(3)
TraceLevel_Error, TraceLevel_Warning, TraceLevel_Info = TraceLevel.Error, TraceLevel.Warning, TraceLevel.Info
VariableKind_Input, VariableKind_Output, VariableKind_Parameter, VariableKind_Constant, VariableKind_Placeholder = range(5)

TimesNoInferredInputRank = -1
TimesReduceSequenceAxisWithoutInferredInputRank = -2
chunk_id_max = sequence_len_max = 2**32 - 1
default_param_init_filter_rank = 0
default_param_init_output_rank = default_param_init_scale = 1
default_profiler_buffer_size = 2**25
sentinel_value_for_auto_select_random_seed = AUTO_SEED
sentinel_value_for_infer_param_init_rank = INFER_RANK

_KINDS = ("Input", "Output", "Parameter", "Constant", "Placeholder")
_SIZES = {
    DataType.Float: 4,
    DataType.Double: 8,
    DataType.UChar: 1,
    DataType.Float16: 2,
    DataType.Int8: 1,
    DataType.Int16: 2,
    DataType.BFloat16: 2,
}


def data_type_name(data_type: int) -> str:
    """Name of an element type's number.

    Raises:
        ValueError: there is none.

    >>> C.cntk_py.data_type_name(C.cntk_py.DataType_Double), C.cntk_py.data_type_size(C.cntk_py.DataType_Double)
    ('Double', 8)
    """
    return _known(data_type).name


def data_type_size(data_type: int) -> int:
    """Bytes of an element.

    Raises:
        ValueError: there is no such element type.
    """
    return _SIZES[_known(data_type)]


def _known(data_type: int) -> DataType:
    if data_type not in tuple(_SIZES):
        raise ValueError(f"{data_type!r} is the number of no element type; there are {', '.join(f'{t.value} ({t.name})' for t in _SIZES)}")
    return DataType(data_type)


def device_kind_name(kind: int) -> str:
    """Name of a kind of device.

    Raises:
        ValueError: there is none.
    """
    return _name_of("kind of device", ("CPU", "GPU"), kind)


def variable_kind_name(kind: int) -> str:
    """Name of a kind of variable.

    Raises:
        ValueError: there is none.

    >>> C.cntk_py.variable_kind_name(C.cntk_py.VariableKind_Parameter)
    'Parameter'
    """
    return _name_of("kind of variable", _KINDS, kind)


def _name_of(what: str, names: tuple[str, ...], number: int) -> str:
    if number not in range(len(names)):
        raise ValueError(f"{number!r} is no {what}; there are {', '.join(f'{i} ({name})' for i, name in enumerate(names))}")
    return names[number]


def is_sparse_storage_format(storage_format: int) -> bool:
    """Whether a storage format is a sparse one."""
    return storage_format != StorageFormat_Dense
