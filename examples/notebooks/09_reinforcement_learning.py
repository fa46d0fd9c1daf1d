# %% [markdown]
# # 09 Learning from rewards
#
# You will learn
#
# * how an environment of your own is a few lines of NumPy,
# * how episodes, which end when they end, are sequences of different lengths,
# * how a policy gradient is an ordinary loss, weighted by what came of each action,
# * how the same network takes sequences in training, and single states in use.
#
# It takes NumPy and matplotlib beside the library: `pip install 'opencntk[plot]'`.

# %%
import matplotlib.pyplot as plt
import numpy as np

import cntk as C

C.cntk_py.set_fixed_random_seed(1)
random = np.random.default_rng(1)

# %% [markdown]
# ## A pole on a cart
#
# A pole stands on a cart, which is pushed left or right fifty times a second (Barto, Sutton and Anderson 1983). The state has four numbers:
# place and speed of the cart, angle and angular speed of the pole. An episode ends when the pole leans by more than 12 degrees, the cart is
# 2.4 m from the middle, or after 200 steps. We move many carts at once, a row each.

# %%
LIMIT = 200


def begin(count):
    """So many carts, nearly at rest, their poles nearly upright."""
    return random.uniform(-0.05, 0.05, size=(count, 4)).astype(np.float32)


def push(states, right):
    """The states a fiftieth of a second later, after a push of 10 N to the right where *right* is 1, and to the left where it is 0."""
    _, speed, angle, turning = states.T
    force = np.where(right, 10.0, -10.0)
    sine, cosine = np.sin(angle), np.cos(angle)
    pull = (force + 0.05 * turning**2 * sine) / 1.1  # masses of 1 kg and 0.1 kg, half a pole of 0.5 m
    turning_faster = (9.8 * sine - cosine * pull) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
    faster = pull - 0.05 * turning_faster * cosine / 1.1
    step = np.stack([speed, faster, turning, turning_faster], axis=1)
    return (states + 0.02 * step).astype(np.float32)


def fallen(states):
    return (np.abs(states[:, 0]) > 2.4) | (np.abs(states[:, 2]) > np.radians(12))


# %% [markdown]
# ## The policy
#
# A small network gives scores of the two pushes. It is applied to two inputs: a sequence of states to learn from, and a single state, to
# act on. Both have the same weights, because it is the same function.

# %%
policy = C.layers.Sequential([C.layers.Dense(32, activation=C.tanh), C.layers.Dense(2, init=0)])

states = C.sequence.input_variable(4, name="states")
actions = C.sequence.input_variable(2, name="actions")
advantages = C.sequence.input_variable(1, name="advantages")
z = policy(states)

state = C.input_variable(4, name="state")
chances = C.softmax(policy(state))
print(z, chances, sep="\n")
assert set(z.parameters) == set(chances.parameters)


# %%
def play(count, greedy=False):
    """Let so many carts run; return the states and the actions of each until it ended."""
    now, running = begin(count), np.ones(count, dtype=bool)
    seen, done = [[] for _ in range(count)], [[] for _ in range(count)]
    for _ in range(LIMIT):
        right_chance = chances.eval({state: now})[:, 1]
        right = (right_chance > (0.5 if greedy else random.uniform(size=count))).astype(int)
        for cart in np.flatnonzero(running):
            seen[cart].append(now[cart])
            done[cart].append(right[cart])
        now = push(now, right)
        running &= ~fallen(now)
        if not running.any():
            break
    return [np.array(steps) for steps in seen], [np.array(steps) for steps in done]


lengths = [len(steps) for steps in play(200)[1]]
print(f"pushed at random, poles stand for {np.mean(lengths):.0f} steps on average, {max(lengths)} at most")

# %% [markdown]
# ## The gradient of a policy
#
# Each step that the pole stands is a reward of 1. What came of an action is the discounted sum of the rewards after it; how much better
# that was than others is its *advantage*. The loss makes actions with positive advantages likelier, and those with negative ones less
# likely: $\sum_t A_t \cdot -\log p(a_t \mid s_t)$. That is a cross entropy, times a number (REINFORCE, Williams 1992).

# %%
loss = advantages * C.cross_entropy_with_softmax(z, actions)
learner = C.adam(z.parameters, C.learning_parameter_schedule(0.02), 0.9, variance_momentum=0.99, minibatch_size=C.learners.IGNORE)
trainer = C.Trainer(z, loss, [learner])

DISCOUNT, EPISODES, UPDATES = 0.97, 24, 40
# What comes after a step depends on how many follow: 1 + 0.97 + 0.97² + ... of so many.
worth = (1 - DISCOUNT ** np.arange(LIMIT + 1)) / (1 - DISCOUNT)


def returns(length):
    """What came of each step of an episode that fell, or that was stopped at the limit."""
    return worth[np.arange(length, 0, -1)] if length < LIMIT else np.full(length, worth[LIMIT])


history = []
for _ in range(UPDATES):
    seen, done = play(EPISODES)
    came = [returns(len(steps)) for steps in done]
    every = np.concatenate(came)
    scale = every.std() + 1e-6
    trainer.train_minibatch(
        {
            states: seen,
            actions: [np.eye(2, dtype=np.float32)[steps] for steps in done],
            advantages: [((values - every.mean()) / scale).astype(np.float32)[:, None] for values in came],
        }
    )
    history.append([len(steps) for steps in done])
print(f"steps that a pole stands: first update {np.mean(history[0]):.0f}, last {np.mean(history[-1]):.0f}")

# %% [markdown]
# Without chance, always the likelier push, the policy keeps a hundred new poles standing for 195 of 200 steps on average, at least:

# %%
seen, done = play(100, greedy=True)
stands = np.mean([len(steps) for steps in done])
print(f"{stands:.1f} steps")
assert stands >= 195

# %% [markdown]
# Left: every dot is an episode. Right: what the policy does with a cart in the middle that does not move. The line between the colours is
# what a control engineer would draw as well: push to the side to which the pole will have fallen a moment later. The white curve is the
# first second and a half of a new pole; place and speed of its cart, which change meanwhile, move the line.

# %%
figure, (curve, plane) = plt.subplots(1, 2, figsize=(11.5, 4.3), layout="constrained")
numbers = np.repeat(np.arange(1, UPDATES + 1), EPISODES)
curve.scatter(numbers, np.ravel(history), s=5, color="tab:blue", alpha=0.35, label="episodes")
curve.plot(np.arange(1, UPDATES + 1), np.mean(history, axis=1), color="black", label="mean of an update")
curve.set(xlabel="update", ylabel="steps that the pole stands", ylim=(0, LIMIT + 8))
curve.legend(loc="lower right")

angles, turnings = np.linspace(-12, 12, 121), np.linspace(-60, 60, 121)
grid = np.zeros((121 * 121, 4), dtype=np.float32)
grid[:, 2], grid[:, 3] = (axis.ravel() for axis in np.meshgrid(np.radians(angles), np.radians(turnings)))
picture = plane.pcolormesh(angles, turnings, chances.eval({state: grid})[:, 1].reshape(121, 121), cmap="PuOr", vmin=0, vmax=1)
path = np.degrees(seen[0][:75, 2:])
plane.plot(*path.T, color="white", linewidth=1.5)
plane.plot(*path[0], "o", color="white")
plane.set(xlabel="angle of the pole (degrees, to the right)", ylabel="angular speed (degrees a second)")
figure.colorbar(picture, ax=plane, label="probability of a push to the right")
plt.show()

# %% [markdown]
# ## What to try next
#
# * Reward the middle as well: a cart that drifts to the end loses. Does the policy stay for 1,000 steps then?
# * Learn the mean return of each state by a second network, and take it off in place of the mean of all: actor and critic.
# * Learn from a memory of transitions instead, with a `clone("freeze")` of the network for the targets: Q learning.
# * Go on to notebook 10: what a network has learnt, used for another task.
#
# In the docs: [axes and sequences](../../docs/sequences.md), [a loop of your own](../../docs/training.md#a-loop-of-your-own).
