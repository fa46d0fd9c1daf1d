# %% [markdown]
# # 03 Handwritten digits with dense layers
#
# You will learn
#
# * how to read data by a minibatch source: a file, streams, epochs,
# * how to validate while training, and to keep a checkpoint from which training goes on,
# * how to look at a classifier's mistakes.
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
# ## The data, and a file of them
#
# scikit-learn brings 1,797 digits of 8 x 8 pixels along. A fifth is kept for validation, a fifth for the test.

# %%
pixels, classes = load_digits(return_X_y=True)
pixels = (pixels / 16).astype(np.float32)
order = np.random.default_rng(0).permutation(len(pixels))
test_rows, validation_rows, training_rows = np.split(order, [360, 720])
print(pixels.shape, "of which to train on:", len(training_rows))

# %% [markdown]
# Data that do not fit into memory stay in files. CNTK's text format has a sample a line, each stream behind its name:


# %%
def write_ctf(name, rows):
    """Write these rows in CNTK's text format; return the path."""
    path = Path(folder.name, name)
    with path.open("w") as file:
        for row in rows:
            file.write(f"|label {classes[row]}:1 |pixels {' '.join(f'{value:g}' for value in pixels[row])}\n")
    return path


files = {name: write_ctf(name, rows) for name, rows in (("train", training_rows), ("valid", validation_rows), ("test", test_rows))}
print(files["train"].read_text().splitlines()[0][:70], "...")

# %% [markdown]
# A *deserializer* knows the format, a *minibatch source* shuffles and cuts minibatches. A label `7:1` is sparse: only its 1 is stored.


# %%
def source(name, **options):
    streams = C.io.StreamDefs(
        pixels=C.io.StreamDef(field="pixels", shape=64),
        label=C.io.StreamDef(field="label", shape=10, is_sparse=True),
    )
    return C.io.MinibatchSource(C.io.CTFDeserializer(str(files[name]), streams), **options)


training = source("train")
minibatch = training.next_minibatch(32)
print(minibatch[training.streams.pixels])
print(minibatch[training.streams.label])

# %% [markdown]
# ## The network
#
# Two hidden layers, with dropout between them. The last layer has no activation: the loss has the softmax in it.

# %%
x = C.input_variable(64, name="pixels")
y = C.input_variable(10, is_sparse=True, name="label")


def network():
    """Scores of the ten digits, and a criterion of cross entropy and share of mistakes."""
    layers = [
        C.layers.Dense(128, activation=C.relu),
        C.layers.Dropout(0.3),
        C.layers.Dense(64, activation=C.relu),
        C.layers.Dense(10, name="scores"),
    ]
    z = C.layers.Sequential(layers)(x)
    return z, C.combine([C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)])


z, criterion = network()

# %% [markdown]
# ## Training, validating, keeping checkpoints
#
# Callbacks do what is due besides training. A `CheckpointConfig` keeps all that training needs to go on, a `CrossValidationConfig`
# measures the error on other data once an epoch and may end training by returning False.

# %%
EPOCH = len(training_rows)
validation_errors = []


def after_validation(index, average_error, samples, minibatches):
    validation_errors.append(average_error)
    return True


def train(z, criterion, epochs):
    """Train for so many epochs in all, from the checkpoint where there is one; return the records of the epochs."""
    data, valid = source("train"), source("valid", max_sweeps=1, randomize=False)
    learner = C.momentum_sgd(z.parameters, C.learning_parameter_schedule(0.2), C.momentum_schedule(0.9))
    checks = {x: valid.streams.pixels, y: valid.streams.label}
    callbacks = [
        C.CheckpointConfig(str(Path(folder.name, "digits")), frequency=5 * EPOCH),
        C.CrossValidationConfig(valid, frequency=EPOCH, callback=after_validation, model_inputs_to_streams=checks),
    ]
    progress = criterion.train(
        data,
        streams=(data.streams.pixels, data.streams.label),
        minibatch_size=32,
        epoch_size=EPOCH,
        max_epochs=epochs,
        parameter_learners=[learner],
        callbacks=callbacks,
    )
    return progress.epoch_summaries


first = train(z, criterion, epochs=10)
print(f"after 10 epochs: training error {first[-1].metric:.2%}, validation error {validation_errors[-1]:.2%}")
print(sorted(path.name for path in Path(folder.name).glob("digits*")))

# %% [markdown]
# Suppose the process ends here. A new network, in a new program, finds the checkpoint and goes on with the eleventh epoch: same
# parameters, same momentum, same place in the data.

# %%
z, criterion = network()
second = train(z, criterion, epochs=25)
print(f"{len(second)} more epochs: training error {second[-1].metric:.2%}, validation error {validation_errors[-1]:.2%}")
assert len(second) == 15

# %% [markdown]
# ## The test
#
# Of digits that had no part in training, fewer than four in a hundred are mistaken:

# %%
test = source("test", max_sweeps=1, randomize=False)
error = criterion.test(test, streams=(test.streams.pixels, test.streams.label), minibatch_size=360).metric
print(f"test error {error:.2%}")
assert error < 0.04

# %% [markdown]
# ## A look at the mistakes
#
# Left: errors in training are measured with dropout, which is switched off in validation. Right: the ten test digits whose class got the
# lowest probability, with the network's two favourites. Red ones are mistaken.

# %%
probabilities = C.softmax(z).eval({x: pixels[test_rows]})
truth = classes[test_rows]
hardest = np.argsort(probabilities[np.arange(len(truth)), truth])[:10]

figure = plt.figure(figsize=(11, 4.2), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1, 1.3))
axes = left.subplots()
axes.plot(range(1, 26), [100 * summary.metric for summary in first + second], label="training, with dropout")
axes.plot(range(1, 26), [100 * value for value in validation_errors], label="validation")
axes.axvline(10.5, color="grey", linestyle=":", label="restart from the checkpoint")
axes.set(xlabel="epoch", ylabel="error (%)", yscale="log")
axes.set_yticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
axes.legend()
for place, row in zip(right.subplots(2, 5).flat, hardest, strict=True):
    one, other = np.argsort(probabilities[row])[:-3:-1]
    place.imshow(pixels[test_rows[row]].reshape(8, 8), cmap="gray_r")
    place.set_title(
        f"{one}: {probabilities[row, one]:.0%}\n{other}: {probabilities[row, other]:.0%}",
        color="black" if one == truth[row] else "firebrick",
        fontsize=10,
    )
    place.set(xticks=[], yticks=[], xlabel=f"is a {truth[row]}")
plt.show()

# %%
folder.cleanup()

# %% [markdown]
# ## What to try next
#
# * Return False from `after_validation` when the error has not fallen for five epochs: early stopping.
# * Leave the hidden layers out. How much of the error was theirs to take?
# * Go on to notebook 04: a network that knows that pixels have neighbours.
#
# In the docs: [reading data](../../docs/readers.md), [training](../../docs/training.md), [checkpoints](../../docs/checkpoints.md).
