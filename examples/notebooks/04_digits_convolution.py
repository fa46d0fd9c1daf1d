# %% [markdown]
# # 04 Handwritten digits with convolutions
#
# You will learn
#
# * how to build a convolutional network, and to read off the shapes in it,
# * what `default_options` are for,
# * why a network that knows neighbours copes with digits that are out of place,
# * how to look at what its filters respond to.
#
# It takes scikit-learn, for its digits, and matplotlib: `pip install 'opencntk[demo]'`.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import cntk as C

C.cntk_py.set_fixed_random_seed(1)

# %% [markdown]
# ## Digits on a larger canvas
#
# Each digit of 8 x 8 pixels is put on a canvas of 12 x 12, in training always in the middle. Images have the shape
# `(channels, height, width)`, channels first.

# %%
images, classes = load_digits(return_X_y=True)
images = (images / 16).astype(np.float32).reshape(-1, 1, 8, 8)
labels = np.eye(10, dtype=np.float32)[classes]


def on_canvas(images, down=0, right=0):
    """The images on a canvas of 12 x 12, so many pixels (-2 to 2) off the middle."""
    return np.pad(images, [(0, 0), (0, 0), (2 + down, 2 - down), (2 + right, 2 - right)])


order = np.random.default_rng(0).permutation(len(images))
training_rows, test_rows = order[:1400], order[1400:]
train_set = on_canvas(images[training_rows]), labels[training_rows]
print([array.shape for array in train_set])

# %% [markdown]
# ## Two networks
#
# `default_options` sets what all layers in the block have in common. The convolutional network ends with the maximum of each feature over
# the whole image: *whether* a feature is there counts, not where.

# %%
x = C.input_variable((1, 12, 12), name="image")
y = C.input_variable(10, name="digit")

with C.layers.default_options(activation=C.relu, pad=True):
    convolutional = C.layers.Sequential(
        [
            C.layers.Convolution2D((3, 3), 16, name="edges"),
            C.layers.MaxPooling((2, 2), strides=2, name="halved"),
            C.layers.Convolution2D((3, 3), 32, name="strokes"),
            C.layers.Convolution2D((3, 3), 64, name="parts"),
            C.layers.GlobalMaxPooling(name="anywhere"),
            C.layers.Dense(10, activation=None, name="scores"),
        ]
    )(x)
    dense = C.layers.Sequential([C.layers.Dense(150), C.layers.Dense(50), C.layers.Dense(10, activation=None)])(x)

for name in ("edges", "halved", "strokes", "parts", "anywhere", "scores"):
    print(f"{name:8}", convolutional.find_by_name(name).shape)
for name, z in (("convolutional", convolutional), ("dense", dense)):
    print(f"{name}: {sum(p.value.size for p in z.parameters):,} numbers to be learnt")

# %% [markdown]
# A forgotten channel axis is noticed where the data come in:

# %%
try:
    convolutional.eval({x: train_set[0][0, 0]})
except ValueError as error:
    print(error)

# %% [markdown]
# ## Training both
#
# Arrays become a source, which shuffles them in each epoch, by a `NumpyDeserializer`.


# %%
def train(z, epochs=12):
    """Train a network on digits in the middle; return its criterion."""
    criterion = C.combine([C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)])
    rates = C.learning_parameter_schedule([(8, 0.003), 0.001], epoch_size=len(training_rows))
    learner = C.adam(z.parameters, rates, 0.9, variance_momentum=0.999, minibatch_size=C.learners.IGNORE)
    printer = C.logging.ProgressPrinter(num_epochs=epochs)
    source = C.io.MinibatchSource(C.io.NumpyDeserializer({"image": train_set[0], "digit": train_set[1]}))
    criterion.train(
        source,
        streams=(source.streams.image, source.streams.digit),
        minibatch_size=32,
        epoch_size=len(training_rows),
        max_epochs=epochs,
        parameter_learners=[learner],
        callbacks=[printer],
    )
    return criterion


criteria = {"dense": train(dense), "convolutional": train(convolutional)}

# %% [markdown]
# ## Out of place
#
# The test digits are moved by up to two pixels in each direction, which neither network has seen in training.

# %%
SHIFTS = range(-2, 3)
errors = {
    name: np.array(
        [
            [criterion.test((on_canvas(images[test_rows], down, right), labels[test_rows]), 400).metric for right in SHIFTS]
            for down in SHIFTS
        ]
    )
    for name, criterion in criteria.items()
}

# %% [markdown]
# In the middle both are good, with less than 5 % of errors. On average over the 24 other places the dense network mistakes more than two
# digits in three, the convolutional one less than one in two:

# %%
elsewhere = {name: (table.sum() - table[2, 2]) / 24 for name, table in errors.items()}
for name, table in errors.items():
    print(f"{name}: in the middle {table[2, 2]:.1%}, elsewhere {elsewhere[name]:.1%}")
    assert table[2, 2] < 0.05
assert elsewhere["dense"] > 2 / 3
assert elsewhere["convolutional"] < 1 / 2

# %% [markdown]
# The picture shows more. The convolutional network does better where a digit moves by *two* pixels than by one: its pooling takes every
# second place, so that only even shifts leave what comes behind it the same. Moving by odd numbers has to be learnt.

# %%
figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.2), sharey=True, layout="constrained")
for place, (name, table) in zip(axes, errors.items(), strict=True):
    picture = place.imshow(100 * table, cmap="YlOrRd", vmin=0, vmax=100, extent=(-2.5, 2.5, 2.5, -2.5))
    for (row, column), value in np.ndenumerate(table):
        place.text(column - 2, row - 2, f"{value:.0%}", ha="center", va="center", color="white" if value > 0.6 else "black")
    place.set(title=f"{name} network", xlabel="pixels to the right", xticks=SHIFTS, yticks=SHIFTS)
axes[0].set_ylabel("pixels down")
figure.colorbar(picture, ax=axes, label="test digits mistaken (%)")
plt.show()

# %% [markdown]
# ## What the filters respond to
#
# Any named part of a network is a function that can be evaluated by itself. Here is what eight filters of the first layer make of a digit:
# some answer to edges from one side, some to strokes of one direction.

# %%
digit = on_canvas(images[test_rows[[3]]])
responses = C.as_composite(convolutional.edges).eval({x: digit})[0]
strongest = np.argsort(responses.std(axis=(1, 2)))[:-9:-1]

figure, axes = plt.subplots(2, 9, figsize=(11, 2.9), layout="constrained")
axes[0, 0].imshow(digit[0, 0], cmap="gray_r")
axes[0, 0].set_ylabel("response")
axes[1, 0].set_ylabel("filter")
axes[1, 0].set_frame_on(False)
weights = convolutional.edges.W.value[:, 0]
for column, number in enumerate(strongest, start=1):
    axes[0, column].imshow(responses[number], cmap="viridis")
    axes[1, column].imshow(weights[number], cmap="RdBu", vmin=-1, vmax=1)
axes[0, 0].set_title("digit", fontsize=10)
for place in axes.flat:
    place.set(xticks=[], yticks=[])
figure.suptitle("eight of sixteen filters of the first layer (blue: positive weights, red: negative)", fontsize=10)
plt.show()

# %% [markdown]
# ## What to try next
#
# * Put `Dense(64)` in the place of the global pooling. How much of the steadiness is left?
# * Move the training digits at random instead: can the dense network learn what the other has built in?
# * Go on to notebook 05: networks that go along a sequence.
#
# In the docs: [operators on images](../../docs/operators.md), [reading images](../../docs/readers.md#images); the program
# [examples/mnist.py](../../examples/mnist.py) does the same for MNIST's own files.
