"""Recognising handwritten digits: train a small convolutional network, test it, save a picture of what it recognises.

python examples/mnist.py                 8 x 8 digits that come with scikit-learn, enlarged
python examples/mnist.py --data FOLDER   MNIST's own files, train-* and t10k-*, or t10k-* alone
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from idx import read_idx

import cntk as C

SIZE = 28
CLASSES = 10
TRAINED_SHARE = 0.85
"""Share of the images that are trained on where there is no test set apart."""


class Digits(NamedTuple):
    """Images as floats in [0, 1], ``(n, 28, 28)``, and one-hot labels, ``(n, 10)``."""

    images: Any
    labels: Any


# ---- data ----


def load(folder: str | None) -> tuple[Digits, Digits]:
    """Training and test set: MNIST from a folder, or scikit-learn's digits."""
    if folder is None:
        return split(sklearn_digits())
    test = mnist(Path(folder), "t10k")
    return (mnist(Path(folder), "train"), test) if find(Path(folder), "train-images-idx3-ubyte") else split(test)


def sklearn_digits() -> Digits:
    """1,797 digits of 8 x 8 pixels, each pixel enlarged to 3 x 3 and a margin of 2 around."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    enlarged = np.kron(images.reshape(-1, 8, 8), np.ones((1, 3, 3)))
    return digits(np.pad(enlarged, [(0, 0), (2, 2), (2, 2)]) / 16, labels)


def mnist(folder: Path, part: str) -> Digits:
    """One of MNIST's two parts, ``train`` or ``t10k``."""
    images, labels = (read_idx(required(folder, f"{part}-{kind}-idx{rank}-ubyte"), rank) for kind, rank in (("images", 3), ("labels", 1)))
    if images.shape[1:] != (SIZE, SIZE) or len(images) != len(labels) or (len(labels) and labels.max() >= CLASSES):
        raise ValueError(f"{folder}: {part} holds images {images.shape} and labels {labels.shape}; expected as many digits of 28 x 28")
    return digits(images / 255, labels)


def find(folder: Path, name: str) -> Path | None:
    """The file whose name ends like this, gzipped or not."""
    return next((path for ending in ("", ".gz") for path in sorted(folder.glob(f"*{name}{ending}"))), None)


def required(folder: Path, name: str) -> Path:
    """The same, where it must be there."""
    found = find(folder, name)
    if found is None:
        raise FileNotFoundError(f"{folder} holds no file called {name} or {name}.gz")
    return found


def digits(images: Any, labels: Any) -> Digits:
    """Images and class numbers in the form the network takes."""
    return Digits(images.astype(np.float32), np.eye(CLASSES, dtype=np.float32)[labels])


def split(all_digits: Digits) -> tuple[Digits, Digits]:
    """Training and test set, by a permutation that is always the same."""
    order = np.random.default_rng(0).permutation(len(all_digits.images))
    cut = int(TRAINED_SHARE * len(order))
    train, test = (Digits(all_digits.images[part], all_digits.labels[part]) for part in (order[:cut], order[cut:]))
    return train, test


# ---- network ----


def create_model() -> Any:
    """The network: three convolutions with pooling between, then two dense layers with dropout between."""
    with C.layers.default_options(activation=C.relu, pad=False):
        return C.layers.Sequential(
            [
                C.layers.Convolution2D((5, 5), num_filters=32, reduction_rank=0, pad=True),
                C.layers.MaxPooling((3, 3), strides=(2, 2)),
                C.layers.Convolution2D((3, 3), num_filters=48),
                C.layers.MaxPooling((3, 3), strides=(2, 2)),
                C.layers.Convolution2D((3, 3), num_filters=64),
                C.layers.Dense(96),
                C.layers.Dropout(0.5),
                C.layers.Dense(CLASSES, activation=None),
            ]
        )


def train(data: Digits, epochs: int, minibatch_size: int) -> tuple[Any, Any]:
    """Train a new network; return it and its criterion (loss and error)."""
    x, y = C.input_variable((SIZE, SIZE)), C.input_variable(CLASSES)
    model = create_model()(x)
    criterion = C.combine([C.cross_entropy_with_softmax(model, y), C.classification_error(model, y)])
    learner = C.momentum_sgd(model.parameters, C.learning_parameter_schedule(0.1), C.momentum_schedule(0.9))
    printer = C.logging.ProgressPrinter(freq=20, num_epochs=epochs)
    criterion.train(data, minibatch_size=minibatch_size, max_epochs=epochs, parameter_learners=[learner], callbacks=[printer])
    return model, criterion


# ---- picture ----


def save_picture(path: Path, images: Any, scores: Any, labels: Any) -> None:
    """Draw digits with what was recognised above each, in red where that is wrong."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, places = pyplot.subplots(4, 8, figsize=(8, 5))
    for place, image, recognised, right in zip(places.flat, images, scores.argmax(axis=1), labels.argmax(axis=1), strict=False):
        place.imshow(image, cmap="gray_r")
        place.set_title(str(recognised), color="black" if recognised == right else "red")
    for place in places.flat:
        place.axis("off")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    pyplot.close(figure)


def main(arguments: Sequence[str] | None = None) -> float:
    """Run the example; return the share of test digits that are not recognised."""
    parser = argparse.ArgumentParser(description="Train a network that recognises handwritten digits.")
    parser.add_argument("--data", help="folder with MNIST's files; scikit-learn's digits where left out")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--minibatch-size", type=int, default=32)
    parser.add_argument("--output", type=Path, default=Path("demo-output/digits.png"), help="where the picture goes")
    options = parser.parse_args(arguments)

    C.cntk_py.set_fixed_random_seed(1)
    training, test = load(options.data)
    print(f"{len(training.images)} digits to train on, {len(test.images)} to test on")
    start = time.perf_counter()
    model, criterion = train(training, options.epochs, options.minibatch_size)
    print(f"trained in {time.perf_counter() - start:.0f} s")
    error = criterion.test(test, minibatch_size=256).metric
    shown = slice(0, 32)
    save_picture(options.output, test.images[shown], model.eval(test.images[shown]), test.labels[shown])
    print(f"test error {error:.2%}; see what is recognised in {options.output}")
    return float(error)


if __name__ == "__main__":
    main()
