"""The layers under the name of CNTK's module of them."""

from __future__ import annotations

from cntk.layers.activation import Activation, Dropout, Label
from cntk.layers.convolutions import Convolution, Convolution1D, Convolution2D, Convolution3D
from cntk.layers.dense import Dense, Embedding
from cntk.layers.normalization import BatchNormalization, LayerNormalization
from cntk.layers.poolings import AveragePooling, GlobalAveragePooling, GlobalMaxPooling, MaxPooling, MaxUnpooling
from cntk.layers.sequential_convolutions import SequentialConvolution
from cntk.layers.transposed_convolutions import ConvolutionTranspose, ConvolutionTranspose1D, ConvolutionTranspose2D, ConvolutionTranspose3D

__all__ = [
    "Activation",
    "AveragePooling",
    "BatchNormalization",
    "Convolution",
    "Convolution1D",
    "Convolution2D",
    "Convolution3D",
    "ConvolutionTranspose",
    "ConvolutionTranspose1D",
    "ConvolutionTranspose2D",
    "ConvolutionTranspose3D",
    "Dense",
    "Dropout",
    "Embedding",
    "GlobalAveragePooling",
    "GlobalMaxPooling",
    "Label",
    "LayerNormalization",
    "MaxPooling",
    "MaxUnpooling",
    "SequentialConvolution",
]
