"""Readers as the engine makes them, with their arguments in its order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cntk.core.extension import plugins
from cntk.io import MinibatchSource, StreamDef, StreamDefs, transforms
from cntk.io.config import MinibatchSourceConfig
from cntk.io.constants import INFINITELY_REPEAT
from cntk.readers.streams import StreamConfiguration

reader_crop = transforms.crop
reader_scale = transforms.scale
reader_mean = transforms.mean
reader_color = transforms.color


@dataclass
class HTKFeatureConfiguration:
    """Declares the list file of speech features for a stream.

    Attributes:
        m_stream_name: the stream's name.
        m_scp: the list file.
        m_dim: numbers of a frame.
        m_left, m_right: frames of context before and after each.
        m_broadcast: whether a single frame stands for the whole sequence.
        m_defines_mb_size: whether the samples of this stream alone are counted when a minibatch is filled.
        m_max_sequence_length: longer sequences are left out.
    """

    m_stream_name: str
    m_scp: str
    m_dim: int
    m_left: int = 0
    m_right: int = 0
    m_broadcast: bool = False
    m_defines_mb_size: bool = False
    m_max_sequence_length: int = INFINITELY_REPEAT


def ctf_deserializer(file_name: str, streams: Iterable[StreamConfiguration]) -> Any:
    """A reader of CNTK's text format; see ``cntk.io.CTFDeserializer``."""
    return _deserializer("CTFDeserializer", file_name, _described(streams))


def cbf_deserializer(file_name: str, streams: Iterable[StreamConfiguration] = ()) -> Any:
    """A reader of CNTK's binary format; see ``cntk.io.CBFDeserializer``."""
    return _deserializer("CBFDeserializer", file_name, _described(streams))


def image_deserializer(file_name: str, label_stream: str, num_labels: int, image_stream: str, transforms: Sequence[Any] = ()) -> Any:
    """A reader of images from a map file; see ``cntk.io.ImageDeserializer``."""
    return _deserializer("ImageDeserializer", file_name, _image_streams(label_stream, num_labels, image_stream, transforms))


def base64_image_deserializer(file_name: str, label_stream: str, num_labels: int, image_stream: str, transforms: Sequence[Any] = ()) -> Any:
    """A reader of images in a text file; see ``cntk.io.Base64ImageDeserializer``."""
    return _deserializer("Base64ImageDeserializer", file_name, _image_streams(label_stream, num_labels, image_stream, transforms))


def htk_feature_deserializer(streams: Iterable[HTKFeatureConfiguration]) -> Any:
    """A reader of speech features; see ``cntk.io.HTKFeatureDeserializer``."""
    found = {
        stream.m_stream_name: StreamDef(
            shape=stream.m_dim,
            scp=stream.m_scp,
            context=(stream.m_left, stream.m_right),
            broadcast=stream.m_broadcast,
            defines_mb_size=stream.m_defines_mb_size,
            max_sequence_length=stream.m_max_sequence_length,
        )
        for stream in streams
    }
    return _deserializer("HTKFeatureDeserializer", StreamDefs(**found))


def htk_mlf_deserializer(
    stream_name: str, label_mapping_file: str, dimension: int, mlf_files: Sequence[str], phone_boundaries: bool = False
) -> Any:
    """A reader of speech labels; see ``cntk.io.HTKMLFDeserializer``."""
    streams = StreamDefs(**{stream_name: StreamDef(shape=dimension, mlf=list(mlf_files))})
    return _deserializer("HTKMLFDeserializer", label_mapping_file, streams, phone_boundaries)


def htk_mlf_binary_deserializer(stream_name: str, mlf_files: Sequence[str], dimension: int) -> Any:
    """A reader of speech labels in binary files; see ``cntk.io.HTKMLFBinaryDeserializer``."""
    return _deserializer("HTKMLFBinaryDeserializer", StreamDefs(**{stream_name: StreamDef(shape=dimension, mlf=list(mlf_files))}))


def lattice_deserializer(stream_name: str, lattice_index_file: str) -> Any:
    """A reader of lattices; see ``cntk.io.LatticeDeserializer``."""
    return _deserializer("LatticeDeserializer", lattice_index_file, StreamDefs(**{stream_name: StreamDef()}))


def text_format_minibatch_source(path: str, stream_configs: Any, epoch_size: int = INFINITELY_REPEAT, randomize: bool = True) -> Any:
    """A minibatch source of a file in CNTK's text format, as the engine makes it.

    Args:
        path: the file.
        stream_configs: a ``StreamConfiguration`` for each stream.
        epoch_size: samples after which it ends; ``INFINITELY_REPEAT`` for never, ``FULL_DATA_SWEEP`` for all there are.
        randomize: whether to shuffle.
    """
    return MinibatchSource(ctf_deserializer(path, stream_configs), max_samples=epoch_size, randomize=randomize)


def create_composite_minibatch_source(config: MinibatchSourceConfig) -> MinibatchSource:
    """The minibatch source of a configuration.

    Raises:
        RuntimeError: the configuration contradicts itself.
    """
    config.validate()
    return MinibatchSource(
        config.deserializers,
        max_samples=config.max_samples,
        max_sweeps=config.max_sweeps,
        randomization_window_in_chunks=config.randomization_window_in_chunks,
        randomization_window_in_samples=config.randomization_window_in_samples,
        randomization_seed=config.randomization_seed,
        trace_level=config.trace_level,
        multithreaded_deserializer=config.is_multithreaded.value,
        frame_mode=config.is_frame_mode_enabled,
        truncation_length=config.truncation_length,
        max_errors=config.max_errors,
    )


def _deserializer(name: str, *args: Any) -> Any:
    return plugins.deserializers.get(name)(*args)


def _described(streams: Iterable[StreamConfiguration]) -> Any:
    return StreamDefs(
        **{
            stream.name: StreamDef(stream.stream_alias or stream.name, stream.dim, stream.is_sparse, defines_mb_size=stream.defines_mb_size)
            for stream in streams
        }
    )


def _image_streams(label_stream: str, num_labels: int, image_stream: str, transforms: Sequence[Any]) -> Any:
    return StreamDefs(
        **{
            label_stream: StreamDef(field="label", shape=num_labels),
            image_stream: StreamDef(field="image", transforms=list(transforms)),
        }
    )
