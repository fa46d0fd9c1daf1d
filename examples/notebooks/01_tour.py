# %% [markdown]
# # 01 The tour: functions, variables, a first network
#
# You will learn
#
# * what variables and functions are, and how to evaluate and differentiate a function,
# * why a network never mentions the batch, and what *dynamic axes* are,
# * how layers, which are functions too, make a network,
# * how to train it, and to see what it has learnt.
#
# It takes NumPy and matplotlib beside the library: `pip install 'opencntk[plot]'`.

# %%
import matplotlib.pyplot as plt
import numpy as np

import cntk as C

C.cntk_py.set_fixed_random_seed(1)  # the same numbers on every run

# %% [markdown]
# ## Functions of variables
#
# An expression of variables is a function object. Nothing is computed yet: the function knows its arguments, its parameters and the
# shape of its result.

# %%
x = C.input_variable(2, name="x")
w = C.parameter((2, 3), init=C.glorot_uniform(), name="w")
b = C.parameter(3, init=0, name="b")
f = C.tanh(C.times(x, w) + b)

print(f)
print("arguments: ", f.arguments)
print("parameters:", f.parameters)

# %% [markdown]
# `x` has the shape `[2]`: that of *one* sample. How many samples there are is nobody's business but the data's, and stands as `#` in the
# print. This is the *batch axis*, a dynamic axis. We evaluate the same function on one sample and on four:

# %%
print(f.eval({x: np.array([[0.5, -1.0]], dtype=np.float32)}).shape)
print(f.eval({x: np.ones((4, 2), dtype=np.float32)}).shape)

# %% [markdown]
# A gradient comes from `grad`. That of a parameter is summed over the samples.

# %%
gradient = f.grad({x: np.ones((4, 2), dtype=np.float32)}, wrt=[w])
print(gradient.shape)

# %% [markdown]
# ## Mistakes are found early
#
# Shapes are checked while a network is built, at the line that is wrong, not when the first data arrive:

# %%
try:
    C.times(x, C.parameter((3, 2)))
except ValueError as error:
    print(error)

# %% [markdown]
# The same is true of data:

# %%
try:
    f.eval({x: np.ones((4, 3), dtype=np.float32)})
except ValueError as error:
    print(error)

# %% [markdown]
# ## Sequences have an axis of their own
#
# Variables of `C.sequence` have a second dynamic axis, `*`, the steps. Each sample may have another number of them, and nothing is padded.

# %%
s = C.sequence.input_variable(2, name="s")
two_sequences = [np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float32), np.array([[10, 20]], dtype=np.float32)]

print(s)
print(C.sequence.reduce_sum(s).eval({s: two_sequences}))

# %% [markdown]
# ## Layers are functions, too
#
# `Dense(16)` is a function of anything, whose weights get their shape when it is applied. `Sequential` composes. A layer that is applied
# twice shares its weights; one that has a name can be found in the network by it.

# %%
model = C.layers.Sequential(
    [
        C.layers.Dense(32, activation=C.relu, name="first"),
        C.layers.Dense(32, activation=C.relu, name="second"),
        C.layers.Dense(2, name="scores"),
    ]
)
z = model(x)

print(z)
print("weights of the first layer:", z.first.W.shape)
print("numbers to be learnt:", sum(parameter.value.size for parameter in z.parameters))

# %% [markdown]
# ## Data: two spirals
#
# Two arms are wound around each other, and no straight line tells them apart. Labels are one-hot, a 1 in the column of the class.


# %%
def spirals(count, seed):
    """So many points in the plane on each of two arms, and their labels."""
    random = np.random.default_rng(seed)
    turn = np.sqrt(random.uniform(0.05, 1, size=(2, count))) * 2.5 * np.pi
    arm = np.array([[0.0], [np.pi]])
    points = np.stack([turn * np.cos(turn + arm), turn * np.sin(turn + arm)], axis=-1) / 8
    points += random.normal(scale=0.05, size=points.shape)
    labels = np.eye(2)[[0] * count + [1] * count]
    order = random.permutation(2 * count)
    return points.reshape(-1, 2)[order].astype(np.float32), labels[order].astype(np.float32)


points, labels = spirals(500, seed=1)
print(points.shape, labels.shape)

# %% [markdown]
# ## Training
#
# A *criterion* is a loss, which is minimised, and a metric, which is reported. Both are functions of the scores `z` and of one more
# variable for the label. A *learner* updates parameters. A *trainer* brings them together and trains on a minibatch at a time.
#
# We keep the scores on a grid before training, after 5 passes over the data, and at the end.

# %%
y = C.input_variable(2, name="y")
loss = C.cross_entropy_with_softmax(z, y)
error = C.classification_error(z, y)

learner = C.adam(z.parameters, lr=0.02, momentum=0.9, variance_momentum=0.999, minibatch_size=C.learners.IGNORE)
trainer = C.Trainer(z, (loss, error), [learner])

ticks = np.linspace(-1.1, 1.1, 221, dtype=np.float32)
grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
probability = C.softmax(z)

EPOCHS, MINIBATCH = 60, 50
random = np.random.default_rng(2)
shown = {0: probability.eval({x: grid})[:, 0]}
losses = []
for epoch in range(1, EPOCHS + 1):
    order = random.permutation(len(points))
    total = 0.0
    for start in range(0, len(points), MINIBATCH):
        rows = order[start : start + MINIBATCH]
        trainer.train_minibatch({x: points[rows], y: labels[rows]})
        total += trainer.previous_minibatch_loss_average * len(rows)
    losses.append(total / len(points))
    if epoch in (5, EPOCHS):
        shown[epoch] = probability.eval({x: grid})[:, 0]

print(f"loss after the first pass {losses[0]:.3f}, after the last {losses[-1]:.4f}")

# %% [markdown]
# Points that the network has never seen tell what it has learnt. Fewer than one in fifty is on the wrong side:

# %%
new_points, new_labels = spirals(500, seed=3)
wrong = trainer.test_minibatch({x: new_points, y: new_labels})
print(f"wrong on new points: {wrong:.1%}")
assert wrong < 0.02

# %% [markdown]
# The colour is the probability of the first class at each place in the plane, the points are new ones. White is where the network cannot
# decide: first everywhere, then along a line that takes no notice of the arms, at last between them.

# %%
figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), sharey=True, layout="constrained")
for place, (epoch, values) in zip(axes, shown.items(), strict=True):
    image = place.pcolormesh(ticks, ticks, values.reshape(221, 221), cmap="RdBu", vmin=0, vmax=1, alpha=0.75)
    for column, colour in enumerate(("tab:blue", "tab:red")):
        place.scatter(*new_points[new_labels[:, column] == 1].T, s=4, color=colour, edgecolors="white", linewidths=0.2)
    place.set(title="before training" if epoch == 0 else f"after {epoch} passes", xlabel="$x_0$", aspect="equal")
axes[0].set_ylabel("$x_1$")
figure.colorbar(image, ax=axes, label="probability of the blue class", shrink=0.85)
plt.show()

# %% [markdown]
# ## What to try next
#
# * Take `second` out, or make the layers 4 wide. How far do the spirals come apart?
# * Save the network with `z.save("spirals.dnn")` and load it with `C.load_model`; notebook 13 goes on from there.
# * Go on to notebook 02: logistic regression, and what a learning rate is measured in.
#
# In the docs: [axes and sequences](../../docs/sequences.md), [training](../../docs/training.md), [operators](../../docs/operators.md).
