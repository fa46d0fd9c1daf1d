"""Layers: functions that make functions with parameters of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cntk.default_options import default_options, default_options_for
from cntk.initializer import glorot_uniform
from cntk.layers import layers as layers
from cntk.layers.activation import Activation, Dropout, Label
from cntk.layers.blocks import GRU, LSTM, ForwardDeclaration, RNNStep, RNNUnit, Stabilizer, UntestedBranchError, identity
from cntk.layers.convolutions import Convolution, Convolution1D, Convolution2D, Convolution3D
from cntk.layers.dense import Dense, Embedding
from cntk.layers.higher_order_layers import For, ResNetBlock, Sequential, SequentialClique
from cntk.layers.models import AttentionModel
from cntk.layers.normalization import BatchNormalization, LayerNormalization
from cntk.layers.poolings import AveragePooling, GlobalAveragePooling, GlobalMaxPooling, MaxPooling, MaxUnpooling
from cntk.layers.sequence import Delay, Fold, PastValueWindow, Recurrence, RecurrenceFrom, UnfoldFrom
from cntk.layers.sequential_convolutions import SequentialConvolution
from cntk.layers.transposed_convolutions import ConvolutionTranspose, ConvolutionTranspose1D, ConvolutionTranspose2D, ConvolutionTranspose3D
from cntk.layers.typing import ParameterTensor, Sequence, SequenceOver, SequenceOverMeta, Signature, SparseTensor, Tensor, tensor
from cntk.ops import sequence as sequence  # CNTK shows the operators here; the layers are imported from the module of that name
from cntk.ops.functions import BlockFunction, Function

__all__ = [
    "GRU",
    "LSTM",
    "Activation",
    "AttentionModel",
    "AveragePooling",
    "BatchNormalization",
    "BlockFunction",
    "Convolution",
    "Convolution1D",
    "Convolution2D",
    "Convolution3D",
    "ConvolutionTranspose",
    "ConvolutionTranspose1D",
    "ConvolutionTranspose2D",
    "ConvolutionTranspose3D",
    "Delay",
    "Dense",
    "Dropout",
    "Embedding",
    "Fold",
    "For",
    "ForwardDeclaration",
    "Function",
    "GlobalAveragePooling",
    "GlobalMaxPooling",
    "Label",
    "LayerNormalization",
    "MaxPooling",
    "MaxUnpooling",
    "ParameterTensor",
    "PastValueWindow",
    "RNNStep",
    "RNNUnit",
    "Recurrence",
    "RecurrenceFrom",
    "ResNetBlock",
    "Sequence",
    "SequenceOver",
    "SequenceOverMeta",
    "Sequential",
    "SequentialClique",
    "SequentialConvolution",
    "Signature",
    "SparseTensor",
    "Stabilizer",
    "Tensor",
    "UnfoldFrom",
    "UntestedBranchError",
    "default_options",
    "default_options_for",
    "glorot_uniform",
    "identity",
    "tensor",
]

if TYPE_CHECKING:
    from cntk.layers import _names
    from cntk.layers._names import *

    __all__ += _names.__all__
