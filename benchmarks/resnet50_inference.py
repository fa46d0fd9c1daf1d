"""ResNet-50 on one image and on sixteen, as a program that serves requests runs it: ``resnet50_inference:16``."""

import numpy as np
from data import features
from resnet50 import ACTIVATIONS, CHANNELS, PER_IMAGE, SIDE, WEIGHTS, cntk_model, torch_model
from torch_mode import prepared

SIZES = {"1": 1, "16": 16}
TITLES = {"1": "ResNet-50: inference of one image of 224x224", "16": "ResNet-50: inference of 16 images of 224x224"}


def flop(name):
    """Operations of a step."""
    return 2 * SIZES[name] * PER_IMAGE


def nbytes(name):
    """Data in, and weights; what a convolution gives goes out to memory and comes back where it is larger than caches."""
    return 4 * (SIZES[name] * (CHANNELS * SIDE**2 + 2 * ACTIVATIONS) + WEIGHTS)


def cntk_step(name):
    import cntk as C

    x = C.input_variable((CHANNELS, SIDE, SIDE))
    model = cntk_model(x)
    set_statistics(model)

    def step(images):
        model.eval({x: images})

    return step


def set_statistics(model):
    """Statistics as of a network that has been trained, with which values neither vanish nor overflow."""
    random = np.random.RandomState(2)
    for constant in model.constants:
        if constant.name == "aggregate_mean":
            constant.value = random.randn(*constant.shape).astype(np.float32) * 0.1
        elif constant.name == "aggregate_variance":
            constant.value = random.uniform(1, 3, constant.shape).astype(np.float32)


def cntk_data(name):
    return [(images,) for images in features(SIZES[name], (CHANNELS, SIDE, SIDE))]


def torch_step(name):
    import torch

    model = torch_model()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(1, 3)
    model = prepared(model.eval())

    def step(images):
        with torch.inference_mode():
            model(images)

    return step


def torch_data(name):
    import torch

    return [(torch.from_numpy(images),) for (images,) in cntk_data(name)]
