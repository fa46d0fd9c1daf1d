# %% [markdown]
# # 06 Tagging the words of a sentence
#
# You will learn
#
# * how words become sparse one-hot vectors, and an embedding a table of which only the rows that occur are touched,
# * how to write sequences in CNTK's text format, and to read them,
# * how a network that reads a sentence both ways beats one that reads it from the left only.
#
# It takes NumPy, SciPy and matplotlib: `pip install 'opencntk[plot]'`.

# %%
import os
import random
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import cntk as C

C.cntk_py.set_fixed_random_seed(1)
random.seed(1)
folder = tempfile.TemporaryDirectory()

# %% [markdown]
# ## Sentences of travellers
#
# We make requests from patterns, and tag each word with the role it plays: city of departure, city of arrival, day, time, or none, `-`.
# The first two patterns begin alike; only later words tell whether a city is where the journey begins or ends.

# %%
CITIES = ["boston", "denver", "dallas", "oakland", "seattle", "phoenix", "baltimore", "pittsburgh"]
DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
TIMES = ["morning", "noon", "afternoon", "evening", "midnight"]
PATTERNS = [
    "{from} is where i am now and {to} is where i want to be",
    "{to} is where i want to be and {from} is where i am now",
    "show me flights from {from} to {to} on {day}",
    "flights to {to} on {day} {time} leaving {from}",
    "i need a {day} {time} flight out of {from} into {to}",
    "what does it cost to fly {from} {to} on {day}",
    "is there a {time} flight between {from} and {to}",
    "on {day} {time} please get me to {to}",
]
WORDS_OF = {"from": CITIES, "to": CITIES, "day": DAYS, "time": TIMES}


def request():
    """The words of a request, and the tag of each."""
    words, tags = [], []
    for word in random.choice(PATTERNS).split():
        role = word.strip("{}")
        if word.startswith("{"):
            words.append(random.choice(WORDS_OF[role]))
            tags.append(role)
        else:
            words.append(word)
            tags.append("-")
    return words, tags


requests = [request() for _ in range(1200)]
VOCABULARY = sorted({word for words, _ in requests for word in words})
TAGS = ["-", "from", "to", "day", "time"]
print(len(VOCABULARY), "words;", *(f"{word}/{tag}" for word, tag in zip(*requests[0], strict=True)))

# %% [markdown]
# ## Sequences in a file
#
# In CNTK's text format, lines with the same number in front are one sequence. `word 17:1` is a sparse vector: a 1 at place 17.


# %%
def write(name, requests):
    path = Path(folder.name, name)
    with path.open("w") as file:
        for number, (words, tags) in enumerate(requests):
            for word, tag in zip(words, tags, strict=True):
                file.write(f"{number} |word {VOCABULARY.index(word)}:1 |# {word} |tag {TAGS.index(tag)}:1\n")
    return path


train_file, test_file = write("train.ctf", requests[:1000]), write("test.ctf", requests[1000:])
print(*train_file.read_text().splitlines()[:4], sep="\n")


# %%
def source(path, words, tags, fields=("word", "tag"), **options):
    streams = C.io.StreamDefs(
        words=C.io.StreamDef(field=fields[0], shape=words, is_sparse=True), tags=C.io.StreamDef(field=fields[1], shape=tags, is_sparse=True)
    )
    return C.io.MinibatchSource(C.io.CTFDeserializer(str(path), streams), **options)


training = source(train_file, len(VOCABULARY), len(TAGS))
print(training.next_minibatch(100))  # whole sentences with about as many words

# %% [markdown]
# ## Two networks
#
# Both give each word a vector, run an LSTM along the sentence, and score the tags at each word. One reads from the left only; the other
# has a second LSTM, `go_backwards`, which comes from the right, and splices the two states. A tuple of functions applies all to the same
# operand.


# %%
def tagger(words, tags, both_ways, width=32):
    """Input, scores of the tags at each word, and the criterion's other input."""
    x = C.sequence.input_variable(words, is_sparse=True, name="words")
    y = C.sequence.input_variable(tags, is_sparse=True, name="tags")
    if both_ways:
        reading = [
            (C.layers.Recurrence(C.layers.LSTM(width)), C.layers.Recurrence(C.layers.LSTM(width), go_backwards=True)),
            C.splice,
        ]
    else:
        reading = [C.layers.Recurrence(C.layers.LSTM(width))]
    z = C.layers.Sequential([C.layers.Embedding(width, name="embed"), *reading, C.layers.Dense(tags)])(x)
    return x, y, z


def train(x, y, z, data, samples, rate=0.02):
    """Train on at least so many words; return the trainer."""
    loss, error = C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)
    learner = C.adam(z.parameters, C.learning_parameter_schedule(rate), 0.9, variance_momentum=0.99, minibatch_size=C.learners.IGNORE)
    trainer = C.Trainer(z, (loss, error), [learner])
    while trainer.total_number_of_samples_seen < samples:
        trainer.train_minibatch(data.next_minibatch(200, {x: data.streams.words, y: data.streams.tags}))
    return trainer


def test_error(trainer, x, y, data):
    """The share of words that are tagged wrongly."""
    wrong = count = 0
    while minibatch := data.next_minibatch(1000, {x: data.streams.words, y: data.streams.tags}):
        wrong += trainer.test_minibatch(minibatch) * minibatch[x].num_samples
        count += minibatch[x].num_samples
    return wrong / count


# %%
networks, errors = {}, {}
for name, both_ways in (("from the left", False), ("both ways", True)):
    x, y, z = networks[name] = tagger(len(VOCABULARY), len(TAGS), both_ways)
    trainer = train(x, y, z, source(train_file, len(VOCABULARY), len(TAGS)), samples=20_000)
    errors[name] = test_error(trainer, x, y, source(test_file, len(VOCABULARY), len(TAGS), max_sweeps=1, randomize=False))
    print(f"{name}: {z.embed.E.shape} embedding, {errors[name]:.2%} of the words in new requests are tagged wrongly")

# %% [markdown]
# Who reads both ways makes hardly a mistake, less than 0.5 %. From the left, half of the requests that begin with a city are guesses:

# %%
assert errors["both ways"] < 0.005
assert errors["from the left"] > errors["both ways"] + 0.01

# %% [markdown]
# ## What the networks think, word by word
#
# A sentence goes in as indices: `C.Value.one_hot` makes sparse vectors of them. The tag of the first city is a toss-up for the network that
# has not heard the rest.

# %%
sentence = ["denver", "is", "where", "i", "want", "to", "be", "and", "boston", "is", "where", "i", "am", "now"]
data = C.Value.one_hot([[VOCABULARY.index(word) for word in sentence]], len(VOCABULARY))
beliefs = {name: C.softmax(z).eval({x: data})[0] for name, (x, _, z) in networks.items()}
print({name: {tag: f"{value:.2f}" for tag, value in zip(TAGS, belief[0], strict=True)} for name, belief in beliefs.items()})

figure, axes = plt.subplots(2, 1, figsize=(10.5, 4.6), sharex=True, layout="constrained")
for place, (name, belief) in zip(axes, beliefs.items(), strict=True):
    picture = place.imshow(belief.T, cmap="Greens", vmin=0, vmax=1, aspect="auto")
    place.set_yticks(range(len(TAGS)), ["no tag", *TAGS[1:]])
    place.set_title(f"read {name}", loc="left", fontsize=11)
    for (step, tag), value in np.ndenumerate(belief):
        if value > 0.05:
            place.text(step, tag, f"{value:.2f}", ha="center", va="center", fontsize=8, color="white" if value > 0.5 else "black")
axes[1].set_xticks(range(len(sentence)), sentence)
figure.colorbar(picture, ax=axes, label="probability of the tag")
plt.show()

# %% [markdown]
# ## Real requests
#
# The Air Travel Information System (ATIS) has 943 words and 129 tags. Where the environment variable `CNTK_TEST_DATA` names a folder with
# its file `atis.train.ctf`, the same program learns from it; after 50,000 words, a pass and a half, it tags new requests with an error
# below 10 %.

# %%
real = Path(os.environ.get("CNTK_TEST_DATA", folder.name))
if (real / "atis.train.ctf").exists():
    x, y, z = tagger(943, 129, both_ways=True, width=64)
    trainer = train(x, y, z, source(real / "atis.train.ctf", 943, 129, ("S0", "S2")), samples=50_000, rate=0.005)
    error = test_error(trainer, x, y, source(real / "atis.test.ctf", 943, 129, ("S0", "S2"), max_sweeps=1, randomize=False))
    print(f"ATIS: {error:.2%} of the words of the test set are tagged wrongly")
    assert error < 0.1
else:
    print("no ATIS here")

# %%
folder.cleanup()

# %% [markdown]
# ## What to try next
#
# * Take sentences of your own apart with `networks["both ways"]`. What does it make of a word order that no pattern has?
# * Instead of a second direction, give the network the *next* word beside the present one: `C.layers.Delay(-1)`.
# * Classify whole sentences: `C.layers.Fold` in place of `Recurrence`.
# * Go on to notebook 07: sequences in, other sequences out.
#
# In the docs: [sparse sequences](../../docs/sequences.md#sparse-sequences), [CNTK's text format](../../docs/readers.md#cntks-text-format);
# [examples/atis.py](../../examples/atis.py) is the whole program for ATIS.
