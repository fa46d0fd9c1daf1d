"""Sequence training of acoustic models on lattices."""

from __future__ import annotations

from typing import NoReturn

from cntk.core.graph.arguments import TensorLike
from cntk.core.types.arguments import checked


@checked
def lattice_sequence_with_softmax(
    label: TensorLike,
    prediction: TensorLike,
    loglikelihood: TensorLike,
    lattice: TensorLike,
    symListPath: str,
    phonePath: str,
    stateListPath: str,
    transProbPath: str,
    latticeConfigPath: str = "LatticeNode.config",
    hSmoothingWeight: float = 0.95,
    frameDropThresh: float = 1e-10,
    doReferenceAlign: bool = False,
    seqGammarUsesMBR: bool = False,
    seqGammarAMF: float = 14.0,
    seqGammarLMF: float = 14.0,
    seqGammarBMMIFactor: float = 0.0,
    seqGammarWordPen: float = 0.0,
    name: str = "",
) -> NoReturn:
    """Sequence training of a speech recogniser on HTK lattices, which this implementation does not have.

    The loss compares the path of the right words through a lattice of recognised words with all its paths.  It works with four
    files of an HTK set-up and with lattices that a reader takes from HTK's archives, and there is no such reader here.  For
    alignments without lattices there are ``C.cross_entropy_with_softmax`` on the states of each frame and ``C.forward_backward``.

    Raises:
        NotImplementedError: always.

    >>> C.losses.lattice_sequence_with_softmax(None, None, None, None, "symbols", "phones", "states", "transitions")
    Traceback (most recent call last):
        ...
    NotImplementedError: lattice_sequence_with_softmax: needs HTK lattices from a lattice reader, and HTK's list of states ...
    """
    raise NotImplementedError(
        "lattice_sequence_with_softmax: needs HTK lattices from a lattice reader, and HTK's list of states with its symbols, phone models "
        f"and transitions ({stateListPath!r}, {symListPath!r}, {phonePath!r}, {transProbPath!r}); opencntk reads none of these. "
        "Train on the states of each frame with cross_entropy_with_softmax instead"
    )
