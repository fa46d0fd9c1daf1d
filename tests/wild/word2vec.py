"""Word vectors by skip-gram: sampled softmax, and noise contrastive estimation, over a text that the program makes itself."""

from __future__ import print_function
import math
import collections
import numpy as np
import cntk as C
from cntk import times, Axis, cross_entropy_with_softmax, random_sample, random_sample_inclusion_frequency, times_transpose
from cntk.learners import sgd, learning_rate_schedule, UnitType, adagrad, learning_parameter_schedule_per_sample
from cntk.train import Trainer
from cntk.losses import nce_loss

C.cntk_py.set_fixed_random_seed(99)
np.random.seed(99)


class G:
    embedding_dimension = 12
    vocab_dim = 60
    skip_window = 2
    num_of_samples = 15
    allow_duplicates = True
    minibatch_size = 24
    softmax_sample_size = 15
    num_minibatches = 12
    unigram_power = 0.75


def make_text(n):
    """Words by Zipf's law, where a word likes its neighbours."""
    ranks = np.arange(1, G.vocab_dim + 1)
    frequencies = 1.0 / ranks
    text = np.random.choice(G.vocab_dim, n, p=frequencies / frequencies.sum())
    text[1::2] = (text[::2][: len(text[1::2])] + 1) % G.vocab_dim
    return text


text = make_text(1200)
counts = collections.Counter(text.tolist())
unigrams = np.array([counts.get(i, 0) + 1 for i in range(G.vocab_dim)])
sampling_weights = unigrams / np.sum(unigrams)  # float64
sampling_weights = sampling_weights**G.unigram_power
sampling_weights = sampling_weights / sampling_weights.sum()
print("weights", sampling_weights.dtype, "%.4f %.4f" % (sampling_weights[0], sampling_weights[-1]))


def skip_grams(text, window):
    for i in range(window, len(text) - window):
        for j in list(range(-window, 0)) + list(range(1, window + 1)):
            yield int(text[i]), int(text[i + j])


def batches(text, window, size):
    words, contexts = [], []
    for word, context in skip_grams(text, window):
        words.append(word)
        contexts.append(context)
        if len(words) == size:
            yield words, contexts
            words, contexts = [], []


def cross_entropy_with_sampled_softmax(
    target_vector, weights, hidden_vector, vocab_dim, num_samples, sampling_weights, allow_duplicates=True
):
    bias = C.layers.Parameter(shape=(vocab_dim, 1), init=0)
    sample_selector_sparse = random_sample(sampling_weights, num_samples, allow_duplicates)
    inclusion_probs = random_sample_inclusion_frequency(sampling_weights, num_samples, allow_duplicates)
    log_prior = C.log(inclusion_probs)
    wS = times(sample_selector_sparse, weights, name="wS")
    zS = (
        times_transpose(wS, hidden_vector, name="zS1")
        + times(sample_selector_sparse, bias, name="zS2")
        - times_transpose(sample_selector_sparse, log_prior, name="zS3")
    )
    wT = times(target_vector, weights, name="wT")
    zT = (
        times_transpose(wT, hidden_vector, name="zT1")
        + times(target_vector, bias, name="zT2")
        - times_transpose(target_vector, log_prior, name="zT3")
    )
    zSReduced = C.reduce_log_sum_exp(zS)
    cross_entropy_on_samples = C.log_add_exp(zT, zSReduced) - zT
    # for metrics: the full softmax
    z = C.reshape(C.times_transpose(weights, hidden_vector) + bias, shape=(vocab_dim,))
    zSMax = C.reduce_max(zS)
    error_on_samples = C.less(zT, zSMax)
    return (z, cross_entropy_on_samples, error_on_samples)


def full_softmax_loss(weights, hidden_vector, target):
    return cross_entropy_with_softmax(times_transpose(weights, hidden_vector), target)


def average_cross_entropy(z, word, context):
    full = cross_entropy_with_softmax(z, context)
    words, contexts = next(batches(text[600:], G.skip_window, 80))
    return np.mean(full.eval({word: C.Value.one_hot(words, G.vocab_dim), context: C.Value.one_hot(contexts, G.vocab_dim)}))


def train_sampled_softmax():
    word = C.input_variable(G.vocab_dim, is_sparse=True, name="word")
    context = C.input_variable(G.vocab_dim, is_sparse=True, name="context")
    E = C.layers.Embedding(G.embedding_dimension, init=C.uniform(0.5, seed=1), name="embedding")
    hidden = E(word)
    weights = C.Parameter((G.vocab_dim, G.embedding_dimension), init=C.glorot_uniform(seed=2), name="weights")
    z, ce, error = cross_entropy_with_sampled_softmax(context, weights, hidden, G.vocab_dim, G.softmax_sample_size, sampling_weights)
    print("shapes", z.shape, ce.shape, error.shape, ce.dtype)
    learner = sgd(z.parameters, learning_rate_schedule(0.05, UnitType.sample))
    trainer = Trainer(z, (ce, error), learner)
    print("before: full cross entropy %.3f" % average_cross_entropy(z, word, context))
    for i, (words, contexts) in enumerate(batches(text, G.skip_window, G.minibatch_size)):
        if i == G.num_minibatches:
            break
        trainer.train_minibatch({word: C.Value.one_hot(words, G.vocab_dim), context: C.Value.one_hot(contexts, G.vocab_dim)})
        if i % 4 == 3:
            print("  minibatch %d: loss %.3f" % (i + 1, trainer.previous_minibatch_loss_average))
    print("after: full cross entropy %.3f" % average_cross_entropy(z, word, context))
    return E, word


def train_nce():
    word = C.input_variable(G.vocab_dim, is_sparse=True)
    context = C.input_variable(G.vocab_dim, is_sparse=True)
    embedded = C.layers.Embedding(G.embedding_dimension, init=C.uniform(0.5, seed=1))(word)
    W = C.parameter((G.vocab_dim, C.InferredDimension), init=C.glorot_uniform(seed=3))
    b = C.parameter((G.vocab_dim, 1), init=-math.log(G.vocab_dim))
    loss = nce_loss(W, b, embedded, context, sampling_weights.astype(np.float32), num_samples=10, allow_duplicates=True, seed=5)
    print("nce", loss.shape, W.shape, b.shape)
    learner = adagrad(loss.parameters, learning_parameter_schedule_per_sample(0.05))
    z = C.reshape(C.times_transpose(W, embedded) + b, (G.vocab_dim,))
    trainer = Trainer(z, (loss, C.classification_error(z, context)), [learner])
    losses = []
    for epoch in range(2):
        for i, (words, contexts) in enumerate(batches(text[:400], G.skip_window, G.minibatch_size)):
            if i == G.num_minibatches:
                break
            trainer.train_minibatch({word: C.Value.one_hot(words, G.vocab_dim), context: C.Value.one_hot(contexts, G.vocab_dim)})
            losses.append(trainer.previous_minibatch_loss_average)
    print("nce losses %.2f -> %.2f" % (losses[0], losses[-1]))
    print("nce: full cross entropy %.2f" % average_cross_entropy(z, word, context))


E, word = train_sampled_softmax()
vectors = E.E.value
print("embedding", vectors.shape, "%.3f" % np.linalg.norm(vectors, axis=1).mean())


def nearest(query, k=3):
    normed = vectors / np.linalg.norm(vectors, axis=1)[:, np.newaxis]
    return np.argsort(-normed.dot(normed[query]))[:k].tolist()


print("nearest to 0", nearest(0)[0], "to 5", nearest(5)[0])
row = E(C.Constant(np.eye(G.vocab_dim, dtype=np.float32)[3])).eval()
print("row of the matrix", np.allclose(row, vectors[3]))
train_nce()

frequency = C.random_sample_inclusion_frequency(sampling_weights, G.num_of_samples, True, seed=1).eval()
print("inclusion", frequency.shape, frequency.dtype, "%.2f" % frequency.sum())
sampled = C.random_sample(sampling_weights, 8, True, seed=3).eval()
dense = sampled.toarray() if hasattr(sampled, "toarray") else np.asarray(sampled)
print("sample", dense.shape, dense.sum(axis=1).tolist())
selected = C.times(C.random_sample(sampling_weights, 6, False, seed=4), E.E).eval()
print("selected", selected.shape, selected.dtype)
