"""Reading data: minibatch sources, and the deserializers that plugins have registered."""

from __future__ import annotations

from typing import Any

from cntk.core.extension import plugins
from cntk.io import transforms
from cntk.io.constants import DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS, FULL_DATA_SWEEP, INFINITELY_REPEAT
from cntk.io.minibatch_source import MinibatchSource
from cntk.io.minibatch_source_from_data import MinibatchSourceFromData
from cntk.io.stream_def import StreamDef, StreamDefs
from cntk.io.text_format import _is_tensor, sequence_to_cntk_text_format
from cntk.io.user_minibatch_source import UserMinibatchSource
from cntk.readers.streams import MinibatchData, StreamConfiguration, StreamInformation
from cntk.readers.user import UserDeserializer

_OWN_NAMES = [
    "DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS",
    "FULL_DATA_SWEEP",
    "INFINITELY_REPEAT",
    "MinibatchData",
    "MinibatchSource",
    "MinibatchSourceFromData",
    "StreamConfiguration",
    "StreamDef",
    "StreamDefs",
    "StreamInformation",
    "UserDeserializer",
    "UserMinibatchSource",
    "sequence_to_cntk_text_format",
]


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [*_OWN_NAMES, *plugins.names_to_import(plugins.deserializers, __name__)]
    if name in plugins.deserializers:
        return plugins.shown(plugins.deserializers, name, __name__)
    raise AttributeError(f"module 'cntk.io' has no '{name}'; registered deserializers are {plugins.deserializers.names()}")
