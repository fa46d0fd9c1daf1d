"""Stacks of recurrent layers on ragged sequences against PyTorch in double precision; PyTorch in float32 tells how far off one may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import paths
from bounds import DISTURBED, UNIT, disturbed

import cntk as C

NEEDS = ("torch",)

FACTOR = 10
"""Results may be so many times as far off as PyTorch's in float32."""

SPREADS = 2
"""So many times as far off may they be as disturbed weights and sequences take PyTorch's in double precision."""

KINDS = ("lstm", "gru", "rnnReLU", "rnnTanh")


def trial(random: np.random.Generator) -> str:
    """One stack: its states, and the gradients of the sequences and the weights."""
    path, kind = str(random.choice(paths.PATHS)), str(random.choice(KINDS))
    dtype = (np.float32, np.float32, np.float64)[random.integers(3)]
    width, hidden = (int(random.choice([1, 2, 3, 8, 17, 64])) for _ in range(2))
    layers, directions = int(random.integers(1, 4)), int(random.integers(1, 3))
    lengths = random.integers(1, random.choice([2, 6, 30]), random.choice([1, 2, 5, 20]))
    sequences = [random.standard_normal((steps, width)).astype(dtype) for steps in lengths]
    slopes = [random.standard_normal((steps, hidden * directions)).astype(dtype) for steps in lengths]
    model = _model(kind, width, hidden, layers, directions == 2)
    names = _names(layers, directions)
    parameters = dict(model.named_parameters())
    size = sum(parameters[name].numel() for name in names)
    flat = (random.uniform(-1, 1, size) * random.choice([0.5, 1, 3]) / np.sqrt(hidden)).astype(dtype)
    with paths.on(path):
        x = C.sequence.input_variable(width, dtype, needs_gradient=True)
        weight = C.sequence.input_variable(hidden * directions, dtype)
        w = C.parameter(init=flat.reshape(1, -1), dtype=dtype)
        y = C.optimized_rnnstack(x, w, hidden, layers, directions == 2, kind)
        gradients, states = (y * weight).grad({x: sequences, weight: slopes}, wrt=[x, w], outputs=[y.output])
    found = np.concatenate(states), np.concatenate(gradients[x]), gradients[w].ravel()
    right = _by_torch(model, names, flat, sequences, slopes, np.float64)
    rough = _by_torch(model, names, flat, sequences, slopes, np.float32)
    unit = UNIT[dtype]
    what = f"{kind} {np.dtype(dtype)} of {width} to {hidden}, {layers} layers, {directions} directions, lengths {lengths.tolist()}"
    allowed = [
        FACTOR * (unit * np.abs(exact).max() + np.abs(theirs - exact).max() * unit / UNIT[np.float32])
        for exact, theirs in zip(right, rough, strict=True)
    ]
    errors = _distances(found, right)
    if any(error > bound for error, bound in zip(errors, allowed, strict=True)):  # PyTorch may have been lucky
        for _ in range(DISTURBED):
            near = [disturbed(random, sequence, unit) for sequence in sequences]
            other = _by_torch(model, names, disturbed(random, flat, unit), near, slopes, np.float64)
            allowed = [max(pair) for pair in zip(allowed, (SPREADS * far for far in _distances(other, right)), strict=True)]
    for name, error, bound in zip(("states", "gradient of sequences", "gradient of weights"), errors, allowed, strict=True):
        assert error <= bound, f"{what}: {name} are off by {error:.3g}, allowed are {bound:.3g}"
    return f"{kind}, {path}"


def _distances(found: Sequence[Any], right: Sequence[Any]) -> list[float]:
    return [float(np.abs(ours - exact).max()) for ours, exact in zip(found, right, strict=True)]


def _model(kind: str, width: int, hidden: int, layers: int, bidirectional: bool) -> Any:
    import torch

    kinds = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}
    options = {} if kind in kinds else {"nonlinearity": kind[3:].lower()}
    return kinds.get(kind, torch.nn.RNN)(width, hidden, layers, bidirectional=bidirectional, **options)


def _names(layers: int, directions: int) -> list[str]:
    """PyTorch's parameters in the order in which they lie in ours: all matrices, then all biases."""
    suffixes = [f"l{layer}{way}" for layer in range(layers) for way in ("", "_reverse")[:directions]]
    return [f"{part}_{suffix}" for kind in ("weight", "bias") for suffix in suffixes for part in (f"{kind}_ih", f"{kind}_hh")]


def _by_torch(model: Any, names: list[str], flat: Any, sequences: list[Any], slopes: list[Any], dtype: Any) -> tuple[Any, Any, Any]:
    """States and gradients as PyTorch has them."""
    import torch
    from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

    model = model.to(torch.float64 if dtype is np.float64 else torch.float32)
    parameters = dict(model.named_parameters())
    model.zero_grad()
    with torch.no_grad():
        begin = 0
        for name in names:
            part = parameters[name]
            part.copy_(torch.tensor(flat[begin : begin + part.numel()].astype(dtype)).reshape(part.shape))
            begin += part.numel()
    tensors = [torch.tensor(sequence.astype(dtype), requires_grad=True) for sequence in sequences]
    padded, _ = pad_packed_sequence(model(pack_sequence(tensors, enforce_sorted=False))[0], batch_first=True)
    states = torch.cat([padded[number, : len(sequence)] for number, sequence in enumerate(sequences)])
    (states * torch.tensor(np.concatenate(slopes).astype(dtype))).sum().backward()
    weights = np.concatenate([parameters[name].grad.numpy().ravel() for name in names])
    return states.detach().numpy(), np.concatenate([tensor.grad.numpy() for tensor in tensors]), weights
