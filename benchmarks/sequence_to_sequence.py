"""From letters to phonemes, as CNTK's sequence-to-sequence tutorial does it: an encoder and a decoder of LSTMs, with attention.

Real words, 64 in a minibatch.

Source: D. Bahdanau, K. Cho, Y. Bengio, "Neural machine translation by jointly learning to align and translate", ICLR 2015.
"""

import numpy as np
from data import POOL, ctf_numbers

TITLE = "sequence to sequence with attention, 2 + 2 LSTMs of 128, 64 words of CMUDict, momentum: training step"
FILE = "cmudict-0.7b.train-dev-1-21.ctf"
SIZE, SYMBOLS, START, HIDDEN, ATTENTION = 64, 69, 3, 128, 128
RATE, MOMENTUM = 0.5, 0.9

# Of a word on average: letters between <s> and </s>, phonemes and </s>, and the pairs of both.
LETTERS, PHONEMES, PAIRS = 9.49, 7.36, 74.0
# Multiplications a letter, a phoneme and a pair; the embedding looks its rows up.
ENCODER, DECODER = 2 * 4 * HIDDEN * 2 * HIDDEN, 4 * HIDDEN * 5 * HIDDEN
PER_LETTER, PER_PHONEME, PER_PAIR = ENCODER + HIDDEN * ATTENTION, DECODER + HIDDEN * (ATTENTION + SYMBOLS), ATTENTION + HIDDEN
WEIGHTS = SYMBOLS * HIDDEN + PER_LETTER + PER_PHONEME + ATTENTION
FLOP = int(2 * SIZE * 3 * (LETTERS * PER_LETTER + PHONEMES * PER_PHONEME + PAIRS * PER_PAIR))
# Data in, numbers of letters and phonemes; weights, their gradients and their momentum are each read and written once.
BYTES = int(4 * (SIZE * (LETTERS + PHONEMES) + 6 * WEIGHTS))

ON_HOST = (1, 4)
"""Which parts of PyTorch's minibatches stay on the host where it computes on a GPU: lengths."""


def spoken():
    """Letters and phonemes of the words of each minibatch, two lists of number sequences; a random choice."""
    found = ctf_numbers(FILE, ["S0", "S1"])
    random = np.random.RandomState(0)
    chosen = [random.choice(len(found), SIZE, replace=False) for _ in range(POOL)]
    return [([found[i][0] for i in minibatch], [found[i][1] for i in minibatch]) for minibatch in chosen]


def cntk_model():
    """The network: a function of the phonemes before and the letters, to scores of the next phoneme."""
    import cntk as C
    from cntk.layers import LSTM, AttentionModel, Dense, Embedding, Recurrence, Sequential

    embed = Embedding(HIDDEN)
    encode = Sequential([embed, *(Recurrence(LSTM(HIDDEN), go_backwards=True) for _ in range(2))])
    attend = AttentionModel(ATTENTION, enable_self_stabilization=False)
    first, second, score = LSTM(HIDDEN), LSTM(HIDDEN), Dense(SYMBOLS)

    @C.Function
    def decode(history, letters):
        encoded = encode(letters)

        @C.Function
        def attending(state, cell, symbol):
            return first(state, cell, C.splice(symbol, attend(encoded, state)))

        return score(Recurrence(second)(Recurrence(attending)(embed(history))))

    return decode


def cntk_step():
    import cntk as C

    letters = C.sequence.input_variable(SYMBOLS)
    phonemes = C.sequence.input_variable(SYMBOLS, sequence_axis=C.Axis("phonemes"))
    following = C.sequence.slice(phonemes, 1, 0)
    start = C.constant(np.eye(SYMBOLS, dtype=np.float32)[START])
    scores = cntk_model()(C.layers.Delay(initial_state=start)(following), letters)
    criterion = C.cross_entropy_with_softmax(scores, following), C.classification_error(scores, following)
    learner = C.momentum_sgd(scores.parameters, C.learning_parameter_schedule(RATE), C.momentum_schedule(MOMENTUM))
    trainer = C.Trainer(scores, criterion, [learner])

    def step(spellings, sounds):
        trainer.train_minibatch({letters: spellings, phonemes: sounds})

    return step


def cntk_data():
    symbols = np.eye(SYMBOLS, dtype=np.float32)
    return [([symbols[word] for word in spellings], [symbols[word] for word in sounds]) for spellings, sounds in spoken()]


def torch_model():
    """The same network, of padded tensors ``(words, time)`` with their lengths, letters backwards; and how they are packed."""
    import torch
    from torch import nn
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    def packed(values, lengths):
        return pack_padded_sequence(values, lengths, batch_first=True, enforce_sorted=False)

    class Decoder(nn.Module):
        """Scores of all steps, one after another, with attention to the encoder's states ``(words, time, HIDDEN)``."""

        def __init__(self):
            super().__init__()
            self.compare_encoder, self.compare_decoder = (nn.Linear(HIDDEN, ATTENTION, bias=False) for _ in range(2))
            self.logit = nn.Linear(ATTENTION, 1, bias=False)
            self.first = nn.LSTMCell(2 * HIDDEN, HIDDEN)

        def forward(self, symbols, encoded, padding):
            compared = self.compare_encoder(encoded)
            state = cell = encoded.new_zeros(len(encoded), HIDDEN)
            states = []
            for symbol in symbols.unbind(1):
                logits = self.logit(torch.tanh(compared + self.compare_decoder(state)[:, None])).squeeze(2)
                weights = logits.masked_fill(padding, -torch.inf).softmax(1)
                context = torch.bmm(weights[:, None], encoded).squeeze(1)
                state, cell = self.first(torch.cat([symbol, context], 1), (state, cell))
                states.append(state)
            return torch.stack(states, 1)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(SYMBOLS, HIDDEN)
            self.encoder, self.second = nn.LSTM(HIDDEN, HIDDEN, 2, batch_first=True), nn.LSTM(HIDDEN, HIDDEN, batch_first=True)
            self.decoder, self.score = Decoder(), nn.Linear(HIDDEN, SYMBOLS)

        def forward(self, history, history_lengths, letters, letters_lengths):
            """Scores of the next phonemes, packed."""
            encoded, _ = pad_packed_sequence(self.encoder(packed(self.embed(letters), letters_lengths))[0], batch_first=True)
            padding = torch.arange(letters.shape[1]) >= letters_lengths.to(letters.device)[:, None]
            states, _ = self.second(packed(self.decoder(self.embed(history), encoded, padding), history_lengths))
            return self.score(states.data)

    return Model(), packed


def torch_step():
    import torch

    model, packed = torch_model()
    criterion = torch.nn.CrossEntropyLoss()
    learner = torch.optim.SGD(model.parameters(), lr=RATE * (1 - MOMENTUM), momentum=MOMENTUM)

    def step(letters, letters_lengths, history, following, lengths):
        learner.zero_grad()
        scores = model(history, lengths, letters, letters_lengths)
        right = packed(following, lengths).data
        criterion(scores, right).backward()
        (scores.argmax(dim=1) != right).sum()
        learner.step()

    return step


def torch_data():
    import torch
    from torch.nn.utils.rnn import pad_sequence

    def padded(words):
        words = [torch.from_numpy(word.copy()) for word in words]
        return pad_sequence(words, batch_first=True), torch.tensor([len(word) for word in words])

    def tensors(spellings, sounds):
        history, lengths = padded(word[:-1] for word in sounds)
        return (*padded(word[::-1] for word in spellings), history, padded(word[1:] for word in sounds)[0], lengths)

    return [tensors(*minibatch) for minibatch in spoken()]
