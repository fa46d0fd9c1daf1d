# Words to their "pronunciation": an encoder of recurrences, a decoder with attention, greedy decoding with UnfoldFrom.
from __future__ import print_function
import os
import sys
import numpy as np
import cntk as C
from cntk import Trainer, Axis, Function
from cntk.io import MinibatchSource, CTFDeserializer, StreamDef, StreamDefs, INFINITELY_REPEAT, FULL_DATA_SWEEP
from cntk.learners import momentum_sgd, fsadagrad, momentum_as_time_constant_schedule, learning_rate_schedule, UnitType
from cntk import (
    input,
    cross_entropy_with_softmax,
    classification_error,
    sequence,
    element_select,
    alias,
    hardmax,
    placeholder,
    combine,
    parameter,
    times,
    plus,
)
from cntk.ops.functions import CloneMethod, load_model
from cntk.initializer import glorot_uniform
from cntk.logging import log_number_of_parameters, ProgressPrinter
from cntk.logging.graph import plot
from cntk.layers import *
from cntk.layers.sequence import *
from cntk.layers.models.attention import *
from cntk.layers.typing import *

letters = list("abcdefgh")
phones = ["</s>", "<s>"] + [c.upper() for c in letters] + ["AH", "EH"]
input_vocab_dim = len(letters)
label_vocab_dim = len(phones)

hidden_dim = 12
num_layers = 2
attention_dim = 8
attention_span = 8
attention_axis = -3
use_attention = True
use_embedding = True
embedding_dim = 10
length_increase = 1.5
vocab = phones
model_file = "model_%d.cmf"

sentence_start = C.Constant(np.array([w == "<s>" for w in vocab], dtype=np.float32))
sentence_end_index = vocab.index("</s>")


def spell(word):
    """What stands for a word: vowels are AH and EH, twins are one."""
    out = ["<s>"]
    for i, c in enumerate(word):
        if i and word[i - 1] == c:
            continue
        out.append({"a": "AH", "e": "EH"}.get(c, c.upper()))
    return out + ["</s>"]


def write_data(path, count, seed):
    rng = np.random.RandomState(seed)
    with open(path, "w") as f:
        for n in range(count):
            word = [letters[k] for k in rng.randint(0, len(letters), rng.randint(2, 6))]
            spelt = spell(word)
            for i in range(max(len(word), len(spelt))):
                line = str(n)
                if i < len(word):
                    line += "\t|S0 %d:1 |# %s" % (letters.index(word[i]), word[i])
                if i < len(spelt):
                    line += "\t|S1 %d:1 |# %s" % (phones.index(spelt[i]), spelt[i])
                f.write(line + "\n")


def create_reader(path, is_training):
    return MinibatchSource(
        CTFDeserializer(
            path,
            StreamDefs(
                features=StreamDef(field="S0", shape=input_vocab_dim, is_sparse=True),
                labels=StreamDef(field="S1", shape=label_vocab_dim, is_sparse=True),
            ),
        ),
        randomize=False,
        max_sweeps=INFINITELY_REPEAT if is_training else 1,
    )


# types of sequences on two axes
inputAxis = Axis("inputAxis")
labelAxis = Axis("labelAxis")
InputSequence = SequenceOver[inputAxis]
LabelSequence = SequenceOver[labelAxis]


def create_model():
    embed = Embedding(embedding_dim, name="embed") if use_embedding else identity

    with default_options(enable_self_stabilization=True, go_backwards=not use_attention):
        LastRecurrence = Fold if not use_attention else Recurrence
        encode = Sequential(
            [
                embed,
                Stabilizer(),
                For(range(num_layers - 1), lambda: Recurrence(LSTM(hidden_dim))),
                LastRecurrence(LSTM(hidden_dim), return_full_state=True),
                (Label("encoded_h"), Label("encoded_c")),
            ]
        )

    with default_options(enable_self_stabilization=True):
        stab_in = Stabilizer()
        rec_blocks = [LSTM(hidden_dim) for i in range(num_layers)]
        stab_out = Stabilizer()
        proj_out = Dense(label_vocab_dim, name="out_proj")
        if use_attention:
            attention_model = AttentionModel(attention_dim, None, None, name="attention_model")

        @Function
        def decode(history, input):
            encoded_input = encode(input)
            r = history
            r = embed_out(r)
            r = stab_in(r)
            for i in range(num_layers):
                rec_block = rec_blocks[i]
                if use_attention:
                    if i == 0:

                        @Function
                        def lstm_with_attention(dh, dc, x):
                            h_att = attention_model(encoded_input.outputs[0], dh)
                            x = splice(x, h_att)
                            return rec_block(dh, dc, x)

                        r = Recurrence(lstm_with_attention)(r)
                    else:
                        r = Recurrence(rec_block)(r)
                else:
                    r = RecurrenceFrom(rec_block)(*(encoded_input.outputs + (r,)))
            r = stab_out(r)
            r = proj_out(r)
            r = Label("out_proj_out")(r)
            return r

    return decode


embed_out = Embedding(embedding_dim, name="embed_out")


def create_model_train(s2smodel):
    # the history is the true labels, without the end
    @Function
    def model_train(input, labels):
        past_labels = Delay(initial_state=sentence_start)(labels)
        return s2smodel(past_labels, input)

    return model_train


def create_model_greedy(s2smodel):
    # the history is what the model has said itself
    @Function
    @Signature(InputSequence[Tensor[input_vocab_dim]])
    def model_greedy(input):
        unfold = UnfoldFrom(
            lambda history: s2smodel(history, input) >> hardmax,
            until_predicate=lambda w: w[..., sentence_end_index],
            length_increase=length_increase,
        )
        return unfold(initial_state=sentence_start, dynamic_axes_like=input)

    return model_greedy


def create_criterion_function(model):
    @Function
    @Signature(input=InputSequence[Tensor[input_vocab_dim]], labels=LabelSequence[Tensor[label_vocab_dim]])
    def criterion(input, labels):
        # the labels without <s>
        postprocessed_labels = sequence.slice(labels, 1, 0)
        z = model(input, postprocessed_labels)
        ce = cross_entropy_with_softmax(z, postprocessed_labels)
        errs = classification_error(z, postprocessed_labels)
        return (ce, errs)

    return criterion


def format_sequences(sequences, i2w):
    return [" ".join([i2w[np.argmax(w)] for w in s]) for s in sequences]


def train(train_reader, valid_reader, vocab, s2smodel, max_epochs, epoch_size):
    model_train = create_model_train(s2smodel)
    criterion = create_criterion_function(model_train)
    model_greedy = create_model_greedy(s2smodel)

    minibatch_size = 60
    lr = 0.02 if use_attention else 0.005
    learner = fsadagrad(
        model_train.parameters,
        lr=C.learning_parameter_schedule_per_sample([lr] * 2 + [lr / 2] * 3 + [lr / 4], epoch_size),
        momentum=C.momentum_schedule(0.9366416204111472, minibatch_size=minibatch_size),
        gradient_clipping_threshold_per_sample=2.3,
        gradient_clipping_with_truncation=True,
    )
    trainer = Trainer(None, criterion, learner)

    total_samples = 0
    mbs = 0
    eval_freq = 5
    log_number_of_parameters(model_train)
    print()
    progress_printer = ProgressPrinter(freq=5, tag="Training")

    for epoch in range(max_epochs):
        while total_samples < (epoch + 1) * epoch_size:
            mb_train = train_reader.next_minibatch(minibatch_size)
            trainer.train_minibatch(
                {
                    criterion.arguments[0]: mb_train[train_reader.streams.features],
                    criterion.arguments[1]: mb_train[train_reader.streams.labels],
                }
            )
            progress_printer.update_with_trainer(trainer, with_metric=True)

            if mbs % eval_freq == 0:
                mb_valid = valid_reader.next_minibatch(10)
                # strings are fed to the model that decodes greedily, one by one and together
                e = model_greedy(mb_valid[valid_reader.streams.features])
                print(format_sequences(e, vocab)[:2])
            total_samples += mb_train[train_reader.streams.labels].num_samples
            mbs += 1

        model_path = model_file % epoch
        print("Saving model to '%s'" % model_path)
        s2smodel.save(model_path)
        progress_printer.epoch_summary(with_metric=True)


def evaluate_metric(reader, s2smodel, num_minibatches=None):
    model_train = create_model_train(s2smodel)
    criterion = create_criterion_function(model_train)
    total_error, total_loss, total = 0.0, 0.0, 0
    evaluator = C.eval.Evaluator(criterion.outputs[1])
    while True:
        mb = reader.next_minibatch(40)
        if not mb:
            break
        n = mb[reader.streams.labels].num_samples - mb[reader.streams.labels].num_sequences
        total_error += n * evaluator.test_minibatch(
            {criterion.arguments[0]: mb[reader.streams.features], criterion.arguments[1]: mb[reader.streams.labels]}
        )
        total += n
    return total_error / total, total


def translate(tokens, model_decoding, vocab, show_attention=False):
    try:
        w = [letters.index(c) for c in tokens]
    except ValueError:
        print("Input contains letters that are unknown.")
        return []
    query = C.Value.one_hot([w], len(letters))
    pred = model_decoding(query)
    pred = pred[0]
    prediction = np.argmax(pred, axis=-1)
    translation = [vocab[i] for i in prediction]

    if show_attention:
        q = combine([model_decoding.attention_model.attention_weights])
        att = q(query)
        att = np.squeeze(np.array(att), 0) if np.ndim(att) > 3 else np.asarray(att)
        print("attention", np.shape(att), "%.3f" % np.sum(att))
    return translation


if __name__ == "__main__":
    C.cntk_py.set_fixed_random_seed(1)
    write_data("train.ctf", 120, 1)
    write_data("test.ctf", 20, 2)
    decode = create_model()
    train(create_reader("train.ctf", True), create_reader("test.ctf", True), vocab, decode, 2, 900)
    print("error %.4f of %d" % evaluate_metric(create_reader("test.ctf", False), decode))

    print("greedily, from the file")
    model = load_model(model_file % 1)
    model_greedy = create_model_greedy(model)
    for word in ("abba", "feed", "cab", "xyz"):
        print(word, translate(list(word), model_greedy, vocab, show_attention=word == "cab"))
    print("%d parameters" % len(model.parameters), sorted(set(p.name for p in model.parameters)))
