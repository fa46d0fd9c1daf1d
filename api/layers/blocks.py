"""Blocks under the name of CNTK's module of them: small functions that layers are made of."""

from __future__ import annotations

from cntk.layers.basic_blocks import ForwardDeclaration, Stabilizer, UntestedBranchError, identity
from cntk.layers.recurrent_blocks import GRU, LSTM, RNNStep, RNNUnit
from cntk.ops.functions import BlockFunction as BlockFunction

__all__ = ["GRU", "LSTM", "ForwardDeclaration", "RNNStep", "RNNUnit", "Stabilizer", "UntestedBranchError", "identity"]
