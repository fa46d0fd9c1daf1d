# A residual network with batch normalisation, trained by a training session with checkpoints, cross validation and a final test.
from __future__ import print_function
import os
import argparse
import cntk
import numpy as np

from cntk import input, input_variable, Trainer, element_times, cross_entropy_with_softmax, classification_error
from cntk.layers import Convolution2D, GlobalAveragePooling, BatchNormalization, Dense, MaxPooling, Sequential, Activation
from cntk.initializer import he_normal, he_uniform
from cntk.ops import relu, plus, combine, constant, reshape
from cntk.train.training_session import *
from cntk.debugging import set_computation_network_trace_level
from cntk.logging import ProgressPrinter, log_number_of_parameters
from cntk.learners import momentum_sgd, learning_parameter_schedule_per_sample, momentum_schedule_per_sample
from cntk.io import MinibatchSourceFromData, FULL_DATA_SWEEP, INFINITELY_REPEAT
from cntk.train.distributed import Communicator

image_height = 8
image_width = 8
num_channels = 3
num_classes = 3
here = os.path.abspath(".")
model_path = os.path.join(here, "Models")


# ---- blocks


def conv_bn(input, filter_size, num_filters, strides=(1, 1), init=he_normal(), bn_init_scale=1):
    c = Convolution2D(filter_size, num_filters, activation=None, init=init, pad=True, strides=strides, bias=False)(input)
    r = BatchNormalization(
        map_rank=1, normalization_time_constant=32, use_cntk_engine=True, init_scale=bn_init_scale, disable_regularization=True
    )(c)
    return r


def conv_bn_relu(input, filter_size, num_filters, strides=(1, 1), init=he_normal()):
    return relu(conv_bn(input, filter_size, num_filters, strides, init, 1))


def resnet_basic(input, num_filters):
    c1 = conv_bn_relu(input, (3, 3), num_filters)
    c2 = conv_bn(c1, (3, 3), num_filters)
    return relu(c2 + input)


def resnet_basic_inc(input, num_filters, strides=(2, 2)):
    c1 = conv_bn_relu(input, (3, 3), num_filters, strides)
    c2 = conv_bn(c1, (3, 3), num_filters, bn_init_scale=1)
    s = conv_bn(input, (1, 1), num_filters, strides)
    p = plus(c2, s)
    return relu(p)


def resnet_basic_stack(input, num_stack_layers, num_filters):
    assert num_stack_layers >= 0
    l = input
    for _ in range(num_stack_layers):
        l = resnet_basic(l, num_filters)
    return l


def create_resnet_model(input, num_stack_layers, num_classes):
    c_map = [4, 8]
    conv = conv_bn_relu(input, (3, 3), c_map[0])
    r1 = resnet_basic_stack(conv, num_stack_layers, c_map[0])
    r2_1 = resnet_basic_inc(r1, c_map[1])
    r2_2 = resnet_basic_stack(r2_1, num_stack_layers - 1, c_map[1])
    pool = GlobalAveragePooling(name="pool")(r2_2)
    return Dense(num_classes, init=he_uniform(), name="prediction")(pool)


# ---- data


def make_data(seed, count, dtype):
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, num_classes, count)
    images = rng.normal(0, 30, (count, num_channels, image_height, image_width)) + 128
    for image, label in zip(images, labels):
        image[label, 2:6, 2:6] += 40
        image[(label + 1) % 3, :, rng.randint(0, 8)] -= 60
    return images.astype(dtype), np.eye(num_classes, dtype=dtype)[labels]


def create_source(seed, count, sweeps, dtype):
    features, labels = make_data(seed, count, dtype)
    return MinibatchSourceFromData(dict(features=features, labels=labels), max_samples=count * sweeps if sweeps else INFINITELY_REPEAT)


def create_network(dtype):
    input_var = input_variable((num_channels, image_height, image_width), dtype=dtype, name="features")
    label_var = input_variable(num_classes, dtype=dtype, name="labels")
    with cntk.default_options(dtype=dtype):
        mean = constant(128, dtype=dtype)
        z = create_resnet_model((input_var - mean) / 64, 2, num_classes)
        ce = cross_entropy_with_softmax(z, label_var)
        pe = classification_error(z, label_var)
    return {"name": "resnet", "feature": input_var, "label": label_var, "ce": ce, "pe": pe, "output": z}


def create_trainer(network, minibatch_size, epoch_size, num_quantization_bits, progress_writers):
    lr_per_mb = [0.2] * 2 + [0.1]
    l2_reg_weight = 0.0005
    lr_schedule = cntk.learning_parameter_schedule(lr_per_mb, minibatch_size=minibatch_size, epoch_size=epoch_size)
    mm_schedule = cntk.learners.momentum_schedule(0.9, minibatch_size=minibatch_size)
    local_learner = momentum_sgd(network["output"].parameters, lr_schedule, mm_schedule, l2_regularization_weight=l2_reg_weight)
    return Trainer(network["output"], (network["ce"], network["pe"]), local_learner, progress_writers)


def train_and_test(network, trainer, train_source, cv_source, test_source, minibatch_size, epoch_size, epochs, restore):
    input_map = {network["feature"]: train_source.streams.features, network["label"]: train_source.streams.labels}
    input_map_cv = {network["feature"]: cv_source.streams.features, network["label"]: cv_source.streams.labels}
    input_map_test = {network["feature"]: test_source.streams.features, network["label"]: test_source.streams.labels}

    def cv_callback(index, average_error, cv_num_samples, cv_num_minibatches):
        print(
            "cross validation %d: error %.4f on %d samples in %d minibatches" % (index, average_error, cv_num_samples, cv_num_minibatches)
        )
        return True

    training_session(
        trainer=trainer,
        mb_source=train_source,
        model_inputs_to_streams=input_map,
        mb_size=cntk.minibatch_size_schedule([minibatch_size, 2 * minibatch_size], epoch_size=2 * epoch_size),
        progress_frequency=epoch_size,
        max_samples=epochs * epoch_size,
        checkpoint_config=CheckpointConfig(
            filename=os.path.join(model_path, network["name"]), frequency=epoch_size, restore=restore, preserve_all=True
        ),
        cv_config=CrossValidationConfig(
            cv_source, frequency=epoch_size, minibatch_size=12, model_inputs_to_streams=input_map_cv, callback=cv_callback
        ),
        test_config=TestConfig(test_source, minibatch_size=20, model_inputs_to_streams=input_map_test),
    ).train()


def resnet(epochs, restore=False, dtype=np.float32):
    minibatch_size, epoch_size = 16, 64
    network = create_network(dtype)
    progress_writers = []
    if not restore:
        progress_writers.append(ProgressPrinter(freq=2, tag="Training", rank=Communicator.rank(), num_epochs=epochs))
    trainer = create_trainer(network, minibatch_size, epoch_size, 32, progress_writers)
    log_number_of_parameters(network["output"])
    train_and_test(
        network,
        trainer,
        create_source(1, 64, 0, dtype),
        create_source(2, 36, 1, dtype),
        create_source(3, 50, 1, dtype),
        minibatch_size,
        epoch_size,
        epochs,
        restore,
    )
    print("%d samples in all" % trainer.total_number_of_samples_seen)
    return network


def show(network):
    for p in sorted(
        [q for q in network["output"].constants if q.name in ("aggregate_mean", "aggregate_variance")],
        key=lambda q: (q.name, q.shape, float(np.sum(q.value))),
    )[:4]:
        print("%s %s %.4f" % (p.name, p.shape, np.mean(p.value)))
    features, labels = make_data(4, 8, np.float32)
    scores = network["output"].eval({network["feature"]: features.astype(network["feature"].dtype)})
    print(" ".join("%d" % k for k in np.argmax(scores, axis=1)), "of", " ".join("%d" % k for k in np.argmax(labels, axis=1)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("-e", "--epochs", type=int, default=3)
    args = parser.parse_args()
    cntk.cntk_py.set_fixed_random_seed(1)
    if not os.path.exists(model_path):
        os.makedirs(model_path)

    print("three epochs")
    show(resnet(args.epochs))
    print("files", sorted(os.listdir(model_path)))
    print("one more, from the checkpoint")
    show(resnet(args.epochs + 1, restore=True))
    print("in double precision, from the beginning")
    show(resnet(args.epochs, restore=False, dtype=np.float64))
    Communicator.finalize()
