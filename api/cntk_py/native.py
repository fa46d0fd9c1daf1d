"""Names of parts that only the native engine has: its memory, its readers and its callbacks.

The names exist so that programs that mention them can be imported; using one is an error that names a replacement.
"""

from __future__ import annotations

from typing import Any, NoReturn

_INSTEAD = {
    "BackPropState": "Function.forward returns the state that Function.backward takes",
    "Chunk": "subclass cntk.io.UserDeserializer",
    "ChunkInfo": "subclass cntk.io.UserDeserializer",
    "DataDeserializer": "subclass cntk.io.UserDeserializer",
    "DenseSequenceData": "subclass cntk.io.UserDeserializer",
    "DeserializerFactory": "subclass cntk.io.UserDeserializer",
    "GPUProperties": "cntk.device.get_gpu_properties returns them",
    "IDictionarySerializable": "functions, learners and schedules have methods that save them",
    "MinibatchInfo": "a Trainer has previous_minibatch_loss_average and the like",
    "SequenceDataBase": "subclass cntk.io.UserDeserializer",
    "SequenceInfo": "subclass cntk.io.UserDeserializer",
    "SequenceKey": "subclass cntk.io.UserDeserializer",
    "SparseSequenceData": "subclass cntk.io.UserDeserializer",
    "UDFDeserializeCallbackWrapper": "call Function.register_udf_deserialize_callback",
    "UserBackPropState": "a UserFunction's forward returns its state, of any type",
    "UserBackPropState_create": "a UserFunction's forward returns its state, of any type",
    "UserBackPropState_data": "a UserFunction's backward is handed its state",
    "_register_deserializer_factory": "subclass cntk.io.UserDeserializer",
    "_register_udf_deserialize_callback": "call Function.register_udf_deserialize_callback",
    "convolution_sequence_shape": "call cntk.convolution with sequential=True",
    "create_deserializer": "call a deserializer of cntk.io",
    "gather_packed": "call cntk.sequence.gather",
    "make_shared": "Python counts references itself",
    "minibatch_size_schedule_deserialize": "call cntk.minibatch_size_schedule",
    "packed_index": "call cntk.sequence.gather",
    "scatter_packed": "call cntk.sequence.scatter",
    "spatial_convolution_sequence_shape": "call cntk.convolution with sequential=True",
    "training_double_parameter_schedule_deserialize": "call cntk.learning_parameter_schedule",
}
"""The replacement of each name."""


class _NativeType(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.__module__ == __name__:
            _refuse(cls.__name__)
        return super().__call__(*args, **kwargs)


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(f"cntk_py.{name} is part of CNTK's native engine, which is not here; {_INSTEAD[name]}")


def _native(name: str) -> Any:
    if name[0].isupper() and "_" not in name:
        return _NativeType(name, (), {"__module__": __name__, "__doc__": f"Part of the native engine; {_INSTEAD[name]}."})

    def call(*args: Any) -> NoReturn:
        _refuse(name)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Part of the native engine; {_INSTEAD[name]}."
    return call


globals().update({name: _native(name) for name in _INSTEAD})
