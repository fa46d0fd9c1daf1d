# A tagger of words, trained from text files with several streams: sparse words, sparse tags, a dense feature of each word, and the
# intent of the whole sentence from a second file.
import math
import os
import numpy as np
from cntk.layers import *  # layers, typing, and what these bring
from cntk.layers.typing import *
from cntk import Trainer, Value, combine, splice, load_model
from cntk.learners import fsadagrad, adadelta, momentum_as_time_constant_schedule, learning_parameter_schedule_per_sample, adam
from cntk.ops import sequence, softmax, relu, times, plus
from cntk.io import CTFDeserializer, MinibatchSource, StreamDef, StreamDefs, INFINITELY_REPEAT, FULL_DATA_SWEEP
from cntk.logging import log_number_of_parameters, ProgressPrinter
import cntk as C
import cntk.io as io

vocab_size = 60
num_labels = 6
num_intents = 3
emb_dim = 12
hidden_dim = 10

pronouns = ["i", "you", "we"]


def write_data(words_file, intents_file, count, seed):
    """Sentences whose tags depend on the word and on what is around it; comments hold the words, as converters write them."""
    rng = np.random.RandomState(seed)
    with open(words_file, "w") as words, open(intents_file, "w") as intents:
        for n in range(count):
            length = rng.randint(3, 9)
            sentence = rng.randint(2, vocab_size, length)
            intent = rng.randint(num_intents)
            sentence[rng.randint(length)] = 10 + intent
            for i, w in enumerate(sentence):
                before = sentence[i - 1] if i else 0
                after = sentence[i + 1] if i + 1 < length else 0
                tag = 1 + (w % 2) + 2 * (before > after) if w < 40 else 0
                line = "%d |S0 %d:1 |# w%d |S2 %d:1 |# T%d" % (n, w, w, tag, tag)
                if i % 2 == 0:
                    line += " |cap %.2f %.2f" % (rng.rand(), w / vocab_size)
                else:
                    line += " |cap 0 %.2f" % (w / vocab_size)
                words.write(line + "\n")
            intents.write("%d |S1 %d:1\n" % (n, intent))


def create_reader(words_file, intents_file, is_training):
    words = CTFDeserializer(
        words_file,
        StreamDefs(
            query=StreamDef(field="S0", shape=vocab_size, is_sparse=True),
            slot_labels=StreamDef(field="S2", shape=num_labels, is_sparse=True),
            shape_features=StreamDef(field="cap", shape=2, is_sparse=False),
        ),
    )
    intents = CTFDeserializer(intents_file, StreamDefs(intent=StreamDef(field="S1", shape=num_intents, is_sparse=True)))
    return MinibatchSource([words, intents], randomize=False, max_sweeps=INFINITELY_REPEAT if is_training else 1)


def BiRecurrence(fwd, bwd):
    F = Recurrence(fwd)
    G = Recurrence(bwd, go_backwards=True)
    x = C.placeholder()
    apply_x = splice(F(x), G(x))
    return apply_x


def create_model():
    with default_options(initial_state=0.1):
        return Sequential(
            [
                Embedding(emb_dim, name="embed"),
                Label("embedded"),
                BiRecurrence(LSTM(hidden_dim), GRU(hidden_dim, activation=C.tanh)),
                Label("hidden"),
                Dense(num_labels, name="classify"),
            ]
        )


def look_around_model():
    """Another network: a window of words, and layers that are called one by one."""
    embed = Embedding(emb_dim, init=C.initializer.uniform(0.2), name="embed2")
    window = [Delay(T=t) for t in (1, 0, -1)]
    hidden = Dense(16, activation=C.ops.relu)
    scores = Dense(num_labels)

    @C.Function
    def model(words, features):
        e = embed(words)
        around = splice(*[w(e) for w in window])
        return scores(hidden(splice(around, features)))

    return model


def create_criterion_function(model, query, slot_labels):
    z = model(query)
    ce = C.cross_entropy_with_softmax(z, slot_labels)
    errs = C.classification_error(z, slot_labels)
    return z, ce, errs


def split_parameters(z):
    """The embedding, whose gradients are sparse, and all other parameters."""
    sparse = [p for p in z.parameters if p.name == "E"]
    return sparse, [p for p in z.parameters if p not in sparse]


def train(reader, max_epochs, epoch_size):
    # the axis of all sentences, by name
    axis = C.Axis.new_unique_dynamic_axis("sentence")
    query = C.sequence.input_variable(vocab_size, is_sparse=True, sequence_axis=axis, name="query")
    slots = C.sequence.input_variable(num_labels, is_sparse=True, sequence_axis=axis, name="slots")
    model = create_model()
    z, ce, pe = create_criterion_function(model, query, slots)
    log_number_of_parameters(z, trace_level=1)
    print()

    minibatch_size = 40
    # one learner for the sparse gradients of the embedding, another for the rest
    lr_schedule = learning_parameter_schedule_per_sample([0.01] * 2 + [0.005], epoch_size=epoch_size)
    momentum_schedule = momentum_as_time_constant_schedule(minibatch_size / -math.log(0.9))
    sparse, dense = split_parameters(z)
    learners = [
        adadelta(sparse, lr=C.learning_parameter_schedule(1.0), rho=0.9, epsilon=1e-3),
        fsadagrad(
            dense,
            lr=lr_schedule,
            momentum=momentum_schedule,
            unit_gain=True,
            gradient_clipping_threshold_per_sample=15,
            gradient_clipping_with_truncation=True,
        ),
    ]
    trainer = Trainer(z, (ce, pe), learners, [ProgressPrinter(freq=4, tag="Training")])

    input_map = {query: reader.streams.query, slots: reader.streams.slot_labels}
    t = 0
    for epoch in range(max_epochs):
        epoch_end = (epoch + 1) * epoch_size
        while t < epoch_end:
            data = reader.next_minibatch(min(minibatch_size, epoch_end - t), input_map=input_map)
            trainer.train_minibatch(data)
            t += data[slots].num_samples
        trainer.summarize_training_progress()
    return trainer, z, query, slots


def evaluate(reader, trainer, query, slots):
    errors, count = 0.0, 0
    while True:
        data = reader.next_minibatch(30, input_map={query: reader.streams.query, slots: reader.streams.slot_labels})
        if not data:
            return errors / count, count
        n = data[slots].num_samples
        errors += trainer.test_minibatch(data) * n
        count += n


def intents_model():
    """The intent of a sentence: the last state of one direction, the first of the other, and the largest of all."""
    words = C.sequence.input_variable(vocab_size, is_sparse=True)
    e = Embedding(emb_dim)(words)
    forward, backward = Recurrence(RNNStep(8, activation=C.tanh))(e), Recurrence(RNNStep(8), go_backwards=True)(e)
    state = splice(sequence.last(forward), sequence.first(backward), sequence.reduce_max(e), Fold(GRU(4))(e))
    return words, Dense(num_intents)(state)


def train_intents(words_file, intents_file):
    reader = create_reader(words_file, intents_file, True)
    words, z = intents_model()
    intent = C.input_variable(num_intents, is_sparse=True)
    ce = C.cross_entropy_with_softmax(z, intent)
    pe = C.classification_error(z, intent)
    sparse, dense = split_parameters(z)
    learner = C.adam(
        dense, C.learning_parameter_schedule(0.05), C.momentum_schedule(0.9), variance_momentum=C.momentum_schedule(0.99), epsilon=1e-6
    )
    trainer = C.Trainer(z, (ce, pe), [learner, C.sgd(sparse, C.learning_parameter_schedule(0.5), minibatch_size=10)])
    for i in range(6):
        mb = reader.next_minibatch(60)
        trainer.train_minibatch({words: mb[reader.streams.query], intent: mb[reader.streams["intent"]]})
        print(
            "intents %d: %d sequences, %d words, loss %.5f"
            % (i, mb[reader.streams.intent].num_sequences, mb[reader.streams.query].num_samples, trainer.previous_minibatch_loss_average)
        )


def train_window(words_file, intents_file):
    reader = create_reader(words_file, intents_file, True)
    words, features = C.sequence.input_variable(vocab_size, is_sparse=True), C.sequence.input_variable(2)
    tags = C.sequence.input_variable(num_labels)
    sparse_tags = C.sequence.input_variable(num_labels, is_sparse=True)
    model = look_around_model()
    z = model(words, features)
    loss = C.cross_entropy_with_softmax(z, tags)
    sparse, dense = split_parameters(z)
    learner = C.rmsprop(dense, C.learning_parameter_schedule_per_sample(0.01), gamma=0.9, inc=1.1, dec=0.8, max=2.0, min=0.5)
    trainer = C.Trainer(z, (loss, C.classification_error(z, tags)), [C.sgd(sparse, lr=0.1, use_mean_gradient=True), learner])
    for i in range(4):
        mb = reader.next_minibatch(50)
        dense_tags = [np.asarray(s.todense()) for s in mb[reader.streams.slot_labels].as_sequences(sparse_tags)]
        trainer.train_minibatch({words: mb[reader.streams.query].data, features: mb[reader.streams.shape_features].data, tags: dense_tags})
        print(
            "window %d: loss %.5f, errors %.4f"
            % (i, trainer.previous_minibatch_loss_average, trainer.previous_minibatch_evaluation_average)
        )


if __name__ == "__main__":
    C.cntk_py.set_fixed_random_seed(3)
    write_data("train.ctf", "train.intents.ctf", 60, 1)
    write_data("test.ctf", "test.intents.ctf", 20, 2)
    trainer, z, query, slots = train(create_reader("train.ctf", "train.intents.ctf", True), 3, 300)
    print("test error %.4f on %d words" % evaluate(create_reader("test.ctf", "test.intents.ctf", False), trainer, query, slots))

    # tags of a sentence, given as numbers of words
    tagger = C.argmax(C.softmax(z))
    sentence = [11, 24, 45, 8, 33]
    onehot = C.Value.one_hot([sentence], vocab_size)
    print("tags", [int(t) for t in np.asarray(tagger.eval({query: onehot})[0]).ravel()])
    embedding = z.embed.E.value
    print("embedding", embedding.shape, "%.4f" % np.abs(embedding).mean())
    hidden = combine([z.hidden])
    states = hidden.eval({query: onehot})
    print("states", np.asarray(states[0]).shape, "%.3f" % np.asarray(states[0]).sum())

    train_intents("train.ctf", "train.intents.ctf")
    train_window("train.ctf", "train.intents.ctf")
