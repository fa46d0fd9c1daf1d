"""Operators of plugins and programs in model files: kept by their class, and recreated from the arguments of its constructor."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension import plugins
from cntk.core.extension.hookspecs import hookimpl
from cntk.core.extension.plugins import PluginRecord
from cntk.core.operators.elementwise import Elementwise
from cntk.core.operators.op import Op
from cntk.core.types.axis import Axis
from cntk.plugins.formats import values
from cntk.plugins.formats.attributes import DOUBLE
from cntk.plugins.formats.row import Row
from cntk.plugins.formats.wire import read_dictionary, write_dictionary
from cntk.plugins.ops.activation import Tanh
from cntk.plugins.ops.convolution import Convolution
from cntk.plugins.ops.random_distribution import Normal


class Affine(Elementwise):
    """``scale * x + shift``, whose constructor keeps neither under its own name."""

    op_name = "Affine"

    def __init__(self, scale: float, /, *shifts: float, table: Any = None) -> None:
        super().__init__()
        self.by, self.to, self.table = 2 * scale, sum(shifts), table

    def forward(self, ctx: Any, y: Any, x: Any) -> None:
        ctx.xp.multiply(x, self.by, out=y)
        ctx.xp.add(y, self.to, out=y)

    def gradient(self, i: int, ctx: Any, dx: Any, dy: Any, y: Any, x: Any) -> None:
        ctx.xp.multiply(dy, self.by, out=dx)


class Power(Elementwise):
    """``x ** exponent``, by a constructor that takes any attributes."""

    op_name = "OwnPower"

    def forward(self, ctx: Any, y: Any, x: Any) -> None:
        ctx.xp.power(x, self.exponent, out=y)


class Halved(Tanh):
    """Half of what its base gives."""

    def forward(self, ctx: Any, out: Any, *inputs: Any) -> None:
        super().forward(ctx, out, *inputs)
        ctx.xp.multiply(out, 0.5, out=out)


class Noise(Normal):
    """A random operator with a class of its own."""


class Counting(Op):
    """Adds how often it has run."""

    op_name = "Counting"
    has_effects = True
    runs = 0

    def infer(self, x: Any) -> Any:
        return x.but()

    def forward(self, ctx: Any, out: Any, x: Any) -> None:
        self.runs += 1
        ctx.xp.add(x, self.runs, out=out)

    def create_checkpoint(self) -> dict[str, Any]:
        return {"runs": self.runs}

    def restore_from_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.runs = int(checkpoint["runs"])


def bytes_of(function: Any) -> bytes:
    return b"".join(map(bytes, plugins.model_formats.get("CNTKv2").write(function)))


def again(function: Any) -> Any:
    return C.load_model(bytes_of(function))


def changed(function: Any, **entries: Any) -> bytes:
    """The file of a function, with other entries in the record of its operator."""
    found = read_dictionary(bytes_of(function))
    record = next(record for record in found["primitive_functions"] if record["type"] == "opencntk operator")
    record["operator"] = {name: value for name, value in {**record["operator"], **entries}.items() if value is not ...}
    return b"".join(map(bytes, write_dictionary(found)))


def test_the_constructor_is_called_with_what_it_was_called_with() -> None:
    x = C.input_variable(2)
    table = {"dtype": np.float32, "kind": np.dtype("int8"), "axes": (Axis(-1), Axis("steps"), [None, True, "a"]), "@": np.arange(3)}
    f = again(Affine(1.5, 1.0, np.int64(2), table=table)(x, name="affine"))
    assert f.name == "affine"
    np.testing.assert_array_equal(f.eval([[1, 2]]), [[6, 9]])
    held = f.root_function.op.table
    assert held["dtype"] is np.float32
    assert held["kind"] == np.dtype("int8")
    assert held["axes"] == table["axes"]
    assert held["@"].dtype == np.int64
    assert held["@"].tolist() == [0, 1, 2]
    np.testing.assert_array_equal(again(f).eval([[1, 2]]), [[6, 9]])


def test_a_class_is_no_other_that_shares_its_name_or_its_base() -> None:
    x = C.input_variable(2)
    np.testing.assert_array_equal(again(Power(exponent=2.0)(x)).eval([[1, 3]]), [[1, 9]])
    f = again(Halved()(x))
    assert type(f.root_function.op) is Halved
    np.testing.assert_allclose(f.eval([[0, 1]]), [[0, np.tanh(1) / 2]], rtol=1e-6)
    assert C.load_model(bytes_of(C.tanh(x))).root_function.op.__class__ is Tanh


def test_a_convolution_of_ones_own_is_not_taken_for_the_built_in_one() -> None:
    class Mine(Convolution):
        pass

    x = C.input_variable((1, 4))
    node = C.convolution(np.ones((1, 1, 2), np.float32), x).root_function
    mine = Mine.made_of(node.op.constructor_arguments())
    assert type(again(mine(*node.inputs)).root_function.op) is Mine


class Halves(Op):
    """Both halves of a vector."""

    op_name = "Halves"
    outputs = 2

    def infer(self, x: Any) -> Any:
        return x.but(shape=(x.shape[0] // 2,)), x.but(shape=(x.shape[0] // 2,))

    def forward(self, ctx: Any, out: Any, x: Any) -> None:
        half = x.shape[1] // 2
        ctx.xp.copyto(out[0], x[:, :half])
        ctx.xp.copyto(out[1], x[:, half:])


def test_within_layers_recurrences_and_beside_other_results() -> None:
    x, s = C.input_variable(4), C.sequence.input_variable(2)
    first, second = Halves()(x).outputs
    split = again(C.layers.Dense(2, init=1, activation=lambda x: Affine(0.5)(x))(second - first))
    np.testing.assert_array_equal(split.eval([[1, 2, 3, 5]]), [[5, 5]])
    folded = again(C.layers.Fold(lambda h, x: Affine(0.5, 1.0)(h + x))(s))
    np.testing.assert_array_equal(folded.eval([np.float32([[1, 2], [3, 4]])]), [[6, 8]])


def test_what_is_changed_later_is_saved() -> None:
    op = Power(exponent=2.0)
    f = op(C.input_variable(1))
    clone = f.clone("clone")
    op.set_attribute("exponent", 3.0)
    assert again(f).eval([[2]]) == 8
    assert again(clone).eval([[2]]) == 4


def test_custom_attributes_are_kept() -> None:
    f = Power(exponent=2.0)(C.input_variable(1))
    f.custom_attributes = {"made by": "a test"}
    assert again(f).custom_attributes == {"made by": "a test"}


def test_random_operators_go_on_where_they_stood() -> None:
    f = Noise([0.0, 1.0], 5)(C.input_variable(3))
    f.root_function.set_attribute("rngSeed", 7)
    first = f.eval([[0, 0, 0]])
    loaded = again(f)
    second = f.eval([[0, 0, 0]])
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(loaded.eval([[0, 0, 0]]), second)


def test_states_are_in_files_and_checkpoints(tmp_path: Any) -> None:
    x, w = C.input_variable(1), C.parameter(1)
    f = Counting()(x * w)
    loss = C.reduce_sum(C.stop_gradient(f) + w)
    trainer = C.Trainer(f, loss, C.sgd([w], 0.5))
    trainer.train_minibatch({x: [[1]]})
    trainer.save_checkpoint(str(tmp_path / "model"))
    assert again(f).root_function.op.runs == 1
    trainer.train_minibatch({x: [[1]]})
    node = f.root_function
    assert node.op.runs == 2
    trainer.restore_from_checkpoint(str(tmp_path / "model"))
    assert node.op.runs == 1
    assert w.value.tolist() == [-0.5]


def test_restore_wants_the_same_arguments() -> None:
    x, w = C.input_variable(1), C.parameter(1, init=2)
    data = bytes_of(Affine(1.0, 2.0)(x * w))
    w.value = np.zeros(1, np.float32)
    with pytest.raises(ValueError, match="not equivalent"):
        Affine(1.0, 3.0)(x * w).restore(data)
    Affine(1.0, 2.0)(x * w).restore(data)
    assert w.value.tolist() == [2]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (len, r"the argument 'table' of Affine is builtin_function_or_method"),
        ({1: 2}, r"the argument 'table' of Affine is a dictionary with the keys \[1\]"),
        ({"a": [0, {1}]}, r"the argument 'table' of Affine\['a'\]\[1\] is set \{1\}"),
        (np.array(["text"]), r"the argument 'table' of Affine is ndarray"),
        (np.dtype(">f4"), r"the argument 'table' of Affine is .*"),
        (C.input_variable(1), r"the argument 'table' of Affine is Input"),
    ],
    ids=str,
)
def test_an_argument_that_cannot_be_saved_is_named(value: Any, message: str) -> None:
    f = Affine(1.0, table=value)(C.input_variable(1), name="mine")
    with pytest.raises(TypeError, match=f"Affine 'mine' cannot be saved: {message}") as caught:
        bytes_of(f)
    assert "built at" in str(caught.value)
    assert __file__ in str(caught.value)


def test_a_list_in_itself_cannot_be_saved() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(TypeError, match="lies in more than"):
        bytes_of(Affine(1.0, table=endless)(C.input_variable(1)))


def test_an_attribute_called_like_a_method_cannot_be_saved() -> None:
    f = Power(exponent=2.0, flop=3)(C.input_variable(1))
    with pytest.raises(ValueError, match=r"the argument 'flop' of .*Power has the name of an attribute that all operators have"):
        bytes_of(f)


# ---- damaged and hostile files -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"class": "Nothing"}, "there is no operator Nothing of the module .*import the module that defines it first"),
        ({"class": "bytes_of"}, "there is no operator bytes_of"),
        ({"module": "os", "class": "system"}, "there is no operator system of the module os"),
        ({"module": "decoy"}, "there is no operator Power of the module decoy"),
        ({"module": "cntk.core.operators.native", "class": "NativeOp"}, "NativeOp is none of the operators that a file has by their class"),
        ({"module": "cntk.plugins.ops.convolution", "class": "Convolution", "arguments": {"strides": -1}}, "Convolution is none of the"),
        ({"module": "cntk.core.operators.op", "class": "Op"}, "there is no operator Op"),
        ({"module": 3}, "attribute 'module': expected a string, found 3"),
        ({"arguments": [1]}, "attribute 'arguments': expected a dictionary"),
        ({"arguments": ...}, "expected the attribute 'arguments'"),
        ({"arguments": {"exponent": {"@tuple": 3}}}, "expected the elements of a tuple, found 3"),
        ({"arguments": {"exponent": {"@code": "3"}}}, "expected a dictionary, or one of"),
        ({"arguments": {"exponent": {"@integer": "9" * 2000}}}, "expected the digits of an integer"),
        ({"arguments": {"exponent": {"@array": ["|O8", [1], np.zeros(8, np.int8)]}}}, "not a type of numbers"),
        ({"arguments": {"exponent": {"@array": ["<i8", [2**40], np.zeros(8, np.int8)]}}}, "expected element type, shape and bytes"),
        ({"arguments": {"exponent": {"@dtype": "object"}}}, "expected the name of an element type, found 'object'"),
        ({"arguments": {"exponent": {"@type": "builtins.eval"}}}, "expected the name of an element type"),
        ({"arguments": {"forward": 2.0}}, "the argument 'forward' of .*Power has the name of an attribute that all operators have"),
        ({"arguments": {"__class__": 2.0}}, "the argument '__class__' of"),
        ({"arguments": {"decide_layout": 2.0}}, "the argument 'decide_layout' of"),
        ({"state": {"seed": 3}, "class": "Counting", "arguments": {}}, "Counting cannot be made of {}: KeyError: 'runs'"),
        ({"class": "Affine", "arguments": {}}, "Affine cannot be made of {}: TypeError"),
    ],
    ids=str,
)
def test_a_file_that_says_something_else_is_refused(entries: dict[str, Any], message: str) -> None:
    before = set(sys.modules)
    with pytest.raises(RuntimeError, match=rf"<\d+ bytes>: function 'OwnPower\d*' cannot be read: .*{message}"):
        C.load_model(changed(Power(exponent=2.0)(C.input_variable(1)), **entries))
    assert set(sys.modules) == before


def test_operands_of_another_number_are_refused() -> None:
    found = read_dictionary(bytes_of(Power(exponent=2.0)(C.input_variable(1))))
    found["primitive_functions"][0]["inputs"] *= 2
    with pytest.raises(RuntimeError, match="cannot be read"):
        C.load_model(b"".join(map(bytes, write_dictionary(found))))


def test_a_later_version_is_refused() -> None:
    found = read_dictionary(bytes_of(Power(exponent=2.0)(C.input_variable(1))))
    found["primitive_functions"][0]["version"] = np.uint64(1)
    with pytest.raises(RuntimeError, match="saved by a later version"):
        C.load_model(b"".join(map(bytes, write_dictionary(found))))


# ---- plugins -------------------------------------------------------------------------------------


MODULE = """
from cntk.core.operators.elementwise import Elementwise

class Doubled(Elementwise):
    op_name = "Doubled"

    def forward(self, ctx, y, x):
        ctx.xp.multiply(x, 2, out=y)

def doubled(x, name=""):
    return Doubled()(x, name=name)
"""


@pytest.fixture
def saved(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[bytes]:
    """A file with the operator of a plugin that is not imported."""
    package = tmp_path / "acme_ops"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "doubled.py").write_text(MODULE)
    (package / "decoy.py").write_text("raise SystemExit('a file has this imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(plugins, "records", [*plugins.records, PluginRecord("acme", "acme-ops", "1.2", "acme_ops", "loaded")])
    from acme_ops.doubled import doubled  # type: ignore[import-not-found]

    data = bytes_of(doubled(C.input_variable(1)))
    forget(doubled)
    yield data
    if plugins.manager.has_plugin("acme"):
        plugins.unregister_plugin("acme")


def forget(doubled: Any) -> None:
    """Have a class be as good as not there, which lives on in weak references until it is collected."""
    doubled.__globals__["Doubled"].__qualname__ = "Forgotten"
    for name in [name for name in sys.modules if name.startswith("acme_ops")]:
        del sys.modules[name]


def register(target: str, hook: str = "cntk_register_ops") -> None:
    class Plugin:
        pass

    def implementation(register: Any) -> None:
        register("doubled", target)

    setattr(Plugin, hook, staticmethod(hookimpl(implementation)))
    plugins.register_plugin(Plugin, "acme")


def test_what_a_plugin_has_registered_is_imported(saved: bytes) -> None:
    register("acme_ops.doubled:doubled")
    np.testing.assert_array_equal(C.load_model(saved).eval([[3]]), [[6]])


def test_no_other_module_of_a_plugin_is_imported(saved: bytes) -> None:
    register("acme_ops.doubled:doubled")
    found = read_dictionary(saved)
    found["primitive_functions"][0]["operator"]["module"] = "acme_ops.decoy"
    with pytest.raises(RuntimeError, match=r"no operator Doubled of the module acme_ops.decoy; acme-ops 1.2 is installed"):
        C.load_model(b"".join(map(bytes, write_dictionary(found))))
    assert "acme_ops.decoy" not in sys.modules


def test_a_plugin_that_cannot_be_imported_says_why(saved: bytes) -> None:
    register("acme_ops.missing:doubled")
    with pytest.raises(RuntimeError, match=r"registered from acme_ops cannot be imported: ImportError: .*ModuleNotFoundError"):
        C.load_model(saved)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (None, r"the file says that it comes with acme-ops 1\.2; if you trust that: pip install acme-ops$"),
        (("blocked", ""), "it belongs to the plugin 'acme' of acme-ops, which CNTK_PLUGINS leaves out$"),
        (("broken", "OSError: no"), r"it belongs to the plugin 'acme' of acme-ops 2\.0, which is broken: OSError: no$"),
        (("loaded", ""), r"acme-ops 2\.0 is installed, and the file was saved with version 1\.2$"),
    ],
    ids=str,
)
def test_what_to_do_without_the_plugin(saved: bytes, record: Any, message: str, monkeypatch: Any) -> None:
    others = [one for one in plugins.records if one.name != "acme"]
    own = [] if record is None else [PluginRecord("acme", "acme-ops", "2.0", "acme_ops", *record)]
    monkeypatch.setattr(plugins, "records", [*others, *own])
    with pytest.raises(RuntimeError, match=f"no operator Doubled of the module acme_ops.doubled; {message}"):
        C.load_model(saved)


def test_arguments_of_another_version_say_so(saved: bytes) -> None:
    register("acme_ops.doubled:doubled")
    plugins.records[-1].version = "2.0"
    found = read_dictionary(saved)
    found["primitive_functions"][0]["operator"]["arguments"] = {"_gone": 1}
    with pytest.raises(RuntimeError, match=r"'_gone' of acme_ops.doubled.Doubled"):
        C.load_model(b"".join(map(bytes, write_dictionary(found))))
    found["primitive_functions"][0]["operator"]["arguments"] = {}
    found["primitive_functions"][0]["operator"]["state"] = {"a": 1}
    sys.modules["acme_ops.doubled"].Doubled.restore_from_checkpoint = lambda self, state: state["b"]
    with pytest.raises(RuntimeError, match=r"KeyError: 'b'; the file was saved with version 1\.2 of acme-ops, there is 2\.0$"):
        C.load_model(b"".join(map(bytes, write_dictionary(found))))


def test_a_command_in_the_place_of_a_distribution_is_not_repeated(saved: bytes, monkeypatch: Any) -> None:
    monkeypatch.setattr(plugins, "records", [one for one in plugins.records if one.name != "acme"])
    found = read_dictionary(saved)
    found["primitive_functions"][0]["operator"]["distribution"] = "acme; rm -rf /"
    with pytest.raises(RuntimeError, match="import the module that defines it first") as caught:
        C.load_model(b"".join(map(bytes, write_dictionary(found))))
    assert "rm" not in str(caught.value)


class ExactTanh(Tanh):
    """CNTK's operator, computed in another way."""


def test_a_plugin_gives_its_operator_the_number_of_cntk() -> None:
    class Plugin:
        @staticmethod
        @hookimpl
        def cntk_register_operator_rows(register: Any) -> None:
            register("ExactTanh", Row(2, ExactTanh))
            register("Power", Row(4711, Power, {"exponent": DOUBLE}))

    x = C.input_variable(1, name="x")
    before = bytes_of(ExactTanh()(x))
    plugins.register_plugin(Plugin, "rows")
    try:
        (record,) = read_dictionary(bytes_of(ExactTanh()(x)))["primitive_functions"]
        assert (record["type"], int(record["op"])) == ("PrimitiveFunction", 2)
        assert type(again(ExactTanh()(x)).root_function.op) is Tanh
        f = again(Power(exponent=3.0)(x))
        assert type(f.root_function.op) is Power
        assert f.eval([[2]]) == 8
    finally:
        plugins.unregister_plugin("rows")
    assert type(C.load_model(before).root_function.op) is ExactTanh


def test_other_formats_refuse_clearly(tmp_path: Any) -> None:
    with pytest.raises(ValueError, match=r"OwnPower 'mine' .*no counterpart"):
        Power(exponent=2.0)(C.input_variable(1), name="mine").save(str(tmp_path / "model"), format="CNTKv1")


@pytest.mark.parametrize(
    "value", [2**63, -(2**63), 2**70, -1, 1.5, np.float32(0.1), (), [()], {}, {"a": {"@tuple": 1}}, Axis.new_leading_axis()]
)
def test_values_come_back_as_they_were(value: Any) -> None:
    found = read_dictionary(b"".join(map(bytes, write_dictionary({"value": values.written(value, "it")}))))
    back = values.read(found["value"])
    assert type(back) is type(value)
    assert back == value
