"""JPEG files of 256 by 256 pixels, decoded, cropped at random, scaled, mirrored and changed in colour, in minibatches of 32.

    python benchmarks/images.py [--rounds 5]

Both read 1,000 files again and again, opencntk with its threads, PyTorch with two worker processes of its DataLoader and the same
transforms made of Pillow's functions.  A step is 256 images.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

TITLE = "images: 256 JPEG files decoded, augmented and batched"
FILES, BATCH, STEPS = 1000, 32, 8
SIDE, SCALED = 256, 224
LEAST_CROP, JITTER = 0.5, 0.2
FOLDER = Path(tempfile.gettempdir(), "opencntk-benchmark-images")


def files():
    """The list of the files, which are made where there are none: waves in each colour, and noise."""
    from PIL import Image

    listed = FOLDER / "map.txt"
    if not listed.exists():
        FOLDER.mkdir(exist_ok=True)
        random = np.random.RandomState(0)
        y, x = np.mgrid[:SIDE, :SIDE]
        for number in range(FILES):
            waves = [np.sin(x / random.uniform(10, 60) + random.uniform(0, 6)) * np.cos(y / random.uniform(10, 60)) for _ in range(3)]
            pixels = 128 + 100 * np.stack(waves, -1) + random.normal(0, 8, (SIDE, SIDE, 3))
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(FOLDER / f"{number}.jpg", quality=90)
        listed.write_text("".join(f"{FOLDER / str(number)}.jpg\t{number % 10}\n" for number in range(FILES)))
    return str(listed)


def cntk_step():
    from cntk.io import ImageDeserializer, MinibatchSource, StreamDef, StreamDefs, transforms

    done = [
        transforms.crop("randomside", side_ratio=(LEAST_CROP, 1), jitter_type="uniratio"),
        transforms.scale(SCALED, SCALED, 3),
        transforms.color(JITTER, JITTER, JITTER),
    ]
    streams = StreamDefs(features=StreamDef(field="image", transforms=done), labels=StreamDef(field="label", shape=10))
    source = MinibatchSource(ImageDeserializer(files(), streams))

    def step():
        for _ in range(STEPS):
            source.next_minibatch(BATCH)[source.streams.features].data.asarray()

    return step


def cntk_data():
    return [()]


def torch_step():
    from torch.utils.data import DataLoader

    batches = endless(DataLoader(Photographs(), BATCH, shuffle=True, num_workers=2, persistent_workers=True))

    def step():
        for _ in range(STEPS):
            next(batches)

    return step


def torch_data():
    return [()]


def endless(loader):
    while True:
        yield from loader


class Photographs:
    """A data set of the files, for PyTorch."""

    def __init__(self):
        lines = Path(files()).read_text().splitlines()
        self.items = [(path, int(label)) for path, label in (line.split("\t") for line in lines)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, number):
        import torch
        from PIL import Image, ImageEnhance

        def draw(low, high):
            return low + (high - low) * torch.rand(()).item()

        path, label = self.items[number]
        image = Image.open(path).convert("RGB")
        side = round(min(image.size) * draw(LEAST_CROP, 1))
        x, y = (int(draw(0, left - side + 1)) for left in image.size)
        image = image.resize((SCALED, SCALED), Image.BILINEAR, (x, y, x + side, y + side))
        if draw(0, 1) < 0.5:
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
        for enhance in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
            image = enhance(image).enhance(draw(1 - JITTER, 1 + JITTER))
        return torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().float(), label


def main():
    parser = argparse.ArgumentParser(description="Compare reading images with PyTorch's DataLoader.")
    parser.add_argument("--rounds", type=int, default=5)
    files()
    times = {"cntk": [], "torch": []}
    for _ in range(parser.parse_args().rounds):
        for framework, taken in times.items():
            command = [sys.executable, str(Path(__file__).with_name("worker.py")), "step_time", "images", framework]
            taken.append(float(subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ).stdout.split()[-1]))
    ours, theirs = (STEPS * BATCH / median(taken) for taken in times.values())
    print(f"images a second: opencntk {ours:.0f}, PyTorch {theirs:.0f}; ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
