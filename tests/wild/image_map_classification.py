"""Trains a convolutional network on images that a map file lists, with crops, scaling, colours and a mean image.

Usage: python image_map_classification.py [-epochs N] [-datadir DIR]
"""

from __future__ import print_function
import argparse
import math
import os
import struct
import xml.etree.ElementTree as et
import xml.dom.minidom
import numpy as np
import cntk
import cntk as C
import cntk.io.transforms as xforms
from cntk.device import try_set_default_device, cpu
from cntk.logging import ProgressPrinter, log_number_of_parameters
from cntk.layers import Convolution2D, MaxPooling, Dense, For, Sequential, default_options
from cntk.ops import *
from cntk.losses import cross_entropy_with_softmax
from cntk.metrics import classification_error

abs_path = os.getcwd()
data_path = os.path.join(abs_path, "images")
model_path = os.path.join(abs_path, "Models")

image_height = 16
image_width = 16
num_channels = 3
num_classes = 4

try_set_default_device(cpu())


# ---------------------------------------------------------------------------
# data
# ---------------------------------------------------------------------------
def save_image(fname, pixels):
    """An uncompressed bitmap of 24 bits; pixels are (height, width, 3) in the order blue, green, red."""
    height, width, _ = pixels.shape
    padding = b"\0" * (-3 * width % 4)
    rows = b"".join(pixels[y].tobytes() + padding for y in reversed(range(height)))
    with open(fname, "wb") as f:
        f.write(b"BM" + struct.pack("<IHHI", 54 + len(rows), 0, 0, 54))
        f.write(struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(rows), 2835, 2835, 0, 0))
        f.write(rows)


def save_mean(fname, data):
    root = et.Element("opencv_storage")
    et.SubElement(root, "Channel").text = "3"
    et.SubElement(root, "Row").text = str(image_height)
    et.SubElement(root, "Col").text = str(image_width)
    mean_img = et.SubElement(root, "MeanImg", type_id="opencv-matrix")
    et.SubElement(mean_img, "rows").text = "1"
    et.SubElement(mean_img, "cols").text = str(image_height * image_width * 3)
    et.SubElement(mean_img, "dt").text = "f"
    et.SubElement(mean_img, "data").text = " ".join(["%e" % n for n in np.reshape(data, (image_height * image_width * 3))])
    tree = et.ElementTree(root)
    tree.write(fname)
    x = xml.dom.minidom.parse(fname)
    with open(fname, "w") as f:
        f.write(x.toprettyxml(indent="  "))


def make_picture(rng, label):
    """A bright bar or square on noise; 32 x 32."""
    img = rng.randint(0, 120, (32, 32, 3))
    at = rng.randint(6, 18)
    if label == 0:
        img[:, at : at + 6, 0] += 130
    elif label == 1:
        img[at : at + 6, :, 1] += 130
    elif label == 2:
        img[at : at + 8, at : at + 8, 2] += 130
    else:
        img[:, at : at + 4] += 60
        img[at : at + 4] += 60
    return img.astype(np.uint8)


def prepare(folder, num_train, num_test):
    if not os.path.exists(folder):
        os.mkdir(folder)
    rng = np.random.RandomState(98052)
    mean = np.zeros((3, image_height, image_width))
    for prefix, count in (("train", num_train), ("test", num_test)):
        with open(os.path.join(folder, prefix + "_map.txt"), "w") as map_file:
            for i in range(count):
                label = i % num_classes
                fname = os.path.join(folder, "%s_%03d.bmp" % (prefix, i))
                img = make_picture(rng, label)
                save_image(fname, img)
                map_file.write("%s\t%d\n" % (fname, label))
                if prefix == "train":
                    mean += img[::2, ::2].transpose(2, 0, 1)
    save_mean(os.path.join(folder, "mean.xml"), mean / num_train)


# ---------------------------------------------------------------------------
# reader
# ---------------------------------------------------------------------------
def create_reader(map_file, mean_file, is_training):
    if not os.path.exists(map_file) or not os.path.exists(mean_file):
        raise RuntimeError("File '%s' or '%s' does not exist." % (map_file, mean_file))

    transforms = []
    if is_training:
        transforms += [xforms.crop(crop_type="center", side_ratio=0.75, jitter_type="uniratio")]
    transforms += [
        xforms.scale(width=image_width, height=image_height, channels=num_channels, interpolations="linear"),
        xforms.color(brightness_radius=0.0, contrast_radius=0.0, saturation_radius=0.0),
        xforms.mean(mean_file),
    ]
    return cntk.io.MinibatchSource(
        cntk.io.ImageDeserializer(
            map_file,
            cntk.io.StreamDefs(
                features=cntk.io.StreamDef(field="image", transforms=transforms), labels=cntk.io.StreamDef(field="label", shape=num_classes)
            ),
        ),
        randomize=False,
        max_samples=cntk.io.INFINITELY_REPEAT if is_training else cntk.io.FULL_DATA_SWEEP,
        multithreaded_deserializer=True,
    )


# ---------------------------------------------------------------------------
# network
# ---------------------------------------------------------------------------
def create_network():
    input_var = C.input_variable((num_channels, image_height, image_width), name="image")
    label_var = C.input_variable(num_classes, name="label")

    scaled_input = element_times(input_var, constant(0.00390625))
    with default_options(activation=relu, pad=True, init=C.initializer.glorot_uniform()):
        z = Sequential(
            [
                For(
                    range(2),
                    lambda i: [
                        Convolution2D((3, 3), 8, pad=True, name="conv%d" % i),
                        Convolution2D((3, 3), 8, strides=(1, 1)),
                        MaxPooling((3, 3), strides=(2, 2), pad=True),
                    ],
                ),
                For(range(1), lambda: [Dense(16)]),
                Dense(num_classes, activation=None, name="z"),
            ]
        )(scaled_input)

    ce = cross_entropy_with_softmax(z, label_var)
    pe = classification_error(z, label_var)
    return {"feature": input_var, "label": label_var, "ce": ce, "pe": pe, "output": z}


def train_and_test(network, reader_train, reader_test, epoch_size, max_epochs, minibatch_size):
    lr_per_sample = [0.0015625] * 2 + [0.00046875]
    lr_schedule = C.learning_parameter_schedule_per_sample(lr_per_sample, epoch_size=epoch_size)
    mm_time_constant = [0] + [64]
    mm_schedule = C.learners.momentum_as_time_constant_schedule(mm_time_constant, epoch_size=epoch_size)
    l2_reg_weight = 0.002

    progress_printer = ProgressPrinter(tag="Training", num_epochs=max_epochs)
    learner = C.learners.momentum_sgd(network["output"].parameters, lr_schedule, mm_schedule, l2_regularization_weight=l2_reg_weight)
    trainer = C.Trainer(network["output"], (network["ce"], network["pe"]), [learner], [progress_printer])

    input_map = {network["feature"]: reader_train.streams.features, network["label"]: reader_train.streams.labels}
    log_number_of_parameters(network["output"])
    print()

    for epoch in range(max_epochs):
        sample_count = 0
        while sample_count < epoch_size:
            data = reader_train.next_minibatch(min(minibatch_size, epoch_size - sample_count), input_map=input_map)
            trainer.train_minibatch(data)
            sample_count += trainer.previous_minibatch_sample_count
        trainer.summarize_training_progress()
        network["output"].save(os.path.join(model_path, "ConvNet_{}.dnn".format(epoch)))

    # test: the source ends after one sweep
    metric_numer = 0
    metric_denom = 0
    minibatch_index = 0
    test_map = {network["feature"]: reader_test.streams.features, network["label"]: reader_test.streams.labels}
    while True:
        data = reader_test.next_minibatch(10, input_map=test_map)
        if not data:
            break
        local = data[network["label"]].num_samples
        metric_numer += trainer.test_minibatch(data) * local
        metric_denom += local
        minibatch_index += 1
    print(
        "Final Results: Minibatch[1-{}]: errs = {:0.1f}% * {}".format(minibatch_index, (metric_numer * 100.0) / metric_denom, metric_denom)
    )


def evaluate_one(model_file, reader, index):
    """Loads the model of an epoch, takes its part up to the scores and shows what it says of one image."""
    z = C.load_model(model_file)
    node = z.find_by_name("z")
    scores = C.softmax(C.combine([node.owner] if isinstance(node, C.Variable) else [node.root_function]))
    mb = reader.next_minibatch(index)
    images = mb[reader.streams.features].asarray()
    probs = scores.eval({scores.arguments[0]: images[-1:]})[0]
    top = [(p, i) for p, i in zip(np.squeeze(probs), range(num_classes))]
    for p, i in sorted(top, reverse=True)[:2]:
        print("  class %d: %.3f" % (i, p))
    first_filters = z.find_by_name("conv0").W.value
    print("  filters %s, mean %.5f" % (first_filters.shape, first_filters.mean()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("-epochs", "--epochs", type=int, default=3, required=False)
    parser.add_argument("-datadir", "--datadir", default=data_path, required=False)
    args = vars(parser.parse_args())

    C.cntk_py.set_fixed_random_seed(1)
    C.cntk_py.force_deterministic_algorithms()
    if not os.path.isdir(model_path):
        os.mkdir(model_path)
    prepare(args["datadir"], 48, 20)

    mean_file = os.path.join(args["datadir"], "mean.xml")
    train_map = os.path.join(args["datadir"], "train_map.txt")
    test_map = os.path.join(args["datadir"], "test_map.txt")
    network = create_network()
    train_and_test(
        network,
        create_reader(train_map, mean_file, True),
        create_reader(test_map, mean_file, False),
        epoch_size=48,
        max_epochs=args["epochs"],
        minibatch_size=16,
    )
    evaluate_one(os.path.join(model_path, "ConvNet_%d.dnn" % (args["epochs"] - 1)), create_reader(test_map, mean_file, False), 3)
