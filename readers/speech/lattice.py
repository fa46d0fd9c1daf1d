"""Lattices, which are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn


def LatticeDeserializer(lattice_index_file: str, streams: Mapping[str, Mapping[str, Any]]) -> NoReturn:
    """Lattices of recognised words, which this implementation does not read, since it has no loss that takes them.

    Raises:
        NotImplementedError: always.

    >>> C.io.LatticeDeserializer("lattices.toc", C.io.StreamDefs(lattice=C.io.StreamDef()))
    Traceback (most recent call last):
        ...
    NotImplementedError: LatticeDeserializer: lattices are for lattice_sequence_with_softmax, which opencntk does not have ...
    """
    raise NotImplementedError(
        "LatticeDeserializer: lattices are for lattice_sequence_with_softmax, which opencntk does not have any more than a reader of HTK's "
        f"archives of lattices, as '{lattice_index_file}' lists them. Train on the states of each frame instead: HTKFeatureDeserializer "
        "and HTKMLFDeserializer with cross_entropy_with_softmax, or with forward_backward for CTC"
    )
