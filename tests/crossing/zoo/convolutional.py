"""Convolution, pooling and what goes with images."""

import cntk as C

from .model import model, numbers, steps


def image(*shape):
    return C.input_variable(shape, name="x"), {"x": numbers(2, *shape)}


@model
def small_network():
    x, data = image(2, 6, 6)
    layers = [
        C.layers.Convolution((3, 3), 3, pad=True, activation=C.relu),
        C.layers.BatchNormalization(map_rank=1),
        C.layers.MaxPooling((2, 2), strides=2),
        C.layers.Dropout(0.3, seed=5),
        C.layers.Dense(2),
    ]
    return C.layers.Sequential(layers)(x), data


@model
def strided_and_unpadded():
    x, data = image(2, 7, 8)
    return C.layers.Convolution((3, 2), 4, strides=(2, 3), pad=False, bias=False)(x), data


@model
def dilated():
    """Which CNTK computes on a GPU only."""
    x, data = image(1, 8, 8)
    return C.layers.Convolution((3, 3), 2, pad=[True, False], dilation=(2, 2))(x), data


@model
def grouped():
    x, data = image(4, 5, 5)
    return C.convolution(C.parameter((4, 2, 3, 3), init=numbers(4, 2, 3, 3), name="W"), x, auto_padding=[False, True, True], groups=2), data


@model
def along_one_axis():
    x, data = image(3, 9)
    return C.layers.Convolution1D(3, 2, strides=2, pad=True, activation=C.tanh)(x), data


@model
def of_volumes():
    x, data = image(1, 4, 5, 6)
    return C.layers.Convolution3D((2, 3, 2), 2, pad=True)(x), data


@model
def without_channels():
    x, data = image(6, 6)
    return C.layers.Convolution((3, 3), 2, reduction_rank=0, pad=True)(x), data


@model
def transposed():
    x, data = image(2, 4, 4)
    return C.layers.ConvolutionTranspose((3, 3), 3, strides=2, pad=True, output_shape=(8, 8))(x), data


@model
def pooled():
    x, data = image(2, 6, 7)
    averages = C.layers.AveragePooling((3, 2), strides=(2, 2), pad=True)(x)
    return C.combine([averages, C.layers.MaxPooling((2, 2), strides=(2, 3))(x), C.layers.GlobalAveragePooling()(x)]), data


@model
def pooled_with_ceil():
    x, data = image(1, 5, 5)
    return C.combine([C.pooling(x, C.MAX_POOLING, (2, 2), 2, ceil_out_dim=True), C.layers.GlobalMaxPooling()(x)]), data


@model
def unpooled():
    x, data = image(2, 4, 4)
    down = C.layers.MaxPooling((2, 2), strides=(2, 2))(x)
    return C.layers.MaxUnpooling((2, 2), strides=(2, 2))(down, x), data


@model
def residual_block():
    x, data = image(3, 6, 6)

    def normalised(channels, strides=1, activation=C.relu):
        return C.layers.Sequential(
            [
                C.layers.Convolution((3, 3), channels, strides=strides, pad=True, bias=False),
                C.layers.BatchNormalization(map_rank=1, normalization_time_constant=4096),
                activation,
            ]
        )

    h = normalised(4, 2)(x)
    h = C.relu(normalised(4, activation=C.layers.identity)(h) + C.layers.Convolution((1, 1), 4, strides=2)(x))
    return C.layers.AveragePooling((3, 3), name="pool")(h), data


@model
def local_response():
    x, data = image(5, 3, 3)
    return C.local_response_normalization(x, 2, 1.0, 1e-2, 0.75), data


@model
def regions_of_interest():
    x = C.input_variable((2, 6, 6), name="x")
    rois = C.input_variable((3, 4), name="rois")
    boxes = [[[0, 0, 3, 3], [1, 2, 5, 5], [0, 0, 5, 5]], [[2, 2, 3, 3], [0, 4, 5, 5], [1, 1, 1, 1]]]
    return C.roipooling(x, rois, C.MAX_POOLING, (2, 2), 1.0), {"x": numbers(2, 2, 6, 6), "rois": boxes}


@model
def rearranged():
    x, data = image(4, 2, 3)
    wide = C.depth_to_space(x, 2)
    return C.combine([wide, C.space_to_depth(wide, 2), C.pad(x, [(0, 0), (1, 2), (1, 1)], constant_value=2.5)]), data


@model
def cropped():
    x, data = image(1, 6, 6)
    small = C.layers.MaxPooling((2, 2), strides=2, name="small")(x)
    grown = C.layers.ConvolutionTranspose((2, 2), 1, strides=2, pad=False, name="grown")(small)
    return C.crop_automatic(x, grown) + C.crop_manual(grown, grown, 0, 0), data


@model
def scaled_image():
    x, data = image(2, 3, 3)
    return C.image_scaler(x, 0.5, [0.1, -0.2]), data


@model
def moving_windows():
    """Convolution along sequences."""
    x = C.sequence.input_variable((2,), name="x")
    return C.layers.SequentialConvolution(3, 2, strides=1, pad=True, reduction_rank=1)(x), {"x": steps(2, lengths=(5, 2, 7))}


@model
def strided_windows():
    x = C.sequence.input_variable((2, 4), name="x")
    layer = C.layers.SequentialConvolution((3, 2), 3, strides=(2, 1), pad=(False, True), reduction_rank=1)
    return layer(x), {"x": steps(2, 4, lengths=(5, 3, 8))}
