"""Networks that PyTorch exports to ONNX, with free sizes of batches and lengths, compute what they compute there."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import cntk as C

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("onnx", reason="onnx is not installed")
nn = torch.nn

Axes = Sequence[dict[int, str]]
BATCH, SEQUENCE, IMAGE = {0: "batch"}, {0: "batch", 1: "time"}, {0: "batch", 2: "height", 3: "width"}


class Composed(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
    """Modules and what is done with them."""

    def __init__(self, forward: Callable[..., Any], *parts: Any) -> None:
        super().__init__()
        self.parts, self.done = nn.ModuleList(parts), forward

    def forward(self, *operands: Any) -> Any:
        return self.done(self.parts, *operands)


def images() -> Any:
    first = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.Conv2d(8, 16, 3, stride=2, padding=1)]
    return nn.Sequential(*first, nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)), [(2, 3, 16, 16)], [BATCH], True


def images_of_any_size() -> Any:
    parts = [nn.Conv2d(3, 4, 3, padding=1), nn.GELU(), nn.MaxPool2d(2), nn.Upsample(scale_factor=2), nn.Conv2d(4, 2, 1)]
    return nn.Sequential(*parts), [(2, 3, 8, 8)], [{0: "batch", 2: "height", 3: "width"}], True


def encoder_and_decoder_of_images() -> Any:
    def forward(parts: Any, x: Any) -> Any:
        wide = torch.relu(parts[0](x))
        deep = torch.relu(parts[2](parts[1](wide)))
        return parts[4](torch.cat([wide, parts[3](deep)], 1))

    parts = [
        nn.Conv2d(3, 4, 3, padding=1),
        nn.Conv2d(4, 8, 3, 2, 1),
        nn.GroupNorm(2, 8),
        nn.ConvTranspose2d(8, 4, 2, 2),
        nn.Conv2d(8, 2, 1),
    ]
    return Composed(forward, *parts), [(2, 3, 8, 8)], [BATCH], True


def channels_shuffled() -> Any:
    def forward(parts: Any, x: Any) -> Any:
        y = parts[0](x)
        n, c, h, w = y.shape
        return torch.log_softmax(parts[1](y.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, -1)), -1)

    return Composed(forward, nn.Conv2d(4, 8, 1, groups=2), nn.Linear(8 * 9, 3)), [(2, 4, 3, 3)], [BATCH], True


def bidirectional_lstm() -> Any:
    lstm = nn.LSTM(5, 7, batch_first=True, num_layers=2, bidirectional=True)
    return Composed(lambda parts, x: parts[1](parts[0](x)[0]), lstm, nn.Linear(14, 3)), [(2, 6, 5)], [SEQUENCE], True


def lstm_with_steps_first() -> Any:
    return Composed(lambda parts, x: parts[0](x)[0].transpose(0, 1), nn.LSTM(5, 7)), [(6, 2, 5)], [{0: "time", 1: "batch"}], True


def gru_with_a_state() -> Any:
    gru = nn.GRU(5, 7, batch_first=True)
    return Composed(lambda parts, x, h: parts[0](x, h)[0], gru), [(2, 6, 5), (1, 2, 7)], [SEQUENCE, {1: "batch"}], True


def recurrence_of_words() -> Any:
    parts = nn.Embedding(20, 5), nn.RNN(5, 7, batch_first=True, nonlinearity="relu"), nn.Linear(7, 4)
    return Composed(lambda parts, x: parts[2](parts[1](parts[0](x))[0]), *parts), [(2, 6)], [SEQUENCE], True


def attention_to_another_sequence() -> Any:
    module = Composed(lambda parts, x, y: parts[0](x, y, y)[0], nn.MultiheadAttention(8, 2, batch_first=True))
    return module, [(2, 6, 8), (2, 4, 8)], [{0: "batch", 1: "time"}, {0: "batch", 1: "keys"}], False


def transformer() -> Any:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu", norm_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), [(2, 6, 8)], [SEQUENCE], False


def image_patches() -> Any:
    def forward(parts: Any, x: Any) -> Any:
        return parts[2](parts[1](parts[0](x).flatten(2).transpose(1, 2))[:, 0])

    parts = nn.Conv2d(3, 8, 4, 4), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), nn.Linear(8, 3)
    return Composed(forward, *parts), [(2, 3, 8, 8)], [BATCH], True


class Decoder(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
    """Words with learned places, and attention that sees what was before, of any length."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(20, 8), nn.Parameter(torch.randn(1, 32, 8))
        self.all, self.norm = nn.Linear(8, 24), nn.LayerNorm(8)
        self.register_buffer("before", torch.tril(torch.ones(32, 32)).bool())

    def forward(self, x: Any) -> Any:
        n, t = x.shape
        h = self.words(x) + self.places[:, :t]
        q, k, v = self.all(self.norm(h)).view(n, t, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-1, -2) / 2).masked_fill(~self.before[:t, :t], float("-inf"))
        return (h + (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, 8)) @ self.words.weight.T


def words_that_come_next() -> Any:
    return Decoder(), [(2, 6)], [SEQUENCE], True


def rotated_places() -> Any:
    def forward(parts: Any, x: Any) -> Any:
        angles = torch.arange(x.shape[1], dtype=torch.float32)[:, None] * torch.tensor([1.0, 0.1])
        c, s, a, b = angles.cos(), angles.sin(), x[..., ::2], x[..., 1::2]
        return parts[0](torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)) / x.shape[1]

    return Composed(forward, nn.Linear(4, 3)), [(2, 6, 4)], [SEQUENCE], True


def images_resized_to_others() -> Any:
    def forward(parts: Any, x: Any) -> Any:
        wide = torch.relu(parts[0](x))
        deep = nn.functional.interpolate(parts[1](nn.functional.max_pool2d(wide, 2)), size=wide.shape[2:], mode="bilinear")
        return nn.functional.interpolate(torch.cat([wide, deep], 1), scale_factor=1.5, mode="bicubic", align_corners=True)

    parts = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 2, 3, padding=1, padding_mode="replicate")
    return Composed(forward, *parts), [(2, 3, 8, 8)], [IMAGE], True


def pixels_shuffled() -> Any:
    parts = [nn.PixelUnshuffle(2), nn.Conv2d(12, 9, 3, padding=1, padding_mode="circular"), nn.PixelShuffle(3)]
    return nn.Sequential(*parts), [(2, 3, 8, 8)], [IMAGE], True


def attention_of_pixels() -> Any:
    def forward(parts: Any, x: Any) -> Any:
        n, _, h, w = x.shape
        q, k, v = (part(x).flatten(2) for part in parts)
        return x + (v @ (q.transpose(1, 2) @ k).softmax(-1)).view(n, -1, h, w)

    return Composed(forward, *(nn.Conv2d(3, 3, 1) for _ in range(3))), [(2, 3, 8, 8)], [IMAGE], True


def letters_of_words() -> Any:
    def forward(parts: Any, x: Any) -> Any:
        n, t = x.shape
        letters = parts[0](x.unsqueeze(-1) * torch.arange(3) % 20).view(n * t, 3, 4).transpose(1, 2)
        return parts[1](letters).max(-1)[0].view(n, t, 5)

    return Composed(forward, nn.Embedding(20, 4), nn.Conv1d(4, 5, 2)), [(2, 6)], [SEQUENCE], True


def the_last_word_of_each() -> Any:
    def forward(parts: Any, x: Any) -> Any:
        h = parts[1](parts[0](x))[0]
        last = (x > 9).sum(1).clamp(min=1) - 1
        return h.gather(1, last.view(-1, 1, 1).expand(-1, 1, h.size(2))).squeeze(1)

    return Composed(forward, nn.Embedding(20, 4), nn.GRU(4, 5, batch_first=True)), [(2, 6)], [SEQUENCE], True


def words_by_their_places() -> Any:
    def forward(parts: Any, x: Any) -> Any:
        n, t = x.shape
        sample, place = torch.arange(n)[:, None, None], torch.arange(t)
        seen = (x > 0)[sample, place] & (place[None, :] <= place[:, None])
        places = torch.ones_like(x).cumsum(1) + torch.tril(torch.ones(t, t)).sum(0)
        return parts[0](x).transpose(1, 2) @ (seen * places[:, None]).transpose(1, 2).float()

    return Composed(forward, nn.Embedding(20, 4)), [(2, 6)], [SEQUENCE], True


def the_best_two_of_three() -> Any:
    def forward(parts: Any, x: Any) -> Any:
        scores = parts[0](x)
        weights, chosen = scores.topk(2, -1)
        gates = torch.zeros_like(scores).scatter(-1, chosen, weights.softmax(-1))
        return (gates.unsqueeze(-1) * torch.stack([part(x) for part in parts[1:]], -2)).sum(-2)

    return Composed(forward, nn.Linear(5, 3), *(nn.Linear(5, 4) for _ in range(3))), [(2, 6, 5)], [SEQUENCE], True


NETWORKS = (
    images,
    images_of_any_size,
    encoder_and_decoder_of_images,
    channels_shuffled,
    bidirectional_lstm,
    lstm_with_steps_first,
    gru_with_a_state,
    recurrence_of_words,
    attention_to_another_sequence,
    transformer,
    image_patches,
    words_that_come_next,
    rotated_places,
    images_resized_to_others,
    pixels_shuffled,
    attention_of_pixels,
    letters_of_words,
    the_last_word_of_each,
    words_by_their_places,
    the_best_two_of_three,
)


def data_of(shape: Sequence[int], axes: dict[int, str], sizes: dict[str, int]) -> Any:
    full = [sizes.get(axes.get(axis, ""), size) for axis, size in enumerate(shape)]
    return torch.randint(0, 20, full) if len(full) == 2 else torch.randn(full)


def exported(module: Any, shapes: Sequence[Sequence[int]], axes: Axes) -> tuple[bytes, list[Any]]:
    """The ONNX file of a module, with inputs called input0 and so on, and the operands it was exported with."""
    module.eval()
    operands = [data_of(shape, {}, {}) for shape in shapes]
    file, names = io.BytesIO(), [f"input{place}" for place in range(len(shapes))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        free = dict(zip(names, axes, strict=True))
        torch.onnx.export(module, tuple(operands), file, dynamo=False, opset_version=17, input_names=names, dynamic_axes=free)
    return file.getvalue(), operands


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.__name__)
def test_networks_agree(network: Callable[[], Any]) -> None:
    torch.manual_seed(0)
    module, shapes, axes, all_free = network()
    file, _ = exported(module, shapes, axes)
    names = [f"input{place}" for place in range(len(shapes))]
    function = C.load_model(file)
    arguments = {one.name: one for one in function.arguments}
    sizes = (
        {"batch": 3, "time": 9, "keys": 5, "height": 12, "width": 20} if all_free else {"batch": 3}
    )  # attention has its length written out
    for chosen in ({}, sizes):
        given = [data_of(shape, free, chosen) for shape, free in zip(shapes, axes, strict=True)]
        with torch.no_grad():
            right = module(*given).numpy()
        fed = {}
        for name, one, free in zip(names, given, axes, strict=True):
            batch = next(axis for axis, called in free.items() if called == "batch")
            fed[arguments[name]] = np.moveaxis(one.numpy(), batch, 0).astype(arguments[name].dtype)
        np.testing.assert_allclose(function.eval(fed), right, rtol=1e-3, atol=1e-5)


def test_a_network_goes_on_to_learn(tmp_path: Any) -> None:
    torch.manual_seed(0)
    module, shapes, axes, _ = bidirectional_lstm()
    file = tmp_path / "network.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, (torch.randn(shapes[0]),), str(file), dynamo=False, input_names=["x"], dynamic_axes={"x": axes[0]})
    function = C.load_model(file)
    data = np.random.default_rng(0).normal(size=(4, 6, 5)).astype(np.float32)
    loss = C.reduce_sum(C.square(function - 1))
    trainer = C.Trainer(function, (loss,), [C.adam(function.parameters, C.learning_parameter_schedule(0.01), C.momentum_schedule(0.9))])
    losses = []
    for _ in range(10):
        trainer.train_minibatch({function.arguments[0]: data})
        losses.append(trainer.previous_minibatch_loss_average)
    assert losses[-1] < 0.9 * losses[0]
    function.save(tmp_path / "network.model")
    again = C.load_model(tmp_path / "network.model")
    np.testing.assert_allclose(again.eval(data), function.eval(data), rtol=1e-6)
