# %% [markdown]
# # 07 Sequence to sequence, with attention
#
# You will learn
#
# * how two sequences of different lengths go together: a *sequence axis* for each,
# * how an attention layer lets a decoder look at any step of its source,
# * how a model that was trained with the right answers is run on its own: `UnfoldFrom`,
# * how to take the weights of attention out of a network and look at them.
#
# It takes NumPy, SciPy and matplotlib: `pip install 'opencntk[plot]'`.

# %%
import datetime

import matplotlib.pyplot as plt
import numpy as np

import cntk as C

C.cntk_py.set_fixed_random_seed(1)
random = np.random.default_rng(1)

# %% [markdown]
# ## Dates
#
# People write dates in many ways; computers want `2021-03-09`. We make pairs: the letters of a date as people write it, and its ten
# digits and dashes. Both are sequences of symbols of one alphabet, with a `>` that begins the second and a `.` that ends it.

# %%
FORMS = ["{d} {B} {Y}", "{B} {d} {Y}", "{d} {b} {Y}", "{b} {d} {Y}", "{d}/{m}/{Y}"]
MONTHS = [datetime.date(2000, month, 1).strftime("%B").lower() for month in range(1, 13)]
ALPHABET = sorted(set("0123456789-/ >." + "".join(MONTHS)))
SYMBOLS, START, END = len(ALPHABET), ALPHABET.index(">"), ALPHABET.index(".")


def written_and_meant():
    """A date as people write it, and as computers do."""
    date = datetime.date(1950, 1, 1) + datetime.timedelta(days=int(random.integers(0, 100 * 365)))
    month = MONTHS[date.month - 1]
    written = random.choice(FORMS).format(d=date.day, B=month, b=month[:3], m=date.month, Y=date.year)
    return written, f">{date.isoformat()}."


pairs = [written_and_meant() for _ in range(6000)]
train_pairs, test_pairs = pairs[:5800], pairs[5800:]
print(SYMBOLS, "symbols;", train_pairs[:3])


def symbols(texts):
    """One-hot rows of the letters of each text, a sparse value."""
    return C.Value.one_hot([[ALPHABET.index(letter) for letter in text] for text in texts], SYMBOLS)


# %% [markdown]
# ## Two sequence axes
#
# Sequences on the same axis have the same lengths. Source and target have lengths of their own, so the target gets an axis of its own. What
# does not go together is refused, with both lines:

# %%
source = C.sequence.input_variable(SYMBOLS, is_sparse=True, name="source")
target = C.sequence.input_variable(SYMBOLS, is_sparse=True, sequence_axis=C.Axis("target"), name="target")
print(source, target)
try:
    C.splice(source, target)
except ValueError as error:
    print(error)

# %% [markdown]
# ## Encoder, decoder, attention
#
# The encoder reads the source both ways. The decoder, another LSTM, runs along the symbols before each one that is to be written. At each
# of its steps `AttentionModel` gives a weighted mean of the encoder's states; it learns how to choose the weights, given the state of the
# decoder. State and mean together tell the next symbol (Luong et al. 2015).

# %%
WIDTH = 64

encode = C.layers.Sequential(
    [
        C.layers.Embedding(WIDTH),
        (C.layers.Recurrence(C.layers.LSTM(WIDTH // 2)), C.layers.Recurrence(C.layers.LSTM(WIDTH // 2), go_backwards=True)),
        C.splice,
    ]
)
run_along = C.layers.Sequential([C.layers.Embedding(WIDTH), C.layers.Recurrence(C.layers.LSTM(WIDTH))])
attend = C.layers.AttentionModel(WIDTH // 2)
score = C.layers.Sequential([C.layers.Dense(WIDTH, activation=C.tanh), C.layers.Dense(SYMBOLS)])


@C.Function
def decode(before, source):
    """Scores of the next symbol, for each of the symbols before and the whole source."""
    state = run_along(before)
    return score(C.splice(state, attend(encode(source), state)))


# %% [markdown]
# ## Training: told the right answer so far
#
# In training the decoder is told the *right* symbols before each step, all at once. Both come from the target: `following` leaves the first
# out, `before` is `following` a step later, with `>` in front.

# %%
start = C.constant(np.eye(SYMBOLS, dtype=np.float32)[START])
following = C.sequence.slice(target, 1, 0)
before = C.layers.Delay(initial_state=start)(following)
scores = decode(before, source)
loss, error = C.cross_entropy_with_softmax(scores, following), C.classification_error(scores, following)
print(scores)

MINIBATCH, EPOCHS = 32, 3
rates = C.learning_parameter_schedule([(2, 0.01), 0.002], epoch_size=len(train_pairs))
learner = C.adam(
    scores.parameters, rates, 0.9, variance_momentum=0.99, minibatch_size=C.learners.IGNORE, gradient_clipping_threshold_per_sample=1.0
)
trainer = C.Trainer(scores, (loss, error), [learner])
curve = []
for epoch in range(EPOCHS):
    order = random.permutation(len(train_pairs))
    for first in range(0, len(order), MINIBATCH):
        written, meant = zip(*(train_pairs[row] for row in order[first : first + MINIBATCH]), strict=True)
        trainer.train_minibatch({source: symbols(written), target: symbols(meant)})
        curve.append(trainer.previous_minibatch_evaluation_average)
    print(f"epoch {epoch + 1}: {np.mean(curve[-30:]):.2%} of the symbols wrong in the last 30 minibatches")

# %% [markdown]
# ## Use: alone
#
# Without right answers the network must go by its own: `UnfoldFrom` feeds each likeliest symbol back, as the next one's past, until it says
# `.`. It is made of the same `decode`, so it has the same weights.

# %%


@C.Function
@C.layers.Signature(C.layers.Sequence[C.layers.Tensor[SYMBOLS]])
def translate(source):
    return C.layers.UnfoldFrom(
        lambda history: C.hardmax(decode(history, source)), until_predicate=lambda symbol: symbol[..., END], length_increase=3
    )(start, source)


def read(texts):
    """What the network makes of dates as people write them."""
    dense = [np.eye(SYMBOLS, dtype=np.float32)[[ALPHABET.index(letter) for letter in text]] for text in texts]
    return ["".join(ALPHABET[row.argmax()] for row in rows).rstrip(".") for rows in translate.eval(dense)]


written, meant = zip(*test_pairs, strict=True)
answers = read(written)
right = np.mean([answer == text[1:-1] for answer, text in zip(answers, meant, strict=True)])
for text, answer in list(zip(written, answers, strict=True))[:6]:
    print(f"{text:>20} -> {answer}")
print(f"wholly right: {right:.1%} of {len(answers)} dates that it has not seen")

# %% [markdown]
# More than nine dates in ten are right from the first digit to the last:

# %%
assert right > 0.9

# %% [markdown]
# ## Where it looks
#
# The weights of attention have a name in the network, and like everything in it they can be evaluated: for each step of the target, one for
# each step of the source.

# %%
weights = C.as_composite(scores.find_by_name("attention_weights", depth=-1))
examples = ["9 march 2021", "december 24 1987", "3/11/1964"]

figure, axes = plt.subplots(1, 3, figsize=(11.5, 4.2), layout="constrained")
for place, text in zip(axes, examples, strict=True):
    answer = read([text])[0]
    table = weights.eval({source: symbols([text]), target: symbols([f">{answer}."])})[0].reshape(len(answer) + 1, -1)
    picture = place.imshow(table, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    place.set_xticks(range(len(text)), list(text.replace(" ", "␣")))
    place.set_yticks(range(len(answer) + 1), list(answer + "."))
    place.set(title=text, xlabel="letters read")
axes[0].set_ylabel("symbols written")
figure.colorbar(picture, ax=axes, label="weight of attention")
plt.show()

# %% [markdown]
# ## What to try next
#
# * Leave the attention out: let the decoder begin with the encoder's last state (`RecurrenceFrom`). How many dates are right then?
# * Add a form that is new to it, `03.09.21`, to half of the training set.
# * Go on to notebook 08: two networks that learn from each other.
#
# In the docs: [axes and sequences](../../docs/sequences.md), [recurrent layers](../../docs/sequences.md#layers);
# [examples/pronunciation.py](../../examples/pronunciation.py) learns from letters how words are pronounced.
