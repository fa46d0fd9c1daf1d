# A recurrent network that learns to write text one character after the other.  Training goes through the text in pieces: the state of the
# recurrences is carried on from minibatch to minibatch by flags that say where a sequence begins.
from __future__ import print_function
import numpy as np
import os
import sys
from cntk import Trainer, Axis
from cntk.learners import momentum_sgd, momentum_as_time_constant_schedule, learning_rate_schedule, UnitType
from cntk.ops import sequence
from cntk.losses import cross_entropy_with_softmax
from cntk.metrics import classification_error
from cntk.ops.functions import load_model
from cntk.layers import LSTM, Stabilizer, Recurrence, Dense, For, Sequential
from cntk.logging import log_number_of_parameters, ProgressPrinter
from cntk.layers.typing import *
import cntk as C

hidden_dim = 24
num_layers = 2
minibatch_size = 12

text = (
    """the quick brown fox jumps over the lazy dog. a lazy dog sleeps; the brown fox does not. """
    """over and over jumps the fox, and over and over sleeps the dog. """
)


def get_data(p, minibatch_size, data, char_to_ix, vocab_dim):
    """The next piece of text, and itself one character later."""
    xi = [char_to_ix[ch] for ch in data[p : p + minibatch_size]]
    yi = [char_to_ix[ch] for ch in data[p + 1 : p + minibatch_size + 1]]

    X = np.eye(vocab_dim, dtype=np.float32)[xi]
    Y = np.eye(vocab_dim, dtype=np.float32)[yi]

    # one sequence in a minibatch
    return [X], [Y]


def sample(root, ix_to_char, vocab_dim, char_to_ix, prime_text="", use_hardmax=True, length=40, temperature=1.0):
    """Writes text: the most probable character follows, or one that is drawn."""
    rng = np.random.RandomState(5)

    def sample_from(p):
        p = np.power(p, temperature)
        return rng.choice(range(vocab_dim), p=(p / np.sum(p)).ravel())

    def choose(p):
        w = int(np.argmax(p, axis=2)[0, 0]) if use_hardmax else sample_from(p[0, 0])
        x = np.zeros((1, vocab_dim), dtype=np.float32)
        x[0, w] = 1
        return x, w

    plen = 1
    prime = -1
    x = np.zeros((1, vocab_dim), dtype=np.float32)
    if prime_text != "":
        plen = len(prime_text)
        prime = char_to_ix[prime_text[0]]
    else:
        prime = rng.choice(range(vocab_dim))
    x[0, prime] = 1
    arguments = ([x], [True])

    output = [prime]
    for i in range(plen):
        p = root.eval(arguments)
        x = np.zeros((1, vocab_dim), dtype=np.float32)
        if i < plen - 1:
            idx = char_to_ix[prime_text[i + 1]]
        else:
            _, idx = choose(np.array(p))
        output.append(idx)
        x[0, idx] = 1
        arguments = ([x], [False])

    for i in range(length - plen):
        p = root.eval(arguments)
        x, idx = choose(np.array(p))
        output.append(idx)
        arguments = ([x], [False])
    return "".join([ix_to_char[c] for c in output])


def load_data_and_vocab():
    chars = sorted(list(set(text)))
    char_to_ix = {ch: i for i, ch in enumerate(chars)}
    ix_to_char = {i: ch for i, ch in enumerate(chars)}
    return text * 2, char_to_ix, ix_to_char, len(chars)


def create_model(output_dim):
    return Sequential(
        [
            For(
                range(num_layers),
                lambda: Sequential([Stabilizer(), Recurrence(LSTM(hidden_dim, init=C.glorot_uniform()), go_backwards=False)]),
            ),
            Dense(output_dim),
        ]
    )


def create_inputs(vocab_dim):
    input_seq_axis = Axis("inputAxis")
    input_sequence = sequence.input_variable(shape=vocab_dim, sequence_axis=input_seq_axis)
    label_sequence = sequence.input_variable(shape=vocab_dim, sequence_axis=input_seq_axis)
    return input_sequence, label_sequence


def create_loss(model, label_sequence):
    ce = cross_entropy_with_softmax(model, label_sequence)
    errs = classification_error(model, label_sequence)
    return ce, errs


def train_lm(training, char_to_ix, ix_to_char, vocab_dim, epochs, max_num_minibatches):
    input_sequence, label_sequence = create_inputs(vocab_dim)
    z = create_model(vocab_dim)(input_sequence)
    ce, errs = create_loss(z, label_sequence)

    lr_per_sample = learning_rate_schedule(0.3, UnitType.sample)
    momentum_schedule = momentum_as_time_constant_schedule(40)
    clipping_threshold_per_sample = 5.0
    gradient_clipping_with_truncation = True
    learner = momentum_sgd(
        z.parameters,
        lr_per_sample,
        momentum_schedule,
        gradient_clipping_threshold_per_sample=clipping_threshold_per_sample,
        gradient_clipping_with_truncation=gradient_clipping_with_truncation,
    )
    progress_printer = ProgressPrinter(freq=6, tag="Training")
    trainer = Trainer(z, (ce, errs), learner, progress_printer)

    minibatches_per_epoch = min(len(training) // minibatch_size, max_num_minibatches // epochs)
    print(
        "parameters: %d, characters: %d, minibatches per epoch: %d"
        % (sum(p.value.size for p in z.parameters), vocab_dim, minibatches_per_epoch)
    )
    for e in range(0, epochs):
        # flags of two minibatches in one epoch say that a sequence begins: the first of the text
        mask = [True]
        for b in range(0, minibatches_per_epoch):
            features, labels = get_data(b * minibatch_size, minibatch_size, training, char_to_ix, vocab_dim)
            arguments = ({input_sequence: features, label_sequence: labels}, mask)
            mask = [False]
            trainer.train_minibatch(arguments)
            if (b + 1) % 10 == 0:
                print("[%s]" % sample(z, ix_to_char, vocab_dim, char_to_ix, length=20))

        model_filename = "models/shakespeare_epoch%d.dnn" % (e + 1)
        z.save(model_filename)
        print("Saved model to '%s'" % model_filename)
    trainer.summarize_training_progress()

    # how well the rest of the text is foretold, with and without what came before it
    features, labels = get_data(100, 30, training, char_to_ix, vocab_dim)
    print("test %.4f" % trainer.test_minibatch(({input_sequence: features, label_sequence: labels}, [True])))
    total = C.combine([ce, errs])
    results = total.eval(({input_sequence: features, label_sequence: labels}, [True]))
    print("eval %.4f %.4f" % tuple(float(np.mean(np.asarray(results[o]))) for o in total.outputs))
    results = ce.forward(({input_sequence: features, label_sequence: labels}, [True]), [ce.output], as_numpy=True)[1]
    print("forward %.4f" % np.mean(np.asarray(results[ce.output])))
    return z


def load_and_sample(model_filename, vocab_dim, char_to_ix, ix_to_char, prime_text=""):
    model = C.softmax(load_model(model_filename))
    return sample(model, ix_to_char, vocab_dim, char_to_ix, prime_text=prime_text, use_hardmax=False, length=60, temperature=1.5)


def train_and_eval_char_rnn(epochs=2, max_num_minibatches=100):
    data, char_to_ix, ix_to_char, vocab_dim = load_data_and_vocab()
    if not os.path.exists("models"):
        os.mkdir("models")
    z = train_lm(data, char_to_ix, ix_to_char, vocab_dim, epochs, max_num_minibatches)
    print(load_and_sample("models/shakespeare_epoch%d.dnn" % epochs, vocab_dim, char_to_ix, ix_to_char, "the qui"))

    # two texts side by side, one of them begins anew in the middle
    a, _ = get_data(0, 5, data, char_to_ix, vocab_dim)
    b, _ = get_data(20, 5, data, char_to_ix, vocab_dim)
    for flags in ([True, True], [False, False], [False, True], [True, False]):
        result = z.eval(([a[0], b[0]], flags))
        print([round(float(r[-1].max()), 3) for r in result])


if __name__ == "__main__":
    C.cntk_py.set_fixed_random_seed(1)
    train_and_eval_char_rnn(2, 60)
