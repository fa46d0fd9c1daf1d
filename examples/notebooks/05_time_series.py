# %% [markdown]
# # 05 A recurrent network for a time series
#
# You will learn
#
# * how sequences of different lengths make a minibatch, without padding,
# * the difference between `Recurrence`, which gives a value for each step, and `Fold`, which gives the last one,
# * how to compare a forecast with a simple one, and how far ahead it can be trusted.
#
# It takes NumPy and matplotlib beside the library: `pip install 'opencntk[plot]'`.

# %%
import matplotlib.pyplot as plt
import numpy as np

import cntk as C

C.cntk_py.set_fixed_random_seed(1)

# %% [markdown]
# ## The series
#
# The Mackey-Glass equation (1977) describes the number of blood cells, which are made with a delay:
# $\dot x(t) = 0.2\,x(t-17) / (1 + x(t-17)^{10}) - 0.1\,x(t)$. Its solution never repeats itself: it is chaotic, and yet each value follows
# from those before. We take every third of 9,000 steps.


# %%
def mackey_glass(steps, delay=17):
    """So many values of the series, computed in steps of a tenth."""
    fine = np.full(10 * (steps + delay), 1.2)
    for now in range(10 * delay, len(fine) - 1):
        past = fine[now - 10 * delay]
        fine[now + 1] = fine[now] + 0.1 * (0.2 * past / (1 + past**10) - 0.1 * fine[now])
    return fine[10 * delay :: 10]


series = mackey_glass(9000)[::3].astype(np.float32)
series = (series - series.mean()) / series.std()
past, future = series[:2400], series[2400:]
print(f"{len(past)} values to learn from, {len(future)} to be forecast")

# %% [markdown]
# ## Samples: pieces of any length
#
# A sample is a piece of the series with the same piece one step later as its target. Lengths from 20 to 80 show that nothing depends on
# them: a minibatch is a list of arrays `(steps, 1)`.


# %%
def pieces(count, random):
    """So many pieces of the past, and for each the values that follow."""
    lengths = random.integers(20, 81, size=count)
    starts = random.integers(0, len(past) - 81, size=count)
    inputs = [past[start : start + length, None] for start, length in zip(starts, lengths, strict=True)]
    targets = [past[start + 1 : start + length + 1, None] for start, length in zip(starts, lengths, strict=True)]
    return inputs, targets


random = np.random.default_rng(1)
inputs, targets = pieces(3, random)
print([piece.shape for piece in inputs])

# %% [markdown]
# ## The network
#
# A `Recurrence` runs an LSTM along the sequence and gives its state at each step; a dense layer makes the forecast of the next value of it.
# `Fold` in its place would give the last state alone, a result without a sequence axis. `#` is the batch axis, `*` the sequence axis.

# %%
x = C.sequence.input_variable(1, name="now")
y = C.sequence.input_variable(1, name="next")

z = C.layers.Sequential([C.layers.Recurrence(C.layers.LSTM(32)), C.layers.Dense(1)])(x)
print("Recurrence:", z.output.dynamic_axes)
print("Fold:      ", C.layers.Fold(C.layers.LSTM(32))(x).output.dynamic_axes)

# %% [markdown]
# An input without a sequence axis is no place for a recurrence, and is refused where it is applied:

# %%
try:
    C.layers.Recurrence(C.layers.LSTM(32))(C.input_variable(1, name="single"))
except RuntimeError as error:
    print(error)

# %% [markdown]
# ## Training
#
# The loss has a value for each step of each sequence. Samples are therefore counted in steps, and a learning rate per sample would be one
# per step; here it is one per minibatch, of 50 pieces or about 2,500 steps.

# %%
loss = C.squared_error(z, y)
rates = C.learning_parameter_schedule([(150, 0.01), (100, 0.003), 0.001], epoch_size=2500)
learner = C.adam(z.parameters, rates, momentum=0.9, variance_momentum=0.999, minibatch_size=C.learners.IGNORE)
trainer = C.Trainer(z, (loss, loss), [learner])

losses = []
for _ in range(350):
    inputs, targets = pieces(50, random)
    trainer.train_minibatch({x: inputs, y: targets})
    losses.append(trainer.previous_minibatch_loss_average)
print(f"samples seen: {trainer.total_number_of_samples_seen:,}")
print(f"squared error a step: first minibatch {losses[0]:.3f}, last {losses[-1]:.5f}")

# %% [markdown]
# ## One step ahead
#
# The future is one long sequence. The simplest forecast of all says that the next value is this one; a straight line through the last two
# is a better one. The network's error is less than a fifth of the line's:

# %%
forecast = z.eval({x: [future[:-1, None]]})[0][:, 0]
skipped = 20  # the network needs some values to find its bearings
truth = future[1 + skipped :]


def error(guess):
    return np.sqrt(np.mean((guess - truth) ** 2))


line = 2 * future[1:-1] - future[:-2]
errors = {"as now": error(future[skipped:-1]), "line": error(line[skipped - 1 :]), "network": error(forecast[skipped:])}
print("root mean square errors, in standard deviations of the series:", {name: round(float(value), 4) for name, value in errors.items()})
assert errors["network"] < errors["line"] / 5

# %% [markdown]
# ## Many steps ahead
#
# To go further, the network's forecast becomes its next input. Errors add up, and in a chaotic series they grow exponentially: no model
# follows it for ever. We start from 24 places of the future, 60 values each, and run 100 steps.

# %%
STARTS, WARM_UP, AHEAD = range(0, 24 * 18, 18), 60, 100
windows = np.stack([future[start : start + WARM_UP] for start in STARTS])
truths = np.stack([future[start + WARM_UP : start + WARM_UP + AHEAD] for start in STARTS])
runs = windows
for _ in range(AHEAD):
    scores = z.eval({x: list(runs[:, -WARM_UP:, None])})
    following = np.array([steps[-1, 0] for steps in scores])
    runs = np.concatenate([runs, following[:, None]], axis=1)
runs = runs[:, WARM_UP:]

growth = np.sqrt(np.mean((runs - truths) ** 2, axis=0))
print("root mean square error after 1, 10, 30, 100 steps:", growth[[0, 9, 29, 99]].round(3))
assert growth[9] < 0.25
assert growth[9] < growth[99]

# %%
figure, (curve, spread) = plt.subplots(1, 2, figsize=(11.5, 4), width_ratios=(1.7, 1), layout="constrained")
shown = 10
curve.plot(range(-WARM_UP, 0), windows[shown], color="grey", label="what the network was shown")
curve.plot(range(AHEAD), truths[shown], color="black", label="what came")
curve.plot(range(AHEAD), runs[shown], color="tab:orange", linestyle="--", label="forecast, fed on itself")
curve.axvline(-0.5, color="grey", linewidth=0.8, linestyle=":")
curve.set(xlabel="step", ylabel="value (standard deviations)", ylim=(-3.4, 2.4))
curve.legend(loc="lower left", ncols=3, fontsize=9)
spread.plot(range(1, AHEAD + 1), growth, color="tab:orange", label="forecast")
spread.axhline(np.sqrt(2), color="grey", linestyle=":", label="a value picked at random")
spread.axhline(1, color="grey", linestyle="--", label="always the mean")
spread.set(xlabel="steps ahead", ylabel="root mean square error", ylim=(0, 1.6), title=f"over {len(STARTS)} starts")
spread.legend(loc="lower right", fontsize=9)
plt.show()

# %% [markdown]
# ## What to try next
#
# * Train with noise on the inputs. Does the forecast that feeds on itself last longer?
# * Two recurrences on top of each other, or `GRU` in place of `LSTM`.
# * Read the series piece by piece with `truncation_length`, so that the state is carried from one minibatch to the next.
# * Go on to notebook 06: a class for each word of a sentence.
#
# In the docs: [axes, sequences, recurrence](../../docs/sequences.md), [through time, in
# pieces](../../docs/readers.md#through-time-in-pieces).
