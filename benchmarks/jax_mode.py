"""Training in JAX on the CPU: parameters as trees of arrays, a step compiled as a whole, whose old parameters' memory is used again."""

import itertools

import numpy as np


def glorot(shape, seed=0):
    """Uniform initial weights (X. Glorot, Y. Bengio, 2010); filters have their outputs and inputs last."""
    width = np.sqrt(6 / (np.prod(shape[:-2]) * (shape[-2] + shape[-1])))
    return np.random.RandomState(seed).uniform(-width, width, shape).astype(np.float32)


def dense(inputs, outputs, seed=0):
    """Weights and bias of a dense layer."""
    return glorot((inputs, outputs), seed), np.zeros(outputs, np.float32)


def sgd(rate):
    """A learner: its state for given parameters, and a function of parameters, gradients and state that gives new ones."""
    import jax

    def update(parameters, gradients, state):
        return jax.tree.map(lambda w, g: w - rate * g, parameters, gradients), state

    return lambda parameters: (), update


def momentum_sgd(rate, momentum):
    """The same, with momentum."""
    import jax

    def update(parameters, gradients, state):
        state = jax.tree.map(lambda v, g: momentum * v + g, state, gradients)
        return jax.tree.map(lambda w, v: w - rate * v, parameters, state), state

    return lambda parameters: jax.tree.map(np.zeros_like, parameters), update


def adam(rate, momentum, variance_momentum, epsilon=1e-8):
    """The same, by Adam."""
    import jax
    import jax.numpy as jnp

    def begin(parameters):
        return [jax.tree.map(np.zeros_like, parameters) for _ in range(2)], np.float32(0)

    def update(parameters, gradients, state):
        (first, second), count = state
        count = count + 1
        first = jax.tree.map(lambda m, g: momentum * m + (1 - momentum) * g, first, gradients)
        second = jax.tree.map(lambda v, g: variance_momentum * v + (1 - variance_momentum) * g * g, second, gradients)
        step, scale = rate / (1 - momentum**count), 1 - variance_momentum**count
        moved = jax.tree.map(lambda w, m, v: w - step * m / (jnp.sqrt(v / scale) + epsilon), parameters, first, second)
        return moved, ([first, second], count)

    return begin, update


def training(apply, parameters, learner):
    """A function that takes a step on a minibatch: what *apply* makes scores of, with parameters and a key, followed by class numbers."""
    import jax
    import jax.numpy as jnp

    begin, update = learner
    held = [jax.device_put(parameters), jax.device_put(begin(parameters))]
    count = itertools.count()

    def loss(parameters, key, samples, labels):
        scores = apply(parameters, key, *samples)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(scores), labels[:, None], axis=1)
        return -chosen.mean(), (scores.argmax(axis=1) != labels).sum()

    def stepped(parameters, state, number, samples, labels):
        (value, errors), gradients = jax.value_and_grad(loss, has_aux=True)(parameters, jax.random.key(number), samples, labels)
        return (*update(parameters, gradients, state), value, errors)

    compiled = jax.jit(stepped, donate_argnums=(0, 1))

    def step(*minibatch):
        *samples, labels = minibatch
        held[0], held[1], *told = compiled(*held, next(count), tuple(samples), labels)
        jax.block_until_ready((held, told))

    return step


def softmax_attention(queries, keys, values):
    """Averages of values ``(samples, steps, heads, width)`` weighed by softmax of scores."""
    import jax
    import jax.numpy as jnp

    scores = jnp.einsum("nqhd,nkhd->nhqk", queries, keys) * queries.shape[-1] ** -0.5
    return jnp.einsum("nhqk,nkhd->nqhd", jax.nn.softmax(scores), values)
