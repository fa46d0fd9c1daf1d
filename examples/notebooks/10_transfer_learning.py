# %% [markdown]
# # 10 Transfer learning: a few labels are enough
#
# You will learn
#
# * how to save a network, load it, and cut it at a named node,
# * the ways to clone: `share`, `clone` and `freeze`,
# * when features of another task help, and how much.
#
# It takes scikit-learn, for its digits, and matplotlib: `pip install 'opencntk[demo]'`.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import cntk as C

C.cntk_py.set_fixed_random_seed(1)
folder = tempfile.TemporaryDirectory()

# %% [markdown]
# ## Two tasks
#
# The scanner of a post office is replaced. Of the old one there are many labelled digits. The new one blurs, adds noise, and gives grey on
# white a lower contrast; of its digits only a handful have labels yet.

# %%
random = np.random.default_rng(0)
images, classes = load_digits(return_X_y=True)
images, labels = (images / 16).astype(np.float32).reshape(-1, 1, 8, 8), np.eye(10, dtype=np.float32)[classes]


def new_scanner(images):
    """Each pixel the mean of itself and its neighbours to the right and below, half the contrast, and noise."""
    padded = np.pad(images, [(0, 0), (0, 0), (0, 1), (0, 1)])
    blurred = (padded[..., :-1, :-1] + padded[..., 1:, :-1] + padded[..., :-1, 1:] + padded[..., 1:, 1:]) / 4
    return (0.5 * blurred + random.normal(scale=0.08, size=images.shape)).astype(np.float32)


old, pool, test = np.split(random.permutation(len(images)), [900, 1300])
new_images = new_scanner(images)
print(f"old scanner: {len(old)} labelled; new: {len(pool)} to choose from, {len(test)} to test on")

# %% [markdown]
# ## A network for the old scanner
#
# The layer before the last has a name, by which we will find it again.

# %%
image = C.input_variable((1, 8, 8), name="image")


def features():
    with C.layers.default_options(activation=C.relu, pad=True):
        convolutions = [C.layers.Convolution2D((3, 3), 16), C.layers.Convolution2D((3, 3), 32, strides=2)]
        return C.layers.Sequential([*convolutions, C.layers.Dense(64, name="features")])


def train(z, images, labels, updates):
    """Train a network for so many updates; return its criterion."""
    y = C.input_variable(10, name="label")
    criterion = C.combine([C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)])
    learner = C.adam(z.parameters, C.learning_parameter_schedule(0.003), 0.9, variance_momentum=0.99, minibatch_size=C.learners.IGNORE)
    source = C.io.MinibatchSource(C.io.NumpyDeserializer({"image": images, "label": labels}))
    size = min(32, len(images))
    criterion.train(
        source,
        streams=(source.streams.image, source.streams.label),
        minibatch_size=size,
        max_samples=updates * size,
        parameter_learners=[learner],
    )
    return criterion


base = C.layers.Sequential([features(), C.layers.Dense(10, name="scores")])(image)
criterion = train(base, images[old], labels[old], updates=250)
untouched = criterion.test((new_images[test], labels[test]), minibatch_size=500).metric
usual = criterion.test((images[test], labels[test]), minibatch_size=500).metric
print(f"error on the old scanner {usual:.1%}, on the new one {untouched:.1%}")

path = str(Path(folder.name, "base.dnn"))
base.save(path)

# %% [markdown]
# ## Cutting and cloning
#
# In another program we load the file, look for the node by name, and clone what is behind it. The argument says what becomes of the
# parameters:
#
# * `freeze`: they become constants, and no learner touches them,
# * `clone`: they are new parameters with the same values, and learn on,
# * `share`: they are the very same parameters.

# %%
loaded = C.load_model(path)
node = loaded.find_by_name("features")
print(node)
cut = C.as_composite(node)


def transferred(method):
    """A new last layer on top of the old features."""
    body = cut.clone(method, {cut.arguments[0]: image})
    return C.layers.Dense(10, name="scores")(body)


for method in ("freeze", "clone"):
    z = transferred(method)
    print(f"{method}: {sum(p.value.size for p in z.parameters):,} numbers to learn, {sum(c.value.size for c in z.constants):,} constants")

# %% [markdown]
# A name that is not there gives None. What names there are can be asked of the graph:

# %%
print(loaded.find_by_name("feature"))
print(sorted({found.name for found in C.logging.graph.depth_first_search(loaded, lambda found: True) if found.name}))

# %% [markdown]
# ## How many labels does it take?
#
# Each way gets 1, 3, 10 and 30 images of each digit from the new scanner, in three draws that are the same for all. All train for as many
# updates. The learner gets `z.parameters`, which what is frozen does not belong to.

# %%
ways = {
    "from scratch": lambda: C.layers.Sequential([features(), C.layers.Dense(10)])(image),
    "fine-tuned (clone)": lambda: transferred("clone"),
    "frozen features (freeze)": lambda: transferred("freeze"),
}
COUNTS, DRAWS = (1, 3, 10, 30), 3
errors = {name: np.empty((len(COUNTS), DRAWS)) for name in ways}
for row, count in enumerate(COUNTS):
    for draw in range(DRAWS):
        shuffled = np.random.default_rng(draw).permutation(pool)
        chosen = np.concatenate([shuffled[classes[shuffled] == digit][:count] for digit in range(10)])
        for name, network in ways.items():
            criterion = train(network(), new_images[chosen], labels[chosen], updates=150)
            errors[name][row, draw] = criterion.test((new_images[test], labels[test]), minibatch_size=500).metric
    print(f"{count:2} of each: ", ", ".join(f"{name} {table[row].mean():.1%}" for name, table in errors.items()))

# %% [markdown]
# With three labels of each digit, the fine-tuned network makes fewer than three quarters of the mistakes of one that begins from scratch:

# %%
assert errors["fine-tuned (clone)"][1].mean() < 3 / 4 * errors["from scratch"][1].mean()

# %% [markdown]
# Left: the dotted line is the old network, which has seen no digit of the new scanner. Frozen features help while labels are few; with
# thirty of each digit, a network that may change all of itself does better. Right: the same digits as both scanners see them.


# %%
def sheet(images):
    """The first digit of each class, in two rows of five."""
    tiles = np.pad(images[[np.flatnonzero(classes == digit)[0] for digit in range(10)], 0], [(0, 0), (1, 1), (1, 1)])
    return np.concatenate([np.concatenate(row, axis=1) for row in (tiles[:5], tiles[5:])])


figure, axes = plt.subplot_mosaic([["curve", "old"], ["curve", "new"]], figsize=(11.5, 4.3), width_ratios=(1.5, 1), layout="constrained")
curve = axes["curve"]
for (name, table), colour in zip(errors.items(), ("grey", "tab:orange", "tab:blue"), strict=True):
    curve.plot(COUNTS, 100 * table.mean(axis=1), marker="o", color=colour, label=name)
    curve.fill_between(COUNTS, 100 * table.min(axis=1), 100 * table.max(axis=1), color=colour, alpha=0.15, linewidth=0)
curve.axhline(100 * untouched, color="black", linestyle=":", linewidth=1, label="the old network as it was")
curve.set(xscale="log", xlabel="labelled images of each digit", ylabel="error on the new scanner (%)", ylim=(0, None))
curve.set_xticks(COUNTS, COUNTS)
curve.minorticks_off()
curve.legend(title=f"mean, and range of {DRAWS} draws")
for name, scanned in (("old", images), ("new", new_images)):
    axes[name].imshow(sheet(scanned), cmap="gray_r", vmin=0, vmax=1)
    axes[name].set(title=f"{name} scanner", xticks=[], yticks=[])
plt.show()

# %%
folder.cleanup()

# %% [markdown]
# ## What to try next
#
# * Fine-tune with a lower rate for the old layers: two learners, each with its parameters.
# * Cut at the first convolution instead. Are early features as useful?
# * A network from elsewhere: `C.load_model` reads [ONNX files](../../docs/onnx.md), too.
# * Go on to notebook 11: operators, learners and sources of your own.
#
# In the docs: [saving and loading](../../docs/models.md), [several learners](../../docs/training.md#several-learners).
