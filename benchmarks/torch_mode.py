"""How PyTorch runs a network: the environment variable TORCH_MODE names the mode, and the best one counts."""

import os

EAGER, COMPILED, CHANNELS_LAST, BOTH = "", "compiled", "channels last", "channels last, compiled"
REDUCED_OVERHEAD = "compiled, reduced overhead"
"""On GPUs: what is compiled is launched as CUDA graphs."""

DENSE_MODES = EAGER, COMPILED
IMAGE_MODES = EAGER, COMPILED, CHANNELS_LAST, BOTH


def prepared(model):
    """A module as the mode wants it."""
    import torch

    mode = os.environ.get("TORCH_MODE", EAGER)
    if CHANNELS_LAST in mode:
        model = model.to(memory_format=torch.channels_last)
    if mode == REDUCED_OVERHEAD:
        return torch.compile(model, mode="reduce-overhead")
    return torch.compile(model) if COMPILED in mode else model
