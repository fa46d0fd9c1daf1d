"""A tagger of words as CNTK's language-understanding tutorial builds it for ATIS: embedding, LSTM, a label for each word.

Sentences of different lengths, other lengths in each minibatch.
"""

from data import csr_sequences, pairs, query_lengths, tags, words
from training import cntk_training

TITLE = "LSTM tagger 943-150-300-129, 32 sentences of 5 to 39 words, momentum: training step"
SIZE, VOCABULARY, EMBEDDING, HIDDEN, CLASSES = 32, 943, 150, 300, 129
RATE, MOMENTUM = 0.1, 0.9

STEPS = sum(lengths.sum() for lengths in query_lengths(SIZE)) / len(query_lengths(SIZE))
# Multiplications a word; the embedding looks its rows up.
PER_WORD = (EMBEDDING + HIDDEN) * 4 * HIDDEN + HIDDEN * CLASSES
WEIGHTS = VOCABULARY * EMBEDDING + PER_WORD
FLOP = int(2 * STEPS * 3 * PER_WORD)
# Data in: numbers of words and labels; weights, their gradients and their momentum are each read and written once.
BYTES = int(4 * (2 * STEPS + 6 * WEIGHTS))

ON_HOST = (2,)
"""Which parts of PyTorch's minibatches stay on the host where it computes on a GPU: lengths."""


def sentences():
    """Word numbers of each sentence and the labels of these, in lists a minibatch."""
    pool = words(query_lengths(SIZE), VOCABULARY)
    return pool, tags(pool, VOCABULARY, CLASSES)


def cntk_step():
    import cntk as C
    from cntk.layers import LSTM, Dense, Embedding, Recurrence, Sequential

    x, y = C.sequence.input_variable(VOCABULARY, is_sparse=True), C.sequence.input_variable(CLASSES, is_sparse=True)
    model = Sequential([Embedding(EMBEDDING), Recurrence(LSTM(HIDDEN)), Dense(CLASSES)])(x)
    learner = C.momentum_sgd(model.parameters, C.learning_parameter_schedule(RATE), C.momentum_schedule(MOMENTUM))
    return cntk_training(model, x, y, learner)


def cntk_data():
    queries, labels = sentences()
    return pairs(csr_sequences(queries, VOCABULARY), csr_sequences(labels, CLASSES))


def torch_step():
    import torch
    from torch import nn
    from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

    embedding, lstm, dense = nn.Embedding(VOCABULARY, EMBEDDING), nn.LSTM(EMBEDDING, HIDDEN), nn.Linear(HIDDEN, CLASSES)
    model = nn.ModuleList([embedding, lstm, dense])
    criterion = nn.CrossEntropyLoss()
    learner = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)

    def step(queries, labels, lengths):
        learner.zero_grad()
        packed = pack_padded_sequence(queries, lengths, enforce_sorted=False)
        right = pack_padded_sequence(labels, lengths, enforce_sorted=False).data
        states, _ = lstm(PackedSequence(embedding(packed.data), *packed[1:]))
        scores = dense(states.data)
        criterion(scores, right).backward()
        (scores.argmax(dim=1) != right).sum()
        learner.step()

    return step


def torch_data():
    return torch_minibatches(pairs(*sentences()))


def torch_minibatches(minibatches):
    """Padded words and labels, and the lengths of the sentences."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    def padded(sequences):
        return pad_sequence([torch.from_numpy(sequence) for sequence in sequences])

    return [(padded(queries), padded(labels), torch.tensor([len(query) for query in queries])) for queries, labels in minibatches]
