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
# Digits lie anywhere on a canvas of 10 x 10 pixels. The digits 0 to 5 come with many labels. Each is shown in four orientations, and the
# base network must tell digit and orientation: 24 classes, for which it needs more of an eye than for six. Of 6 to 9, upright, we pretend
# to have a handful.

# %%
random = np.random.default_rng(0)


def anywhere(images):
    """Each image at a place of its own on a canvas of 10 x 10."""
    canvas = np.zeros((len(images), 1, 10, 10), dtype=np.float32)
    for number, (down, right) in enumerate(random.integers(0, 3, size=(len(images), 2))):
        canvas[number, 0, down : down + 8, right : right + 8] = images[number] / 16
    return canvas


images, classes = load_digits(return_X_y=True)
images, known = images.reshape(-1, 8, 8), classes < 6
base_images = anywhere(np.concatenate([np.rot90(images[known], turns, axes=(1, 2)) for turns in range(4)]))
base_labels = np.eye(24, dtype=np.float32)[np.concatenate([classes[known] + 6 * turns for turns in range(4)])]
new_images, new_labels = anywhere(images[~known]), np.eye(4, dtype=np.float32)[classes[~known] - 6]
pool, test = np.split(random.permutation(len(new_images)), [300])
print(f"base: {len(base_images)} images; new: {len(pool)} to choose from, {len(test)} to test on")

# %% [markdown]
# ## A network for the first task
#
# The layer before the last has a name, by which we will find it again.

# %%
image = C.input_variable((1, 10, 10), name="image")


def features():
    with C.layers.default_options(activation=C.relu, pad=True):
        return C.layers.Sequential(
            [
                C.layers.Convolution2D((3, 3), 16),
                C.layers.Convolution2D((3, 3), 32, strides=2),
                C.layers.Convolution2D((3, 3), 64),
                C.layers.GlobalMaxPooling(),
                C.layers.Dense(64, name="features"),
            ]
        )


def train(z, images, labels, epochs, rate=0.005, size=16):
    """Train a network; the learner gets the parameters that are not frozen."""
    y = C.input_variable(labels.shape[1], name="label")
    criterion = C.combine([C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)])
    learner = C.adam(z.parameters, C.learning_parameter_schedule(rate), 0.9, variance_momentum=0.99, minibatch_size=C.learners.IGNORE)
    source = C.io.MinibatchSource(C.io.NumpyDeserializer({"image": images, "label": labels}))
    streams = (source.streams.image, source.streams.label)
    criterion.train(
        source,
        streams=streams,
        minibatch_size=min(size, len(images)),
        epoch_size=len(images),
        max_epochs=epochs,
        parameter_learners=[learner],
    )
    return criterion


base = C.layers.Sequential([features(), C.layers.Dense(24, name="scores")])(image)
criterion = train(base, base_images, base_labels, epochs=8, size=64)
print(f"error on digits 0 to 5 and their orientations: {criterion.test((base_images, base_labels)).metric:.2%}")

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
    """A network for the new digits on top of the old features."""
    body = cut.clone(method, {cut.arguments[0]: image})
    return C.layers.Dense(4, name="scores")(body)


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
# Each way gets 1, 3, 10 and 30 images of each new digit, in four draws that are the same for all. All train for as many updates.

# %%
ways = {
    "from scratch": lambda: C.layers.Sequential([features(), C.layers.Dense(4)])(image),
    "fine-tuned (clone)": lambda: transferred("clone"),
    "frozen features (freeze)": lambda: transferred("freeze"),
}
COUNTS, DRAWS, UPDATES = (1, 3, 10, 30), 4, 100
errors = {name: np.empty((len(COUNTS), DRAWS)) for name in ways}
for row, count in enumerate(COUNTS):
    for draw in range(DRAWS):
        shuffled = np.random.default_rng(draw).permutation(pool)
        chosen = np.concatenate([shuffled[new_labels[shuffled, digit] == 1][:count] for digit in range(4)])
        epochs = UPDATES * min(16, len(chosen)) // len(chosen)
        for name, network in ways.items():
            criterion = train(network(), new_images[chosen], new_labels[chosen], epochs)
            errors[name][row, draw] = criterion.test((new_images[test], new_labels[test]), minibatch_size=500).metric
    print(f"{count:2} of each: ", ", ".join(f"{name} {table[row].mean():.1%}" for name, table in errors.items()))

# %% [markdown]
# With three labels of each digit the transferred networks make fewer than two thirds of the mistakes of one that begins from scratch:

# %%
assert errors["fine-tuned (clone)"][1].mean() < 2 / 3 * errors["from scratch"][1].mean()
assert errors["frozen features (freeze)"][1].mean() < 2 / 3 * errors["from scratch"][1].mean()

# %%
figure, (curve, map_) = plt.subplots(1, 2, figsize=(11.5, 4.3), layout="constrained")
for (name, table), colour in zip(errors.items(), ("grey", "tab:orange", "tab:blue"), strict=True):
    curve.plot(COUNTS, 100 * table.mean(axis=1), marker="o", color=colour, label=name)
    curve.fill_between(COUNTS, 100 * table.min(axis=1), 100 * table.max(axis=1), color=colour, alpha=0.15, linewidth=0)
curve.set(xscale="log", xlabel="labelled images of each new digit", ylabel="error on new digits (%)", ylim=(0, None))
curve.set_xticks(COUNTS, COUNTS)
curve.minorticks_off()
curve.legend(title=f"mean, and range of {DRAWS} draws")

values = cut.eval({cut.arguments[0]: new_images[test]})
centred = values - values.mean(axis=0)
_, _, directions = np.linalg.svd(centred, full_matrices=False)
for digit, colour in enumerate(("tab:blue", "tab:orange", "tab:green", "tab:red")):
    of_digit = new_labels[test][:, digit] == 1
    map_.scatter(*(centred[of_digit] @ directions[:2].T).T, s=10, color=colour, label=str(6 + digit))
map_.set(
    xlabel="first principal component", ylabel="second", title="features of digits that the base network never saw", xticks=[], yticks=[]
)
map_.legend(title="digit")
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
