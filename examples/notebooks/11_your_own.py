# %% [markdown]
# # 11 Your own operator, learner and source
#
# You will learn
#
# * how to write an operator with a gradient of your choice, in NumPy: `UserFunction`,
# * how to write a learning rule: `UserLearner`, and what `check_learner` finds out about it,
# * how to serve data that are made on the fly: `UserMinibatchSource`,
# * that all three work together with what is built in.
#
# It takes NumPy and matplotlib beside the library: `pip install 'opencntk[plot]'`.

# %%
import matplotlib.pyplot as plt
import numpy as np

import cntk as C
from cntk.io import MinibatchData, StreamInformation, UserMinibatchSource
from cntk.ops.functions import UserFunction
from cntk.testing import check_learner

C.cntk_py.set_fixed_random_seed(1)

# %% [markdown]
# ## An operator
#
# Neurons that say +1 or -1 and nothing between need one bit each. The derivative of a sign is zero wherever there is one, so nothing could
# be learnt through it. The *straight-through estimator* pretends that the step is a slope: it lets the gradient pass where the operand
# lies between -1 and 1. No composition of operators does that, as it is not the derivative of what is computed.
#
# `forward` returns a state, which `backward` gets again, and the result.


# %%
class Sign(UserFunction):
    """The sign of the operand, with the gradient of a clipped identity."""

    def __init__(self, x, name="sign"):
        super().__init__([x], name=name)

    def infer_outputs(self):
        x = self.inputs[0]
        return [C.output_variable(x.shape, x.dtype, x.dynamic_axes)]

    def forward(self, x, device=None, outputs_to_retain=None):
        return x, np.where(x < 0, -1, 1)

    def backward(self, x, root_gradients):
        return root_gradients * (np.abs(x) <= 1)


def sign(x):
    return C.user_function(Sign(x))


v = C.input_variable(1, needs_gradient=True, name="v")
values = np.array([[-2.0], [-0.5], [0.5], [2.0]], dtype=np.float32)
print("values:   ", sign(v).eval({v: values}).ravel())
print("gradients:", sign(v).grad({v: values}).ravel())

# %% [markdown]
# A mistake within a method arrives with the function's name, its operands and the line where it was made:


# %%
class Wrong(Sign):
    def forward(self, x, device=None, outputs_to_retain=None):
        return None, x.mean(axis=0)


try:
    C.user_function(Wrong(v)).eval({v: values})
except ValueError as error:
    print(error)

# %% [markdown]
# ## A learner
#
# Lion (Chen et al. 2023) moves each weight by the sign of a mixture of gradient and momentum: all weights by the same amount. Gradients
# come as sums over the minibatch. A learner of one's own counts its samples itself, and looks up the rate that its schedule has for them.
# State that is to go on from a checkpoint is given and taken back by two methods.


# %%
class Lion(C.UserLearner):
    """w -= rate · sign(0.9 m + 0.1 g), then m = 0.99 m + 0.01 g."""

    def __init__(self, parameters, lr_schedule):
        super().__init__(parameters, lr_schedule)
        self.rates, self.samples = lr_schedule, 0
        self.momenta = [np.zeros(p.shape, p.dtype) for p in parameters]

    def update(self, gradient_values, training_sample_count, sweep_end):
        rate = self.rates[self.samples]
        self.samples += training_sample_count
        for p, momentum in zip(self.parameters(), self.momenta, strict=True):
            gradient = gradient_values[p].asarray() / training_sample_count
            p.value = p.value - rate * np.sign(0.9 * momentum + 0.1 * gradient)
            momentum *= 0.99
            momentum += 0.01 * gradient
        return True

    def create_checkpoint(self):
        own = {"samples": self.samples, "momenta": [momentum.copy() for momentum in self.momenta]}
        return {**super().create_checkpoint(), **own}

    def restore_from_checkpoint(self, checkpoint):
        super().restore_from_checkpoint(checkpoint)
        self.samples, self.momenta = checkpoint["samples"], [np.array(momentum) for momentum in checkpoint["momenta"]]


# %% [markdown]
# `check_learner` tries a rule: a `Trainer` must minimise a simple loss with it, in float32 and float64, and go on from a checkpoint as if
# it had never stopped. An AssertionError says what does not hold.

# %%
check_learner(Lion)
print("Lion does what a learner must do")

# %% [markdown]
# ## A source
#
# Data that cost nothing need no file: an endless source makes rings of points, a new minibatch each time. Its state is the number of
# samples that it has served, so that training from a checkpoint sees the points that it would have seen.


# %%
class Rings(UserMinibatchSource):
    """Points in the plane, with the number of the ring in which each lies: 0, 1 or 2."""

    position = 0

    def stream_infos(self):
        return [
            StreamInformation("points", 0, "dense", np.float32, (2,)),
            StreamInformation("rings", 1, "dense", np.float32, (3,)),
        ]

    def next_minibatch(self, num_samples, number_of_workers=1, worker_rank=0, device=None):
        random = np.random.default_rng(self.position)
        rings = random.integers(0, 3, size=num_samples)
        radius, angle = (rings + random.uniform(0.15, 0.85, size=num_samples)) / 3, random.uniform(0, 2 * np.pi, size=num_samples)
        points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).astype(np.float32)
        self.position += num_samples
        arrays = {self.streams.points: points, self.streams.rings: np.eye(3, dtype=np.float32)[rings]}
        return {stream: MinibatchData(C.Value(array), num_samples, num_samples, False) for stream, array in arrays.items()}

    def is_infinite(self):
        return True

    def get_checkpoint_state(self):
        return {"position": self.position}

    def restore_from_checkpoint(self, state):
        self.position = state["position"]


# %% [markdown]
# ## All together
#
# Sixty neurons that say plus or minus one, trained by Lion on rings from the source; the same network with `tanh` for comparison. `train`
# takes all of them as it takes what is built in.

# %%
x, y = C.input_variable(2, name="points"), C.input_variable(3, name="rings")
EPOCH = 4800


def train(activation):
    """A trained network with this activation, its losses, and its error on new points."""
    C.cntk_py.set_fixed_random_seed(1)
    z = C.layers.Sequential([C.layers.Dense(60, activation=activation, init=C.uniform(2)), C.layers.Dense(3)])(x)
    criterion = C.combine([C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)])
    rates = C.learning_parameter_schedule([(8, 0.01), (6, 0.003), 0.001], epoch_size=EPOCH)
    source = Rings()
    progress = criterion.train(
        source,
        streams=(source.streams.points, source.streams.rings),
        parameter_learners=[Lion(z.parameters, rates)],
        minibatch_size=64,
        epoch_size=EPOCH,
        max_epochs=20,
    )
    new = source.next_minibatch(10_000)
    error = criterion.test((new[source.streams.points].asarray(), new[source.streams.rings].asarray())).metric
    return z, [summary.loss for summary in progress.epoch_summaries], error


results = {"sign": train(sign), "tanh": train(C.tanh)}
for name, (_, losses, error) in results.items():
    print(f"{name}: loss of the last epoch {losses[-1]:.3f}, {error:.2%} of new points in the wrong ring")

# %% [markdown]
# Neurons of one bit put fewer than 5 % of the points into the wrong ring; a guess would be wrong about 67 %.

# %%
assert results["sign"][2] < 0.05

# %% [markdown]
# Each neuron of one bit divides the plane by a line. Sixty lines make the cells on the left, in each of which the network can only say one
# thing; `tanh` has smooth edges. Pale places are those of which a network is unsure.

# %%
ticks = np.linspace(-1, 1, 301, dtype=np.float32)
grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
outside = np.hypot(*grid.T) > 1
palette = np.array([[0.84, 0.37, 0.30], [0.99, 0.75, 0.44], [0.27, 0.46, 0.71]])  # of rings 0, 1, 2

figure, axes = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
for place, (name, (z, losses, error)) in zip(axes, results.items(), strict=False):
    probabilities = C.softmax(z).eval({x: grid})
    certainty = probabilities.max(axis=1, keepdims=True) * 1.5 - 0.5
    colours = certainty * palette[probabilities.argmax(axis=1)] + 1 - certainty
    colours[outside] = 1
    place.imshow(colours.reshape(301, 301, 3), extent=(-1, 1, -1, 1), origin="lower")
    for radius in (1 / 3, 2 / 3, 1):
        place.add_patch(plt.Circle((0, 0), radius, fill=False, color="black", linewidth=0.8, linestyle="--"))
    place.set(title=f"{name}: {error:.1%} of new points wrong", xlabel="$x_0$", ylabel="$x_1$")
    axes[2].plot(range(1, 21), losses, label=name)
axes[2].set(xlabel="epoch of 4,800 points", ylabel="loss", yscale="log", title="learning by Lion")
axes[2].legend()
plt.show()

# %% [markdown]
# ## What to try next
#
# * Let the gradient of `Sign` pass everywhere, or nowhere. What is learnt then?
# * A learner as a graph, which needs no class: `C.universal`.
# * Publish what you wrote: `cntk new-plugin my-plugin` makes a package in which it has a name like everything built in.
# * Go on to notebook 12: several workers.
#
# In the docs: [user functions](../../docs/user_functions.md), [a learner that is a
# class](../../docs/learners.md#a-learner-that-is-a-class), [sources of your own](../../docs/training.md#sources-of-your-own),
# [plugins](../../docs/plugins.md).
