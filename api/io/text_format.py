"""Writing CNTK's text format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def sequence_to_cntk_text_format(seq_idx: int, alias_tensor_map: Mapping[str, Any]) -> str:
    """The lines of one sequence in CNTK's text format, which :class:`CTFDeserializer` reads.

    Args:
        seq_idx: number of the sequence.
        alias_tensor_map: by the name of the field its samples: an array or nested lists with a leading sequence axis, or, sparse, a list
            of dictionaries from index to value.

    Returns:
        A line for each step, fields sorted by name; nothing if no field has samples.

    Raises:
        ValueError: samples of another kind.

    >>> print(C.io.sequence_to_cntk_text_format(7, {"x": [{3: 1}, {5: 2}], "y": np.array([[0.5, 1.0]])}))
    7	|x 3:1 |y 0.5 1.0
    7	|x 5:2
    """
    steps = max((len(samples) for samples in alias_tensor_map.values()), default=0)
    fields = {name: _texts(name, samples) for name, samples in sorted(alias_tensor_map.items())}
    return "\n".join(
        f"{seq_idx}\t" + " ".join(f"|{name} {texts[step]}" for name, texts in fields.items() if step < len(texts)) for step in range(steps)
    )


def _texts(name: str, samples: Any) -> list[str]:
    """Each sample as it is written."""
    if isinstance(samples, list) and samples and all(isinstance(sample, dict) for sample in samples):
        return [" ".join(f"{index}:{value}" for index, value in sorted(sample.items())) for sample in samples]
    if not isinstance(samples, np.ndarray) and not _is_tensor(samples):
        raise ValueError(f"field '{name}': expected an array, nested lists of numbers or a list of dictionaries, got {samples!r:.80}")
    return [" ".join(map(str, np.ravel(sample).tolist())) for sample in np.asarray(samples)]


def _is_tensor(data: Any) -> bool:
    """Whether it is an array, or lists of numbers nested to any depth."""
    if isinstance(data, np.ndarray):
        return True
    if not isinstance(data, list):
        return False
    if all(isinstance(part, (int, float, np.number)) for part in data):
        return True
    return all(isinstance(part, list) and _is_tensor(part) for part in data)
