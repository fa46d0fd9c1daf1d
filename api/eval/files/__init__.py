"""Files of tables that models are applied to: a format each, with a source that reads parts and a sink that writes them."""

from __future__ import annotations

import os
from typing import Any

from cntk.eval.files.base import Sink, Source
from cntk.eval.files.csv_files import CsvSink, CsvSource
from cntk.eval.files.ctf_files import CtfSink, CtfSource
from cntk.eval.files.npz_files import NpzSink, NpzSource
from cntk.eval.files.parquet_files import ParquetSink, ParquetSource
from cntk.eval.predictor import Predictor

FORMATS: dict[str, tuple[type[Source], type[Sink]]] = {
    ".csv": (CsvSource, CsvSink),
    ".tsv": (CsvSource, CsvSink),
    ".npz": (NpzSource, NpzSink),
    ".ctf": (CtfSource, CtfSink),
    ".txt": (CtfSource, CtfSink),
    ".parquet": (ParquetSource, ParquetSink),
}
"""Formats by the suffix of a file."""


def source_of(path: Any, predictor: Predictor) -> Source:
    """What reads a file for a predictor.

    Raises:
        ValueError: the suffix is that of no format, or the file lacks columns.
        OSError: the file cannot be read.
    """
    return _format(path)[0](os.fspath(path), predictor)


def sink_of(path: Any, predictor: Predictor) -> Sink:
    """What writes the results of a predictor to a file.

    Raises:
        ValueError: the suffix is that of no format.
    """
    return _format(path)[1](os.fspath(path), predictor)


def _format(path: Any) -> tuple[type[Source], type[Sink]]:
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    if suffix not in FORMATS:
        raise ValueError(f"{os.fspath(path)!r}: the suffix says the format, which is one of {', '.join(FORMATS)}; got {suffix!r}")
    return FORMATS[suffix]
