"""Deep Q-learning with a target network and replay memory, on a small grid world written in NumPy."""

from __future__ import print_function
from __future__ import division
import random
from collections import deque

import numpy as np
import cntk as C
from cntk.layers import *
from cntk.initializer import he_uniform
from cntk.learners import adam, learning_parameter_schedule, momentum_schedule, UnitType
from cntk.logging import ProgressPrinter
from cntk.losses import squared_error

np.random.seed(7)
random.seed(7)
C.cntk_py.set_fixed_random_seed(7)
C.device.try_set_default_device(C.device.cpu())


class GridWorld(object):
    """The agent walks from the corner to the goal; holes end the episode."""

    MOVES = [(-1, 0), (1, 0), (0, -1), (0, 1)]

    def __init__(self, size=4, holes=((1, 2), (2, 0))):
        self.size = size
        self.holes = holes
        self.goal = (size - 1, size - 1)
        self.reset()

    def reset(self):
        self.position = (0, 0)
        self.steps = 0
        return self.observe()

    def observe(self):
        planes = np.zeros((2, self.size, self.size), dtype=np.float32)
        planes[0][self.position] = 1
        for hole in self.holes:
            planes[1][hole] = 1
        return planes

    def step(self, action):
        dy, dx = self.MOVES[action]
        y = min(max(self.position[0] + dy, 0), self.size - 1)
        x = min(max(self.position[1] + dx, 0), self.size - 1)
        self.position = (y, x)
        self.steps += 1
        if self.position == self.goal:
            return self.observe(), 1.0, True
        if self.position in self.holes:
            return self.observe(), -1.0, True
        return self.observe(), -0.01, self.steps >= 30


class ReplayMemory(object):
    def __init__(self, capacity):
        self.samples = deque(maxlen=capacity)

    def __len__(self):
        return len(self.samples)

    def add(self, sample):
        self.samples.append(sample)

    def minibatch(self, n):
        indices = np.random.randint(0, len(self.samples), n)
        batch = [self.samples[i] for i in indices]
        states = np.array([b[0] for b in batch])
        actions = np.array([b[1] for b in batch])
        rewards = np.array([b[2] for b in batch], dtype=np.float32)
        after = np.array([b[3] for b in batch])
        done = np.array([b[4] for b in batch])
        return states, actions, rewards, after, done


def huber_loss(y, y_hat, delta):
    half_delta_squared = 0.5 * delta * delta
    error = y - y_hat
    abs_error = C.abs(error)
    less_than = 0.5 * C.square(error)
    more_than = (delta * abs_error) - half_delta_squared
    loss_per_sample = C.element_select(C.less(abs_error, delta), less_than, more_than)
    return C.reduce_sum(loss_per_sample, name="loss")


class DeepQAgent(object):
    def __init__(self, input_shape, nb_actions, gamma=0.9, minibatch_size=16, target_update_interval=20):
        self.input_shape = input_shape
        self.nb_actions = nb_actions
        self.gamma = gamma
        self.minibatch_size = minibatch_size
        self.target_update_interval = target_update_interval
        self.memory = ReplayMemory(200)
        self.trained = 0
        self.epsilon = 1.0

        with default_options(activation=C.relu, init=he_uniform(seed=3)):
            self.action_value_net = Sequential(
                [
                    Convolution2D((2, 2), 8, strides=1, pad=False, name="conv1"),
                    Dense(24, name="hidden"),
                    Dense(nb_actions, activation=None, name="q"),
                ]
            )
        self.action_value_net.update_signature(Tensor[input_shape])
        self.target_net = self.action_value_net.clone(C.CloneMethod.freeze)

        @C.Function
        @Signature(post_states=Tensor[input_shape], rewards=Tensor[()], terminals=Tensor[()])
        def compute_q_targets(post_states, rewards, terminals):
            return C.element_select(
                terminals,
                rewards,
                self.gamma * C.reduce_max(self.target_net(post_states), axis=0) + rewards,
            )

        @C.Function
        @Signature(
            pre_states=Tensor[input_shape],
            actions=Tensor[nb_actions],
            post_states=Tensor[input_shape],
            rewards=Tensor[()],
            terminals=Tensor[()],
        )
        def criterion(pre_states, actions, post_states, rewards, terminals):
            q_targets = compute_q_targets(post_states, rewards, terminals)
            q_acted = C.reduce_sum(self.action_value_net(pre_states) * actions, axis=0)
            return huber_loss(q_targets, q_acted, 1.0)

        self.criterion = criterion
        lr = learning_parameter_schedule(0.01)
        m = momentum_schedule(0.9)
        vm = momentum_schedule(0.999)
        self.learner = adam(self.action_value_net.parameters, lr, m, variance_momentum=vm)
        self.trainer = C.Trainer(criterion, (criterion, None), self.learner)

    def act(self, state):
        if random.random() < self.epsilon:
            return random.randrange(self.nb_actions)
        q = self.action_value_net.eval([state])
        return int(q.argmax())

    def observe(self, before, action, reward, after, done):
        self.memory.add((before, action, reward, after, done))
        self.epsilon = max(0.1, self.epsilon - 0.01)

    def train(self):
        if len(self.memory) < self.minibatch_size:
            return None
        states, actions, rewards, after, done = self.memory.minibatch(self.minibatch_size)
        self.trainer.train_minibatch(
            self.criterion.argument_map(
                pre_states=states,
                actions=C.Value.one_hot(actions.reshape(-1, 1).tolist(), self.nb_actions),
                post_states=after,
                rewards=rewards,
                terminals=done.astype(np.float32),
            )
        )
        self.trained += 1
        if self.trained % self.target_update_interval == 0:
            self.target_net = self.action_value_net.clone(C.CloneMethod.freeze)
            self.refreshed = [p.shape for p in self.target_net.constants]
        return self.trainer.previous_minibatch_loss_average


env = GridWorld()
agent = DeepQAgent(env.observe().shape, 4)
print("parameters", [(p.name, p.shape) for p in agent.action_value_net.parameters])
print("frozen parameters", len(agent.target_net.parameters), "constants", len(agent.target_net.constants))
print("arguments", sorted(a.name for a in agent.criterion.arguments))

updates = 0
for episode in range(8):
    state = env.reset()
    total, losses, done = 0.0, [], False
    while not done:
        action = agent.act(state)
        after, reward, done = env.step(action)
        agent.observe(state, action, reward, after, done)
        loss = agent.train()
        if loss is not None:
            losses.append(loss)
        state = after
        total += reward
    print(
        "episode %d: steps %d reward %.2f epsilon %.2f loss %.3f"
        % (episode, env.steps, total, agent.epsilon, np.mean(losses) if losses else 0)
    )
    updates += len(losses)

print("updates", updates, "samples seen", agent.trainer.total_number_of_samples_seen)
q = agent.action_value_net.eval([env.reset()])
print("q shape", q.shape, "values", " ".join("%.2f" % v for v in q[0]))
print("refreshed", agent.refreshed)
agent.action_value_net.save("agent.dqn")
restored = C.load_model("agent.dqn")
print("restored", np.allclose(restored.eval([env.observe()]), q))
