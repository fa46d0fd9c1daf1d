"""The identity of a source's data, without reading all of it: counts, and sizes and samples of the files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.common.user_frame import warn_user

PARTS, BYTES = 64, 1 << 14
"""The number and size of the parts of a file that are compared, from its beginning to its end; smaller files are compared completely."""


def identity_of(counts: Mapping[str, int], paths: Sequence[str]) -> dict[str, Any]:
    """The identity of data for a checkpoint: counts, and of each file its name, size and a digest of its contents."""
    files = [[os.path.basename(path), *_size_and_digest(path)] for path in paths]
    return {**counts, **({"files": files} if files else {})}


def warn_of_other_data(then: Any, now: Mapping[str, Any]) -> None:
    """Warn if the data is not that of a checkpoint; files may have moved.

    Raises:
        ValueError: the checkpoint's identity of data is invalid.
    """
    if not isinstance(then, Mapping) or not isinstance(then.get("files", []), list):
        raise ValueError(f"restore_from_checkpoint: expected the identity of the data, a dictionary, got {then!r:.80}")
    differences = [f"{then[what]} {what}, now {now[what]}" for what in now if what != "files" and what in then and then[what] != now[what]]
    old, new = then.get("files", []), now.get("files", [])
    if old and len(old) != len(new):
        differences.append(f"{len(old)} files, now {len(new)}")
    differences += [f"another content of '{is_now[0]}'" for was, is_now in zip(old, new, strict=False) if list(was)[1:] != is_now[1:]]
    if differences:
        warn_user(
            f"the data are not those of the checkpoint, which had {'; '.join(differences)}. What is served next is not what would have been"
        )


def _size_and_digest(path: str) -> tuple[int, str]:
    digest = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        step = max((size - BYTES) / (PARTS - 1), BYTES)
        for part in range(PARTS):
            file.seek(round(part * step))
            digest.update(file.read(BYTES))
    return size, digest.hexdigest()
