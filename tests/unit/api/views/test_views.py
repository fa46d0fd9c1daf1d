"""What notebooks show: HTML that is well formed, with names as text, large things cut, and a text in its place."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import cntk as C
from cntk.views import bundle_of

NAME = "<script>alert('x')</script>&\""
BIG = 40_000


class Page(HTMLParser):
    """Texts and tags of HTML, whose tags must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def model(name: str = "h1") -> Any:
    layers = [C.layers.Dense(5, activation=C.relu, name=name), C.layers.Dense(2)]
    return C.layers.Sequential(layers)(C.input_variable(3, name="x"))


def trainer(name: str) -> Any:
    z = model(name)
    return C.Trainer(z, C.squared_error(z, C.input_variable(2, name=name)), [C.sgd(z.parameters, 0.1)])


def learner(name: str) -> Any:
    schedule = C.learning_parameter_schedule([(2, 0.1), (1, 0.05), 0.01], epoch_size=100)
    return C.adam([C.parameter((2, 3), name=name)], schedule, C.momentum_schedule(0.9))


def source(name: str) -> Any:
    return C.io.MinibatchSourceFromData({name: np.zeros((5, 2), np.float32)})


class Ones(C.io.UserDeserializer):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def stream_infos(self) -> Any:
        return [C.io.StreamInformation(self.name, 0, "dense", np.float32, (1,))]

    def num_chunks(self) -> int:
        return 1

    def get_chunk(self, chunk_id: int) -> Any:
        return {self.name: np.ones((3, 1), np.float32)}


def minibatch(name: str) -> Any:
    (data,) = source(name).next_minibatch(3).values()
    return data


def sequences(name: str) -> Any:
    return C.Value.create(C.sequence.input_variable(2), [np.ones((3, 2), np.float32), np.zeros((5, 2), np.float32)])


SHOWN: dict[str, Callable[[str], Any]] = {
    "function": model,
    "layer": lambda name: C.layers.Dense(2, name=name),
    "primitive": lambda name: model(name).root_function,
    "several": lambda name: C.combine([C.input_variable(2, name=name) + 1, C.input_variable(2) * 2]),
    "nothing": lambda name: C.combine([]),
    "recurrence": lambda name: C.layers.Recurrence(C.layers.LSTM(3, name=name))(C.sequence.input_variable(2)),
    "input": lambda name: C.input_variable((2, C.FreeDimension), name=name),
    "placeholder": lambda name: C.placeholder(name=name),
    "output": lambda name: C.relu(C.input_variable(2), name=name).output,
    "parameter": lambda name: C.parameter((20, 30), init=1, name=name),
    "unknown parameter": lambda name: C.parameter((C.InferredDimension, 3), name=name),
    "constant": lambda name: C.constant(3, name=name),
    "sparse constant": lambda name: C.Constant(csr_matrix(np.eye(3, dtype=np.float32)), name=name),
    "value": lambda name: C.Value(np.arange(120, dtype=np.float32).reshape(10, 3, 4)),
    "sequences": sequences,
    "one-hot": lambda name: C.Value.one_hot([[1, 2], [3]], 5),
    "empty value": lambda name: C.Value(np.zeros((0, 3), np.float32)),
    "array": lambda name: C.NDArrayView.from_dense(np.ones((2, 3), np.float32)),
    "minibatch": minibatch,
    "learner": learner,
    "source": source,
    "reader": lambda name: C.io.MinibatchSource(Ones(name)),
    "deserializer": Ones,
    "trainer": trainer,
}


@pytest.mark.parametrize("kind", SHOWN)
def test_html_is_well_formed_and_names_are_text(kind: str) -> None:
    item = SHOWN[kind](NAME)
    bundle = item._repr_mimebundle_()
    assert bundle == bundle_of(item)
    assert bundle["text/plain"]
    page = Page(bundle["text/html"])
    assert "script" not in page.tags
    assert len(bundle["text/html"]) < BIG
    if "svg" in page.tags:
        assert "script" not in {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(bundle["image/svg+xml"]).iter()}
    text = "".join(page.texts)
    if kind not in ("nothing", "value", "sequences", "one-hot", "empty value", "array", "minibatch"):
        assert NAME in text


def test_a_model_is_a_picture_a_table_of_layers_and_one_of_parameters() -> None:
    bundle = bundle_of(model())
    texts = Page(bundle["text/html"]).texts
    assert {"h1", "[batch, 5]", "20", "h1/W", "h1/b", "Dense/W", "mean"} <= set(texts)
    assert bundle["text/plain"].split("\n")[1].split() == ["h1", "Dense", "[batch,", "5]", "20", "h1/W", "[3,", "5],", "h1/b", "[5]"]
    assert "32 parameters (128 bytes)" in bundle["text/plain"]


def test_showing_a_model_does_not_evaluate_it(monkeypatch: pytest.MonkeyPatch) -> None:
    z = model()
    monkeypatch.setattr(type(z), "eval", lambda *arguments, **options: pytest.fail("it is evaluated"))
    bundle_of(z)


def test_large_graphs_are_cut_and_say_how_much() -> None:
    deep = C.input_variable(2)
    for _ in range(3000):
        deep = C.relu(deep)
    began = time.process_time()
    bundle = bundle_of(deep)
    assert time.process_time() - began < 20
    assert len(bundle["text/html"]) < 2 * BIG
    assert len(bundle["text/plain"].split("\n")) < 100
    assert "2,940 more functions" in bundle["image/svg+xml"]
    assert "2,960 more" in "".join(Page(bundle["text/html"]).texts)
    assert "more lines" in bundle["text/plain"]


def test_large_values_are_cut_and_say_how_much() -> None:
    value = np.arange(3_000_000, dtype=np.float32).reshape(1000, 3000)
    for item in (C.Value(value), C.parameter(init=value), C.NDArrayView.from_dense(value)):
        bundle = bundle_of(item)
        assert len(bundle["text/html"]) + len(bundle["text/plain"]) < BIG
        texts = Page(bundle["text/html"]).texts
        assert "… 994 more" in texts
        assert "… 2,992 more" in texts


def test_long_names_are_cut() -> None:
    assert len(bundle_of(C.input_variable(2, name="n" * 100_000))["text/html"]) < BIG


def test_statistics_leave_out_what_is_not_finite() -> None:
    page = Page(bundle_of(C.parameter(init=np.array([1, 3, np.nan, np.inf], np.float32)))["text/html"])
    facts = dict(zip(page.texts[1:], page.texts[2:], strict=False))
    assert (facts["mean"], facts["deviation"], facts["smallest"], facts["largest"], facts["not finite"]) == ("2", "1", "1", "3", "2")


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_parameters_of_any_type(dtype: Any) -> None:
    assert "1.5" in Page(bundle_of(C.parameter((2, 2), init=1.5, dtype=dtype))["text/html"]).texts


def test_sequences_are_shown_without_padding() -> None:
    texts = Page(bundle_of(sequences(""))["text/html"]).texts
    assert "sequence 0, 3 steps" in texts
    assert texts.count("1") >= 6


def test_values_that_are_gone_say_so() -> None:
    z = C.relu(C.input_variable(1))
    value = z.eval([[1.0]], as_numpy=False)
    z.eval([[2.0]], as_numpy=False)
    assert "evaluated again" in "".join(Page(bundle_of(value)["text/html"]).texts)


def test_schedules_are_told_by_samples() -> None:
    texts = Page(bundle_of(learner("W"))["text/html"]).texts
    assert "0.1, 0.05 from sample 200, 0.01 from sample 300 per minibatch" in texts


def test_a_trainer_tells_how_far_it_is() -> None:
    z = model()
    y = C.input_variable(2)
    made = C.Trainer(z, C.squared_error(z, y), [C.sgd(z.parameters, 0.1)])
    made.train_minibatch({z.arguments[0]: np.ones((4, 3), np.float32), y: np.ones((4, 2), np.float32)})
    assert "samples: 4" in bundle_of(made)["text/plain"]


def test_what_plugins_derive_is_shown_as_what_it_derives_from() -> None:
    class Mine(C.learners.UserLearner):
        def __init__(self, parameters: Any, schedule: Any) -> None:
            super().__init__(parameters, schedule)

    made = Mine([C.parameter(2)], C.learning_parameter_schedule(0.1))
    assert "Mine" in bundle_of(made)["text/plain"]


def test_printing_is_cntks() -> None:
    z = model()
    assert str(z) == "Composite(x: Tensor[3]) -> Tensor[2]"
    assert repr(z).startswith("Composite(Dense): Input('x', [#], [3]) -> Output(")


def test_nothing_of_it_is_imported_before_it_is_shown() -> None:
    early = "[name for name in sys.modules if name.startswith(('cntk.views', 'cntk.logging.svg', 'IPython'))]"
    program = f"import sys, cntk; assert not {early}"
    subprocess.run([sys.executable, "-c", program], check=True)
