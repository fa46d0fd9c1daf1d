# A generative adversarial network: two trainers, a discriminator that is cloned with shared parameters over the generator's output.
# First of dense layers on points of a ring, then of convolutions on small pictures.
from __future__ import print_function
import numpy as np
import os
import cntk as C
from cntk import Trainer
from cntk.layers import default_options, Dense, Sequential, BatchNormalization, Convolution, ConvolutionTranspose2D, Convolution2D
from cntk.device import try_set_default_device, gpu, cpu
from cntk.initializer import xavier, normal
from cntk.io import MinibatchSource, CTFDeserializer, StreamDef, StreamDefs, INFINITELY_REPEAT
from cntk.learners import fsadagrad, UnitType, sgd, learning_rate_schedule, momentum_as_time_constant_schedule, adam
from cntk.logging import ProgressPrinter
from cntk.logging.graph import get_node_outputs, depth_first_search, find_by_name

np.random.seed(123)
C.cntk_py.set_fixed_random_seed(1)

g_input_dim, g_hidden_dim, g_output_dim = 10, 32, 16
d_input_dim, d_hidden_dim, d_output_dim = g_output_dim, 32, 1
minibatch_size = 32
num_minibatches = 12
lr = 0.00005
max_epochs = 1


def write_points(path, count):
    """Sampled curves: a sine with random phase; values -1 to 1."""
    rng = np.random.RandomState(42)
    with open(path, "w") as f:
        for _ in range(count):
            values = np.sin(np.arange(g_output_dim) * rng.uniform(0.3, 0.5) + rng.uniform(0, 6))
            f.write("|labels 0 |features " + " ".join("%.4f" % (128 + 127 * v) for v in values) + "\n")


def create_reader(path, is_training, input_dim, label_dim):
    deserializer = CTFDeserializer(
        filename=path,
        streams=StreamDefs(
            labels_unused=StreamDef(field="labels", shape=label_dim, is_sparse=False),
            features=StreamDef(field="features", shape=input_dim, is_sparse=False),
        ),
    )
    return MinibatchSource(deserializers=deserializer, randomize=False, max_sweeps=INFINITELY_REPEAT if is_training else 1)


noise_rng = np.random.RandomState(7)


def noise_sample(num_samples):
    return noise_rng.uniform(low=-1.0, high=1.0, size=[num_samples, g_input_dim]).astype(np.float32)


def generator(z):
    with default_options(init=xavier()):
        h1 = Dense(g_hidden_dim, activation=C.relu)(z)
        return Dense(g_output_dim, activation=C.tanh)(h1)


def discriminator(x):
    with default_options(init=xavier()):
        h1 = Dense(d_hidden_dim, activation=C.relu)(x)
        return Dense(d_output_dim, activation=C.sigmoid, name="decision")(h1)


def build_graph(noise_shape, image_shape, G_progress_printer, D_progress_printer):
    input_dynamic_axes = [C.Axis.default_batch_axis()]
    Z = C.input_variable(noise_shape, dynamic_axes=input_dynamic_axes)
    X_real = C.input_variable(image_shape, dynamic_axes=input_dynamic_axes)
    X_real_scaled = 2 * (X_real / 255.0) - 1.0

    # the parts that generate and that judge; what judges fakes shares its parameters with what judges the real ones
    X_fake = generator(Z)
    D_real = discriminator(X_real_scaled)
    D_fake = D_real.clone(method="share", substitutions={X_real_scaled.output: X_fake.output})

    G_loss = 1.0 - C.log(D_fake)
    D_loss = -(C.log(D_real) + C.log(1.0 - D_fake))

    G_learner = fsadagrad(
        parameters=X_fake.parameters, lr=learning_rate_schedule(lr, UnitType.sample), momentum=momentum_as_time_constant_schedule(700)
    )
    D_learner = fsadagrad(
        parameters=D_real.parameters, lr=learning_rate_schedule(lr, UnitType.sample), momentum=momentum_as_time_constant_schedule(700)
    )

    G_trainer = Trainer(X_fake, (G_loss, None), G_learner, G_progress_printer)
    D_trainer = Trainer(D_real, (D_loss, None), D_learner, D_progress_printer)
    return X_real, X_fake, Z, G_trainer, D_trainer, D_fake


def train(reader_train):
    k = 2
    print_frequency_mbsize = num_minibatches // 4
    pp_G = ProgressPrinter(print_frequency_mbsize)
    pp_D = ProgressPrinter(print_frequency_mbsize * k)

    X_real, X_fake, Z, G_trainer, D_trainer, D_fake = build_graph(g_input_dim, d_input_dim, pp_G, pp_D)
    print("shared parameters: %d of %d" % (len(set(D_fake.parameters) & set(D_trainer.model.parameters)), len(D_fake.parameters)))

    input_map = {X_real: reader_train.streams.features}
    for train_step in range(num_minibatches):
        # k steps of the discriminator, one of the generator
        for gen_train_step in range(k):
            Z_data = noise_sample(minibatch_size)
            X_data = reader_train.next_minibatch(minibatch_size, input_map)
            if X_data[X_real].num_samples == Z_data.shape[0]:
                batch_inputs = {X_real: X_data[X_real].data, Z: Z_data}
                D_trainer.train_minibatch(batch_inputs)
        Z_data = noise_sample(minibatch_size)
        batch_inputs = {Z: Z_data}
        G_trainer.train_minibatch(batch_inputs)
        if train_step % 4 == 3:
            print(
                "step %d: generator %.4f, discriminator %.4f"
                % (train_step, G_trainer.previous_minibatch_loss_average, D_trainer.previous_minibatch_loss_average)
            )

    G_trainer.summarize_training_progress()
    D_trainer.summarize_training_progress()
    return Z, X_fake, D_fake


# ---- the same with convolutions


def bn_with_relu(x, activation=C.relu):
    h = BatchNormalization(map_rank=1)(x)
    return C.param_relu(C.Parameter((h.shape[0], 1, 1), init=0.2), h) if activation is None else activation(h)


def conv_generator(z):
    gkernel = dkernel = 3
    with default_options(init=C.normal(scale=0.05)):
        h0 = Dense(24, activation=None)(z)
        h0 = bn_with_relu(C.reshape(h0, (24, 1, 1)))
        h1 = C.reshape(Dense((6, 4, 4), activation=None)(h0), (6, 4, 4))
        h1 = bn_with_relu(h1)
        h2 = ConvolutionTranspose2D(gkernel, num_filters=4, strides=2, pad=True, output_shape=(8, 8), activation=None)(h1)
        h2 = bn_with_relu(h2, None)
        h3 = ConvolutionTranspose2D(gkernel, num_filters=1, strides=1, pad=True, output_shape=(8, 8), activation=C.sigmoid)(h2)
        return C.reshape(h3, 64)


def conv_discriminator(x):
    with default_options(init=C.normal(scale=0.05)):
        x = C.reshape(x, (1, 8, 8))
        h0 = Convolution2D(3, 4, strides=2, activation=C.leaky_relu)(x)
        h1 = Convolution2D(2, 8, strides=1, activation=C.elu)(h0)
        return Dense(1, activation=C.sigmoid, name="h2")(h1)


def train_convolutional(steps):
    rng = np.random.RandomState(3)
    Z, X = C.input_variable(g_input_dim), C.input_variable(64)
    scaled = X / 255
    fake = conv_generator(Z)
    real_score = conv_discriminator(scaled)
    fake_score = real_score.clone("share", {scaled.output: fake.output})
    G_loss = -C.log(fake_score)
    D_loss = -(C.log(real_score) + C.log(1 - fake_score))
    rate = C.learning_parameter_schedule_per_sample(0.0002)
    G_learner = C.adam(fake.parameters, lr=rate, momentum=C.momentum_schedule(0.5), unit_gain=False)
    D_learner = C.adam(real_score.parameters, lr=rate, momentum=C.momentum_schedule(0.5), unit_gain=False)
    trainers = [Trainer(fake, (G_loss, None), [G_learner]), Trainer(real_score, (D_loss, None), [D_learner])]
    for i in range(steps):
        pictures = np.zeros((16, 8, 8), np.float32)
        for p in pictures:
            p[rng.randint(0, 5) :][:3, rng.randint(0, 5) :][:, :3] = 255
        trainers[1].train_minibatch({X: pictures.reshape(16, 64), Z: noise_sample(16)})
        trainers[0].train_minibatch({Z: noise_sample(16)})
        trainers[0].train_minibatch({Z: noise_sample(16)})
        print("pictures %d: %s" % (i, " ".join("%.4f" % t.previous_minibatch_loss_average for t in trainers)))
    pictures = fake.eval({Z: noise_sample(4)})
    print(pictures.shape, "%.3f" % pictures.mean())
    running = [c for c in fake.constants if "mean" in c.name or "variance" in c.name]
    print(len(running), len(fake.parameters), len(fake_score.parameters))


if __name__ == "__main__":
    write_points("Train.txt", 200)
    reader_train = create_reader("Train.txt", True, d_input_dim, label_dim=1)
    Z, G_output, D_fake = train(reader_train)

    noise = noise_sample(3)
    for row in G_output.eval({G_output.arguments[0]: noise})[:, :6]:
        print(" ".join("%.4f" % v for v in row))
    print("judged", " ".join("%.4f" % v for v in np.ravel(D_fake.eval({Z: noise}))))

    # the nodes that stand before the decision, and a frozen copy that goes on from other noise
    print(
        len(depth_first_search(D_fake, lambda node: isinstance(node, C.Variable) and node.is_parameter)),
        D_fake.find_by_name("decision").shape,
    )
    fresh = C.input_variable(g_input_dim)
    frozen = G_output.clone(C.CloneMethod.freeze, {Z: fresh * 0.5})
    print(len(frozen.parameters), len(frozen.constants), "%.4f" % frozen.eval({fresh: 2 * noise}).sum())
    train_convolutional(4)
