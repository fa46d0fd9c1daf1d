"""Minibatch sources and deserializers: their streams."""

from __future__ import annotations

from typing import Any

from cntk.core.common.dtypes import dtype_name
from cntk.readers.streams import StreamInformation
from cntk.views.view import View, facts, page, table


def view(source: Any) -> View:
    """The view of a minibatch source or a deserializer, the user's own among them."""
    streams = source.stream_infos()
    rows = [(one.name, str(list(one.sample_shape)), dtype_name(one.dtype), one.storage_format, _role(one)) for one in streams]
    title = f"{type(source).__name__}({', '.join(map(repr, streams))})"
    files = source.files() if hasattr(source, "files") else []
    known = [("ends", "no" if source.is_infinite() else "yes")] if hasattr(source, "is_infinite") else []
    known += [("file", name) for name in files[:1]] + ([("more files", len(files) - 1)] if len(files) > 1 else [])
    parts = [table("", ("stream", "shape of a sample", "element type", "data", ""), rows), facts(known) if known else ""]
    return View(title, page(title, *parts))


def _role(stream: StreamInformation) -> str:
    return "counts in minibatch sizes" if stream.m_defines_mb_size else ""
