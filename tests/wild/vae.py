"""A variational autoencoder, its conditional sister and a small autoencoder with unpooling.

python vae.py [epochs]
"""

import sys
import numpy as np
import cntk as C
import cntk.axis
from cntk.layers import *
from cntk.ops import *
from cntk.logging import TrainingSummaryProgressCallback
import cntk.random as crandom

num_pixels = 36
intermediate_dim = 20
latent_dim = 2
num_classes = 3

C.device.try_set_default_device(C.cpu())
C.cntk_py.set_fixed_random_seed(2)


def make_pictures(count, seed):
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, num_classes, count)
    y, x = np.mgrid[:6, :6]
    masks = [x < 3, y < 3, x + y < 6]
    pictures = np.stack([masks[k] * rng.uniform(0.6, 1.0) + rng.uniform(0, 0.1, (6, 6)) for k in labels])
    return pictures.reshape(count, num_pixels).astype(np.float32).clip(0, 1), np.eye(num_classes, dtype=np.float32)[labels]


class VAE(object):
    """Encoder, sampling and decoder as Functions, which know no input until they are called."""

    def __init__(self, latent, hidden, pixels, activation=C.softplus):
        with C.layers.default_options(init=C.glorot_normal(seed=5)):
            self.hidden = Dense(hidden, activation, name="hidden")
            self.mean = Dense(latent, name="z_mean")
            self.log_var = Dense(latent, name="z_log_var")
            self.decoder = Sequential([Dense(hidden, activation), Dense(pixels, sigmoid, name="decoded")])

    def encode(self, x):
        h = self.hidden(x)
        return self.mean(h), self.log_var(h)

    @staticmethod
    def sample(mean, log_var, seed):
        epsilon = C.random.normal_like(mean, seed=seed)
        return mean + exp(log_var / 2) * epsilon

    def __call__(self, x, seed=98):
        mean, log_var = self.encode(x)
        return self.decoder(self.sample(mean, log_var, seed)), mean, log_var


def kl_divergence(mean, log_var):
    return -0.5 * C.reduce_sum(1 + log_var - square(mean) - exp(log_var), axis=0)


def train_vae(pictures, epochs):
    x = C.input_variable(num_pixels, np.float32, name="x")
    vae = VAE(latent_dim, intermediate_dim, num_pixels)
    decoded, mean, log_var = vae(x)
    kl = kl_divergence(mean, log_var)
    bce = C.binary_cross_entropy(decoded, x)
    loss = C.reduce_mean(kl, C.Axis.all_static_axes()) + bce
    metric = C.squared_error(decoded, x)

    learner = C.learners.adam(
        loss.parameters,
        C.learning_parameter_schedule(0.01, minibatch_size=25),
        C.momentum_schedule(0.9),
        variance_momentum=C.momentum_schedule(0.999),
        adamax=True,
    )

    def report(epoch, average_loss, average_error, num_samples):
        print("epoch %d: loss %.4f error %.4f" % (epoch, average_loss, average_error))

    summary = TrainingSummaryProgressCallback(len(pictures), report)
    trainer = C.Trainer(decoded, (loss, metric), [learner], [summary])
    for epoch in range(epochs):
        total, count = 0.0, 0
        for i in range(0, len(pictures), 25):
            batch = pictures[i : i + 25]
            updated, outputs = trainer.train_minibatch({x: batch}, outputs=[loss.output, decoded.output])
            assert updated
            total += trainer.previous_minibatch_loss_average * len(batch)
            count += trainer.previous_minibatch_sample_count
        trainer.summarize_training_progress()
        print(
            "loss %.4f, the last minibatch's %.4f, pixels %.4f"
            % (total / count, np.mean(outputs[loss.output]), np.mean(outputs[decoded.output]))
        )
    return vae, x, decoded, mean, log_var


def train_conditional(pictures, labels):
    """Encoder and decoder see the class; the loss is a Function of its own that is trained by train()."""
    encoder = Sequential([Dense(16, activation=tanh), (Dense(latent_dim), Dense(latent_dim)), splice])
    decode = Sequential([Dense(16, tanh), Dense(num_pixels)])

    @C.Function
    def criterion(x, c):
        both = encoder(splice(x, c))
        mean, log_var = both[0:latent_dim], slice(both, 0, latent_dim, 2 * latent_dim)
        epsilon = crandom.normal_like(mean, seed=11)
        z = mean + epsilon * exp(0.5 * log_var)
        logits = decode(splice(z, c))
        nll = reduce_sum(softplus(logits) - logits * x)
        kl = 0.5 * reduce_sum(exp(log_var) + mean * mean - 1 - log_var)
        return nll + kl, kl

    x, c = C.input_variable(num_pixels), C.input_variable(num_classes)
    loss = criterion(x, c)
    result = loss.train(
        (pictures, labels),
        minibatch_size=30,
        max_epochs=3,
        parameter_learners=[C.adagrad(loss.parameters, C.learning_parameter_schedule(0.1, minibatch_size=C.learners.IGNORE))],
    )
    print("conditional", ["%.3f %.4f" % (s.loss, s.metric) for s in result.epoch_summaries])
    z, picked = C.input_variable(latent_dim), C.input_variable(num_classes)
    generated = sigmoid(decode(splice(z, picked)))
    pictures = generated.eval({z: np.zeros((3, 2), np.float32), picked: np.eye(3, dtype=np.float32)})
    print("\n".join(" ".join("%.3f" % v for v in row[:6]) for row in pictures))


def convolutional_autoencoder(pictures):
    """Pooling and its reverse with strides; and what unpooling makes of the network that has been trained."""
    x = C.input_variable((1, 6, 6))
    conv = Convolution2D((3, 3), 4, pad=True, activation=None, name="conv")(x)
    pooled = MaxPooling((2, 2), (2, 2), name="pooling")(relu(conv))
    code = Dense(8, activation=sigmoid)(pooled)
    spread = Dense((4, 3, 3), activation=C.elu)(code)
    decoded = ConvolutionTranspose2D((2, 2), 1, strides=2, activation=sigmoid, name="deconv")(spread)
    loss = C.reduce_mean(C.square(x - decoded))
    learner = C.momentum_sgd(loss.parameters, C.learning_parameter_schedule(0.2), C.momentum_schedule(0.8))
    trainer = C.Trainer(decoded, loss, learner)
    for i in range(4):
        trainer.train_minibatch({x: pictures.reshape(-1, 1, 6, 6)})
        print("autoencoder %d: %.5f" % (i, trainer.previous_minibatch_loss_average))

    unpooled = MaxUnpooling((2, 2), (2, 2))(pooled, conv)
    again = C.convolution_transpose(conv.W, unpooled, auto_padding=[False, True, True])
    values = again.eval({x: pictures[:2].reshape(-1, 1, 6, 6)})
    print(values.shape, "%.4f %.4f" % tuple(values.sum((1, 2, 3))), np.count_nonzero(unpooled.eval({x: pictures[:2].reshape(-1, 1, 6, 6)})))


def draw_random_numbers():
    print("normal", np.round(C.random.normal((2, 3), mean=1, scale=2, seed=4).eval(), 4).tolist())
    print("uniform", np.round(C.random.uniform((4,), low=-1, high=1, seed=4).eval(), 4).tolist())
    print("gumbel", np.round(C.random.gumbel((3,), loc=0.5, scale=2, seed=4).eval(), 4).tolist())
    print("bernoulli", C.random.bernoulli((8,), mean=0.3, seed=4).eval().tolist())


if __name__ == "__main__":
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    pictures, labels = make_pictures(100, 1)
    vae, x, decoded, mean, log_var = train_vae(pictures, epochs)

    # the decoder alone, on a grid of latent values; and the mean of each picture
    z = C.input_variable(latent_dim)
    generator = vae.decoder(z)
    grid = np.array([[i, j] for i in (-1, 0, 1) for j in (-1, 1)], dtype=np.float32)
    for row in generator.eval({z: grid}):
        print(" ".join("%.3f" % v for v in row[::7]))
    both = C.combine([mean.output, log_var.output]).eval({x: pictures[:2]})
    print(sorted("%s %.4f" % (k.name, v.sum()) for k, v in both.items()))
    train_conditional(pictures, labels)
    convolutional_autoencoder(pictures)
    draw_random_numbers()
