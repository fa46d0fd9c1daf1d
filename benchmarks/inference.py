"""The convolutional network on one image, as a program that serves requests runs it."""

from convolution import PER_IMAGE, SIDE, WEIGHTS, cntk_model, torch_model
from data import features
from torch_mode import prepared

TITLE = "convolutional network: inference of one image"
FLOP = 2 * PER_IMAGE
BYTES = 4 * (SIDE * SIDE + WEIGHTS)


def cntk_step():
    import cntk as C

    x = C.input_variable((SIDE, SIDE))
    model = cntk_model(x)

    def step(image):
        model.eval({x: image})

    return step


def cntk_data():
    return [(image,) for image in features(1, (SIDE, SIDE))]


def torch_step():
    import torch

    model = prepared(torch_model().eval())

    def step(image):
        with torch.inference_mode():
            model(image)

    return step


def torch_data():
    import torch

    return [(torch.from_numpy(image),) for image in features(1, (1, SIDE, SIDE))]
