"""The same from its file: queries are read in a random order, sweep after sweep."""

import tagger
from atis import BYTES, FILE, FLOP, SIZE, WORDS  # noqa: F401
from data import data_file

TITLE = "the same from its file in CNTK's text format"


def cntk_step():
    from cntk.io import CTFDeserializer, MinibatchSource, StreamDef, StreamDefs

    streams = StreamDefs(
        words=StreamDef(field="S0", shape=tagger.VOCABULARY, is_sparse=True),
        labels=StreamDef(field="S2", shape=tagger.CLASSES, is_sparse=True),
    )
    source = MinibatchSource(CTFDeserializer(data_file(FILE), streams))
    train = tagger.cntk_step()

    def step():
        minibatch = source.next_minibatch(SIZE)
        train(minibatch[source.streams.words], minibatch[source.streams.labels])

    return step


def cntk_data():
    return [()]
