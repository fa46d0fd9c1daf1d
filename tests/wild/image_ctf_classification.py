"""Classifies small grey digits-like pictures that are read from text files; training with Function.train, testing with an evaluator."""

import os
import numpy as np
import cntk as C
from cntk import load_model, Evaluator, sgd, input_variable, Trainer, reshape
from cntk.io import MinibatchSource, CTFDeserializer, StreamDef, StreamDefs, INFINITELY_REPEAT, FULL_DATA_SWEEP
from cntk.layers import *
from cntk.logging import *
from cntk.train import *
from cntk.initializer import he_normal, normal

np.random.seed(0)
C.cntk_py.set_fixed_random_seed(7)

input_dim_model = (1, 14, 14)
input_dim = 14 * 14
num_output_classes = 5


def generate(filename, num_samples, seed):
    """Writes the text format: labels are dense one-hot, pixels 0 to 255."""
    rng = np.random.RandomState(seed)
    with open(filename, "w") as f:
        for _ in range(num_samples):
            k = rng.randint(0, num_output_classes)
            image = rng.randint(0, 90, (14, 14))
            y, x = np.mgrid[:14, :14]
            shapes = [abs(x - 7) < 2, abs(y - 7) < 2, abs(x - y) < 2, abs(x + y - 13) < 2, (x - 7) ** 2 + (y - 7) ** 2 < 16]
            image = image + 160 * np.roll(shapes[k], rng.randint(-2, 3), axis=rng.randint(0, 2))
            label = " ".join("1" if i == k else "0" for i in range(num_output_classes))
            f.write("|labels {} |features {}\n".format(label, " ".join(str(v) for v in image.reshape(-1))))


def create_reader(path, is_training, input_dim, num_label_classes):
    labelStream = StreamDef(field="labels", shape=num_label_classes, is_sparse=False)
    featureStream = StreamDef(field="features", shape=input_dim, is_sparse=False)
    deserializer = CTFDeserializer(path, StreamDefs(labels=labelStream, features=featureStream))
    return MinibatchSource(deserializer, randomize=False, max_sweeps=INFINITELY_REPEAT if is_training else 1)


def lrn(depth_radius, bias, alpha, beta):
    """Responses divided by those of neighbouring channels: a convolution over the channels, with an axis of one before them."""

    def apply(x):
        width = 2 * depth_radius + 1
        squares = C.reshape(C.square(x), (1, C.InferredDimension), 0, 1)
        window = C.constant(alpha / width, shape=(1, width, 1, 1), name="window")
        mean = C.reshape(C.convolution(window, squares), C.InferredDimension, 0, 2)
        return C.element_divide(x, C.exp(beta * C.log(bias + mean)))

    return apply


def create_model(features):
    with default_options(init=he_normal(), activation=C.relu, bias=True, init_bias=0.05):
        h = features
        h = Convolution(filter_shape=(5, 5), num_filters=6, strides=(1, 1), pad=True, name="first_conv")(h)
        h = AveragePooling(filter_shape=(2, 2), strides=(2, 2), name="first_avg")(h)
        h = lrn(2, 1.0, 0.01, 0.75)(h)
        h = Convolution2D((3, 3), 10, strides=2, pad=[False, True], name="second_conv")(h)
        h = LayerNormalization(name="norm")(h)
        r = Dense((num_output_classes,), activation=None, init=normal(0.1), name="classify")(h)
        return r


def create_criterion_function(model, labels):
    loss = C.cross_entropy_with_softmax(model, labels)
    errs = C.classification_error(model, labels)
    return loss, errs


class RecordingWriter(C.cntk_py.ProgressWriter):
    """Keeps what it is told, and prints it in its own form."""

    def __init__(self, freq=4):
        super(RecordingWriter, self).__init__(freq, 0, 1, 0, 1, 0)
        self.lines = []

    def on_write_training_update(self, samples, updates, aggregate_loss, aggregate_metric):
        loss = (aggregate_loss[1] - aggregate_loss[0]) / (samples[1] - samples[0])
        self.lines.append("minibatches %d to %d: %.4f" % (updates[0] + 1, updates[1], loss))

    def on_write_training_summary(self, samples, updates, summaries, aggregate_loss, aggregate_metric, elapsed_milliseconds):
        self.lines.append(
            "sweep %d: %d samples, loss %.4f, errors %d" % (summaries, samples, aggregate_loss / samples, round(aggregate_metric))
        )

    def on_write_test_summary(self, samples, updates, summaries, aggregate_metric, elapsed_milliseconds):
        self.lines.append("test: %d samples in %d minibatches, errors %d" % (samples, updates, round(aggregate_metric)))


def main():
    generate("Train.txt", 160, 11)
    generate("Test.txt", 45, 12)

    x = input_variable(input_dim_model)
    y = input_variable(num_output_classes)
    z = create_model(x / 255)
    loss, label_error = create_criterion_function(z, y)
    criterion = C.combine([loss, label_error])

    train_reader = create_reader("Train.txt", True, input_dim, num_output_classes)
    test_reader = create_reader("Test.txt", False, input_dim, num_output_classes)

    # the streams are flat and the network wants pictures: the reader's data are reshaped when they are fed
    lr = C.learning_parameter_schedule([0.1, 0.02], minibatch_size=16, epoch_size=160)
    learner = C.nesterov(z.parameters, lr, C.momentum_schedule(0.9, minibatch_size=16), unit_gain=False)
    writer = RecordingWriter()
    trainer = Trainer(z, criterion, learner, writer)
    input_map = {x: train_reader.streams.features, y: train_reader.streams.labels}
    for sweep in range(2):
        for _ in range(10):
            trainer.train_minibatch(train_reader.next_minibatch(16, input_map=input_map))
        trainer.summarize_training_progress()

    evaluator = Evaluator(label_error, [writer])
    input_map = {x: test_reader.streams.features, y: test_reader.streams.labels}
    mb = test_reader.next_minibatch(20, input_map=input_map)
    while mb:
        evaluator.test_minibatch(mb)
        mb = test_reader.next_minibatch(20, input_map=input_map)
    evaluator.summarize_test_progress()
    print("\n".join(writer.lines))

    # the same with train and test of a criterion on a flat input, in the old reader's spelling
    flat = input_variable(input_dim)
    z2 = Sequential([Dense(20, activation=C.sigmoid, init=C.glorot_normal()), Dense(num_output_classes)])(flat * C.constant(1.0 / 255))
    labels = input_variable(num_output_classes)
    ce = C.binary_cross_entropy(C.sigmoid(z2), labels)
    criterion2 = (ce, C.classification_error(z2, labels, topN=2))
    source = create_reader("Train.txt", True, input_dim, num_output_classes)
    learner2 = C.adagrad(z2.parameters, C.learning_rate_schedule(0.05, C.UnitType.minibatch), need_ave_multiplier=True)
    progress = C.combine(criterion2).train(
        source,
        minibatch_size=20,
        max_epochs=2,
        epoch_size=160,
        parameter_learners=[learner2],
        model_inputs_to_streams={flat: source.streams.features, labels: source.streams.labels},
        callbacks=[ProgressPrinter(freq=4, num_epochs=2)],
    )
    for i, summary in enumerate(progress.epoch_summaries):
        print("%d: loss %.5f metric %.4f samples %d" % (i, summary.loss, summary.metric, summary.samples))
    test_source = create_reader("Test.txt", False, input_dim, num_output_classes)
    result = C.combine([ce, C.classification_error(z2, labels)]).test(
        test_source,
        minibatch_size=15,
        model_inputs_to_streams={flat: test_source.streams.features, labels: test_source.streams.labels},
        callbacks=[ProgressPrinter(freq=1, tag="Evaluation")],
    )
    print("metric %.4f on %d samples" % (result.metric, result.samples))

    # the weights of another model
    z.save("ctf.model")
    again = load_model("ctf.model")
    reader = create_reader("Test.txt", False, input_dim, num_output_classes)
    mb = reader.next_minibatch(6)
    pictures = [value.reshape(input_dim_model) for value in mb[reader.stream_info("features")].asarray()]
    predictions = again.eval({again.arguments[0]: pictures})
    print([int(np.argmax(p)) for p in predictions])
    kernel = again.first_conv.W
    print(kernel.shape, "%.4f" % np.abs(kernel.value).sum())


main()
