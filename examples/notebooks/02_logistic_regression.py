# %% [markdown]
# # 02 Logistic regression, and what a learning rate is measured in
#
# You will learn
#
# * how to fit the simplest classifier there is, and to check it against the truth,
# * `Function.train`, which trains in one call,
# * why a learning rate has a unit, and what happens to it when minibatches grow.
#
# It takes NumPy and matplotlib beside the library: `pip install 'opencntk[plot]'`.

# %%
import matplotlib.pyplot as plt
import numpy as np

import cntk as C

C.cntk_py.set_fixed_random_seed(1)

# %% [markdown]
# ## Data whose truth we know
#
# A machine fails more often the older and the hotter it is. We make 2,000 machines: age and temperature are standardised, and a failure has
# the probability $\sigma(2\,\mathrm{age} + \mathrm{temperature} - 1)$. That is a logistic regression, so we know which weights a good fit
# must find. Chance decides who fails, so even the truth is wrong about some machines.

# %%
TRUE_WEIGHTS, TRUE_BIAS = np.array([2.0, 1.0]), -1.0


def machines(count, seed):
    """Age and temperature of so many machines, and whether each fails, as 0 or 1."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(count, 2))
    chance = 1 / (1 + np.exp(-(features @ TRUE_WEIGHTS + TRUE_BIAS)))
    fails = random.uniform(size=count) < chance
    return features.astype(np.float32), fails.astype(np.float32).reshape(-1, 1)


features, fails = machines(2000, seed=1)
print("features", features.shape, "labels", fails.shape, f"share that fails {fails.mean():.2f}")

# %% [markdown]
# ## Model and criterion
#
# One dense layer and a sigmoid give the probability of failure. The loss is the cross entropy between this probability and what happened.

# %%
x = C.input_variable(2, name="x")
y = C.input_variable(1, name="y")
model = C.layers.Dense(1, activation=C.sigmoid, init=0, name="failure")
z = model(x)
loss = C.binary_cross_entropy(z, y)
wrong = C.not_equal(C.greater(z, 0.5), y)
criterion = C.combine([loss, wrong])

# %% [markdown]
# ## Training in one call
#
# `train` takes arrays in the order of the criterion's arguments. A learning rate that `learning_parameter_schedule` makes is one *per
# minibatch*: it multiplies the mean gradient of a minibatch, as rates in PyTorch and Keras do.

# %%
print("arguments:", criterion.arguments)
learner = C.sgd(z.parameters, C.learning_parameter_schedule(0.5))
printer = C.logging.ProgressPrinter(num_epochs=10)
progress = criterion.train((features, fails), minibatch_size=32, max_epochs=10, parameter_learners=[learner], callbacks=[printer])

# %% [markdown]
# The weights come close to those that made the data. Two thousand machines determine them to within about a tenth:

# %%
weights, bias = model.W.value.ravel(), model.b.value.item()
print("weights", weights.round(2), "bias", round(bias, 2), "- true", TRUE_WEIGHTS, TRUE_BIAS)
assert np.abs([*(weights - TRUE_WEIGHTS), bias - TRUE_BIAS]).max() < 0.4

# %% [markdown]
# On new machines the model is wrong hardly more often than the truth is, which nobody can beat. Less than one percent lies between them:

# %%
new_features, new_fails = machines(20000, seed=2)
error = criterion.test((new_features, new_fails), minibatch_size=1000).metric
best = ((new_features @ TRUE_WEIGHTS + TRUE_BIAS > 0) != new_fails.ravel()).mean()
print(f"wrong on new machines {error:.2%}, by the true weights {best:.2%}")
assert error < best + 0.01

# %% [markdown]
# ## What a learning rate is measured in
#
# Now let minibatches grow eightfold. Two kinds of learning rate behave differently:
#
# * *per minibatch*: a minibatch counts once, however large. Eight times fewer updates of the same size: the model learns more slowly.
# * *per sample*: each sample moves the weights by as much as before, on whatever minibatch it comes. The curve over samples stays, as long
#   as minibatches are not too large for the rate.
#
# `learning_parameter_schedule(v, minibatch_size=n)` says it in general: v is meant for n samples. So a rate that was found with one
# minibatch size can be kept with another.

# %%
print(C.learning_parameter_schedule(0.1))
print(C.learning_parameter_schedule_per_sample(0.1 / 8))
print(C.learning_parameter_schedule(0.1, minibatch_size=8))


# %%
def losses_while_training(schedule, minibatch_size):
    """Samples seen so far and the loss on new machines, as training goes on from zero weights."""
    z = C.layers.Dense(1, activation=C.sigmoid, init=0)(x)
    loss = C.binary_cross_entropy(z, y)
    trainer = C.Trainer(z, (loss, loss), [C.sgd(z.parameters, schedule)])
    curve = [(0, np.log(2))]
    for start in range(0, len(features), minibatch_size):
        rows = slice(start, start + minibatch_size)
        trainer.train_minibatch({x: features[rows], y: fails[rows]})
        if trainer.total_number_of_samples_seen % 64 == 0:
            curve.append((trainer.total_number_of_samples_seen, trainer.test_minibatch({x: new_features, y: new_fails})))
    return np.array(curve)


schedules = {
    "0.1 per minibatch": C.learning_parameter_schedule(0.1),
    "0.1 per 8 samples": C.learning_parameter_schedule(0.1, minibatch_size=8),
}
curves = {(name, size): losses_while_training(schedule, size) for name, schedule in schedules.items() for size in (8, 64)}

# %% [markdown]
# With the unit 'per 8 samples' the two sizes end within 0.01 of each other; 'per minibatch' they do not:

# %%
last = {key: curve[-1, 1] for key, curve in curves.items()}
for (name, size), value in last.items():
    print(f"{name}, minibatches of {size}: loss {value:.3f}")
assert abs(last["0.1 per 8 samples", 8] - last["0.1 per 8 samples", 64]) < 0.01
assert last["0.1 per minibatch", 64] > last["0.1 per minibatch", 8] + 0.03

# %% [markdown]
# Left: the probability that the model gives, with 300 of the machines; the model's line, where it is one half, beside the true one. Right:
# the loss on new machines against the samples seen. Three curves lie on one another; that of large minibatches at a rate per minibatch does
# not.

# %%
figure, (plane, curve_plot) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")

ticks = np.linspace(-3, 3, 201, dtype=np.float32)
grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
image = plane.pcolormesh(ticks, ticks, z.eval({x: grid}).reshape(201, 201), cmap="RdBu_r", vmin=0, vmax=1, alpha=0.6)
some, failed = features[:300], fails[:300, 0] == 1
plane.scatter(*some[failed].T, s=16, marker="x", color="darkred", linewidths=1, label="failed")
plane.scatter(*some[~failed].T, s=14, facecolors="none", edgecolors="navy", linewidths=0.8, label="works")
plane.plot(ticks, -(weights[0] * ticks + bias) / weights[1], color="black", label="model's line")
plane.plot(ticks, -(TRUE_WEIGHTS[0] * ticks + TRUE_BIAS) / TRUE_WEIGHTS[1], color="black", linestyle=":", label="true line")
plane.set(xlim=(-3, 3), ylim=(-3, 3), xlabel="age (standardised)", ylabel="temperature (standardised)")
plane.legend(loc="lower left", framealpha=0.9)
figure.colorbar(image, ax=plane, label="probability of failure")

for (name, size), curve in curves.items():
    colour = "tab:orange" if "minibatch" in name else "tab:green"
    style, width = ("-", 4 if "minibatch" in name else 1.5) if size == 8 else ("--", 1.5)
    curve_plot.plot(*curve.T, color=colour, linestyle=style, linewidth=width, label=f"{name}, minibatches of {size}")
curve_plot.set(xlabel="samples seen", ylabel="loss on new machines")
curve_plot.legend()
plt.show()

# %% [markdown]
# ## What to try next
#
# * Train with minibatches of 500 and a rate of 0.1 per 8 samples. From which size on does it become unstable, and why?
# * Give the rate a schedule: `C.learning_parameter_schedule([(2, 0.5), 0.1], epoch_size=2000)` is 0.5 for two epochs, then 0.1.
# * Go on to notebook 03: ten classes, hidden layers, a minibatch source and checkpoints.
#
# In the docs: [learners, schedules and rates](../../docs/learners.md), [training](../../docs/training.md).
