"""Reading data: minibatch sources, and the deserializers that plugins have registered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cntk.core.extension import plugins
from cntk.io import transforms as transforms
from cntk.io.constants import DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS as DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS
from cntk.io.constants import FULL_DATA_SWEEP as FULL_DATA_SWEEP
from cntk.io.constants import INFINITELY_REPEAT as INFINITELY_REPEAT
from cntk.io.from_data import from_data as from_data
from cntk.io.minibatch_source import MinibatchSource as MinibatchSource
from cntk.io.minibatch_source_from_data import MinibatchSourceFromData as MinibatchSourceFromData
from cntk.io.stream_def import StreamDef as StreamDef
from cntk.io.stream_def import StreamDefs as StreamDefs
from cntk.io.text_format import _is_tensor
from cntk.io.text_format import sequence_to_cntk_text_format as sequence_to_cntk_text_format
from cntk.io.user_minibatch_source import UserMinibatchSource as UserMinibatchSource
from cntk.readers.streams import MinibatchData as MinibatchData
from cntk.readers.streams import StreamConfiguration as StreamConfiguration
from cntk.readers.streams import StreamInformation as StreamInformation
from cntk.readers.user import UserDeserializer as UserDeserializer

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
    "from_data",
    "sequence_to_cntk_text_format",
]


if TYPE_CHECKING:
    from cntk.io._names import *
else:

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return [*_OWN_NAMES, *plugins.names_to_import(plugins.deserializers, __name__)]
        if name in plugins.deserializers:
            return plugins.shown(plugins.deserializers, name, __name__)
        raise AttributeError(f"module 'cntk.io' has no '{name}'; registered deserializers are {plugins.deserializers.names()}")


def __dir__() -> list[str]:
    return sorted({*globals(), *plugins.names_shown(plugins.deserializers)})
