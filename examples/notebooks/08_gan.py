# %% [markdown]
# # 08 Two networks against each other: a GAN
#
# You will learn
#
# * how to apply a network twice with the same weights, `clone("share")`,
# * how to train two networks on two losses, each with a trainer of its own,
# * how to check what a generator makes, other than by looking.
#
# It takes scikit-learn, for its digits, and matplotlib: `pip install 'opencntk[demo]'`.
#
# In a generative adversarial network (Goodfellow et al. 2014) a *generator* turns random numbers into images, and a *discriminator* tells
# images of the generator from real ones. Each learns from the other.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import cntk as C

C.cntk_py.set_fixed_random_seed(1)
random = np.random.default_rng(1)

pixels, classes = load_digits(return_X_y=True)
pixels = (pixels / 8 - 1).astype(np.float32)  # between -1 and 1
NOISE, MINIBATCH = 24, 64

# %% [markdown]
# ## Two networks
#
# The generator ends in `tanh`, which has the range of the pixels. The discriminator gives the probability that an image is real.

# %%
leaky = C.leaky_relu

generator = C.layers.Sequential(
    [
        C.layers.Dense(128, activation=leaky),
        C.layers.BatchNormalization(),
        C.layers.Dense(128, activation=leaky),
        C.layers.BatchNormalization(),
        C.layers.Dense(64, activation=C.tanh),
    ]
)
discriminator = C.layers.Sequential(
    [
        C.layers.Dense(128, activation=leaky),
        C.layers.Dropout(0.3),
        C.layers.Dense(64, activation=leaky),
        C.layers.Dense(1, activation=C.sigmoid),
    ]
)

noise = C.input_variable(NOISE, name="noise")
real = C.input_variable(64, name="real")
fake = generator(noise)
real_is_real = discriminator(real)

# %% [markdown]
# The discriminator is needed twice, on real and on made images, with one set of weights. `clone` with the method `share` copies the graph
# and keeps its parameters; the second argument puts one variable in the place of another.

# %%
fake_is_real = real_is_real.clone("share", {real_is_real.arguments[0]: fake.output})
print("arguments:", fake_is_real.arguments)
print("parameters of both:", len(fake_is_real.parameters), "=", len(fake.parameters), "+", len(real_is_real.parameters))

# %% [markdown]
# ## Two losses, two trainers
#
# The discriminator wants to be right about both kinds, the generator wants its images taken for real. Each learner gets the parameters of
# its own network and leaves the other alone; the trainer mentions it, as elsewhere this would be a mistake.

# %%
discriminator_loss = -C.log(real_is_real + 1e-6) - C.log(1 - fake_is_real + 1e-6)
generator_loss = -C.log(fake_is_real + 1e-6)


def adam(parameters, rate):
    return C.adam(parameters, rate, momentum=0.5, variance_momentum=0.999, minibatch_size=C.learners.IGNORE)


discriminator_trainer = C.Trainer(real_is_real, discriminator_loss, [adam(real_is_real.parameters, 0.0005)])
generator_trainer = C.Trainer(fake, generator_loss, [adam(fake.parameters, 0.001)])


def some_noise(count):
    return random.normal(size=(count, NOISE)).astype(np.float32)


constant_noise = some_noise(40)
snapshots = {0: fake.eval({noise: constant_noise})}
beliefs = []
UPDATES = 2500
for update in range(1, UPDATES + 1):
    rows = random.integers(0, len(pixels), size=MINIBATCH)
    discriminator_trainer.train_minibatch({real: pixels[rows], noise: some_noise(MINIBATCH)})
    _, outputs = generator_trainer.train_minibatch({noise: some_noise(MINIBATCH)}, outputs=[fake_is_real.output])
    beliefs.append(outputs[fake_is_real.output].mean())
    if update in (200, 1000, UPDATES):
        snapshots[update] = fake.eval({noise: constant_noise})

print(f"made images are taken for real with a probability of {np.mean(beliefs[-500:]):.2f} at the end")

# %% [markdown]
# ## Are these digits?
#
# A loss does not tell. The discriminator of an idle generator and of a perfect one look alike. We ask a judge: a classifier that was
# trained on the real digits and has never seen a made one. A good generator makes images of which the judge is sure, and all ten digits.

# %%
image, label = C.input_variable(64), C.input_variable(10)
judge = C.layers.Sequential([C.layers.Dense(100, activation=C.relu), C.layers.Dense(10)])(image)
criterion = C.combine([C.cross_entropy_with_softmax(judge, label), C.classification_error(judge, label)])
one_hot = np.eye(10, dtype=np.float32)[classes]
progress = criterion.train((pixels, one_hot), parameter_learners=[adam(judge.parameters, 0.002)], minibatch_size=32, max_epochs=15)
print(f"the judge's error on real digits: {progress.epoch_summaries[-1].metric:.2%}")


def judged(images):
    """How sure the judge is of each image, and how many there are of each digit."""
    probabilities = C.softmax(judge).eval({image: images})
    return probabilities.max(axis=1), np.bincount(probabilities.argmax(axis=1), minlength=10)


sure_of_real, _ = judged(pixels)
sure, counts = judged(fake.eval({noise: some_noise(2000)}))
print(f"sure of real digits: {np.mean(sure_of_real > 0.9):.0%}, of made ones: {np.mean(sure > 0.9):.0%}")
print("made, by digit:", dict(enumerate((counts / 2000).round(2).tolist())))

# %% [markdown]
# Of more than half of the made images the judge is sure, and each digit is among them, with at least 2 in 100:

# %%
assert np.mean(sure > 0.9) > 0.5
assert counts.min() > 0.02 * 2000

# %% [markdown]
# Each row shows the images that the same 20 vectors of noise became in the course of training; below them are real digits for comparison,
# drawn at random.

# %%
rows = [(f"{update:,} updates", images[:20]) for update, images in snapshots.items()]
rows.append(("real digits", pixels[random.integers(0, len(pixels), size=20)]))
figure, axes = plt.subplots(len(rows), 1, figsize=(11, 4.0), layout="constrained")
for place, (name, images) in zip(axes, rows, strict=True):
    tiles = np.pad(images.reshape(-1, 8, 8), [(0, 0), (1, 1), (1, 1)], constant_values=-1)
    place.imshow(np.concatenate(tiles, axis=1), cmap="gray_r", vmin=-1, vmax=1)
    place.set(xticks=[], yticks=[])
    place.set_ylabel(name, rotation=0, ha="right", va="center")
    place.set_frame_on(False)
plt.show()

# %% [markdown]
# ## What to try next
#
# * Train one of the networks ten times as often as the other. Which one wins, and what do the images look like then?
# * Give both networks the class as a second input: a generator that makes the digit you ask for.
# * Walk from one noise vector to another in small steps and look at the images between.
# * Go on to notebook 09: learning from rewards.
#
# In the docs: [a loop of your own](../../docs/training.md#a-loop-of-your-own), [several learners](../../docs/training.md#several-learners).
