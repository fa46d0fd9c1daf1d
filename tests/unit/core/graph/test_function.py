"""Functions: how they print, how they are called, copied, searched and put together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import cntk as C
from cntk.core.graph.function import Function
from cntk.layers import Dense, Sequence, Sequential, SparseTensor, Tensor

ONES = np.ones((2, 2), np.float32)


@pytest.fixture
def x() -> Any:
    return C.input_variable(2, name="x")


@pytest.fixture
def network(x: Any) -> Any:
    """Two layers, called hidden and result, applied to x."""
    return Sequential([Dense(3, activation=C.tanh, name="hidden"), Dense(2, name="result")])(x)


# ---- printing ----


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        (lambda: C.input_variable((2, 3), name="nm"), "Input('nm', [#], [2 x 3])"),
        (lambda: C.sequence.input_variable(3, name="s"), "Input('s', [#, *], [3])"),
        (lambda: C.sequence.input_variable(3, sequence_axis=C.Axis("ax"), name="s"), "Input('s', [#, ax], [3])"),
        (lambda: C.input_variable(2, dynamic_axes=[], name="n"), "Input('n', [], [2])"),
        (lambda: C.input_variable((), name="n"), "Input('n', [#], [])"),
        (lambda: C.input_variable((C.FreeDimension, 3), name="n"), "Input('n', [#], [* x 3])"),
        (lambda: C.parameter((C.InferredDimension, 3), name="W"), "Parameter('W', [], [? x 3])"),
        (lambda: C.parameter((2, 3), name="W"), "Parameter('W', [], [2 x 3])"),
        (lambda: C.constant(1, name="c"), "Constant('c', [], [])"),
        (lambda: C.placeholder(name="p"), "Placeholder('p', [???], [???])"),
        (lambda: C.input_variable(2, is_sparse=True, name="sparse"), "Input('sparse', [#], [2])"),
        (lambda: C.plus(C.input_variable(2), 1, name="pp").output, "Output('pp', [#], [2])"),
    ],
)
def test_variables_print_kind_name_axes_and_shape(variable: Any, text: str) -> None:
    assert str(variable()) == repr(variable()) == text


def test_nodes_without_a_name_print_their_uid() -> None:
    doubled = C.input_variable(2) * 2
    for variable in (*doubled.root_function.inputs, doubled.output):
        assert f"('{variable.uid}', " in repr(variable)
    assert doubled.output.uid == f"{doubled.root_function.uid}_Output_0"


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x * 2, "ElementTimes(x: Tensor[2]) -> Tensor[2]"),
        (lambda x: C.plus(x, 1, name="pp"), "pp: Plus(x: Tensor[2]) -> Tensor[2]"),
        (lambda x: C.relu(x + 1), "Composite(x: Tensor[2]) -> Tensor[2]"),
        (lambda x: C.input_variable((2, 3)) + C.input_variable((1, 3)), "Plus(Tensor[2,3], Tensor[1,3]) -> Tensor[2,3]"),
        (lambda x: Dense(3), "Dense(x: Sequence[tensor]) -> Sequence[tensor]"),
        (lambda x: Dense(3, name="dd")(x), "dd: Dense(x: Tensor[2]) -> Tensor[3]"),
        (lambda x: Sequential([Dense(3), C.relu]), "Composite(keep: Sequence[tensor]) -> Sequence[tensor]"),
        (lambda x: C.combine([x + 1, x * 2]), "Composite(x: Tensor[2]) -> Tuple[Tensor[2], Tensor[2]]"),
        (lambda x: C.reduce_sum(C.reshape(x, (2,)) + 1), "Composite(x: Tensor[2]) -> np.float32"),
        (lambda x: C.times(x, np.ones((2, 3))), "Times(x: Tensor[2]) -> Tensor[3]"),
        (lambda x: C.sequence.input_variable(2) + 1, "Plus(Sequence[Tensor[2]]) -> Sequence[Tensor[2]]"),
        (lambda x: C.input_variable(2, dtype=np.float64) + 1, "Plus(Tensor[np.float64,2]) -> Tensor[np.float64,2]"),
        (lambda x: C.cross_entropy_with_softmax(x, C.input_variable(2, is_sparse=True)), None),
    ],
)
def test_functions_print_their_signature(x: Any, function: Any, text: str | None) -> None:
    assert str(function(x)) == (text or "CrossEntropyWithSoftmax(x: Tensor[2], SparseTensor[2]) -> Tensor[1]")


def test_representations_name_operands_and_results(x: Any) -> None:
    layer = Dense(3, name="dd")(x)
    assert repr(layer) == "Composite(Dense): Input('x', [#], [2]) -> Output('dd', [#], [3])"
    assert repr(layer.root_function) == "Dense: Input('x', [#], [2]) -> Output('dd', [#], [3])"


# ---- calling ----


def test_called_on_variables_a_function_gives_a_function_with_the_same_parameters(network: Any) -> None:
    applied = network(C.input_variable(2, name="y") * 2)
    assert isinstance(applied, Function)
    assert applied.parameters == network.parameters
    assert [v.name for v in applied.arguments] == ["y"]


def test_called_on_data_a_function_gives_arrays(x: Any) -> None:
    assert_array_equal((x * 2)(ONES), 2 * ONES)
    assert_array_equal((x * 2)(x=ONES), 2 * ONES)
    first, second = C.combine([x + 1, x * 3])(ONES)
    assert_array_equal(first, 2 * ONES)
    assert_array_equal(second, 3 * ONES)


def test_python_functions_take_their_arguments_in_order() -> None:
    @C.Function
    def difference(minuend: Tensor[2], subtrahend: Tensor[2]) -> Any:
        return 0 * subtrahend + minuend - subtrahend

    assert [v.name for v in difference.arguments] == ["minuend", "subtrahend"]
    assert_array_equal(difference(3 * ONES, ONES), 2 * ONES)
    assert_array_equal(difference(subtrahend=3 * ONES, minuend=ONES), -2 * ONES)


def test_arguments_are_matched_as_python_does() -> None:
    x, y = C.input_variable(2, name="x"), C.input_variable(2, name="y")
    total = x + y
    assert total.argument_map(1, 2) == total.argument_map(1, y=2) == total.argument_map(y=2, x=1) == {x: 1, y: 2}
    for args, kwargs, error, message in [
        ((1,), {}, TypeError, "expected 2 arguments, got 1"),
        ((1, 2, 3), {}, TypeError, "expected 2 arguments, got 3"),
        ((1,), {"z": 2}, TypeError, r"no argument called 'z'; it has \['x', 'y'\]"),
        ((1,), {"x": 2}, SyntaxError, "'x' twice"),
    ]:
        with pytest.raises(error, match=message):
            total.argument_map(*args, **kwargs)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: C.input_variable(3, name="y"), r"argument 'x' has the type Tensor\[2\] and cannot take Input\('y', \[#\], \[3\]\)"),
        (lambda: C.input_variable(2, is_sparse=True), r"cannot take .* of type SparseTensor\[2\]"),
        (lambda: C.input_variable(2, dtype=np.float64), r"cannot take .* of type Tensor\[np.float64,2\]"),
        (lambda: C.sequence.input_variable(2), r"cannot take .* of type Sequence\[Tensor\[2\]\]"),
    ],
)
def test_an_argument_takes_its_own_type_only(x: Any, given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        (x * 2)(given())


def test_data_and_variables_do_not_mix(x: Any) -> None:
    total = x + C.input_variable(2, name="y")
    with pytest.raises(TypeError, match=r"argument 'y': data \(ndarray\) and variables cannot be mixed in a call"):
        total(x, ONES)


def test_composition() -> None:
    plus, times = C.Function(lambda u: u + 1), C.Function(lambda v: v * 3)
    x = C.input_variable(2)
    assert_array_equal((plus >> times)(x).eval({x: ONES}), 6 * ONES)
    assert_array_equal((plus << times)(x).eval({x: ONES}), 4 * ONES)
    assert_array_equal((plus >> (times, plus) >> C.minus)(x).eval({x: ONES}), 3 * ONES)
    with pytest.raises(TypeError, match="can be followed by functions only, got str 'relu'"):
        plus >> "relu"


def test_annotations_give_arguments_their_types() -> None:
    @C.Function
    def criterion(features: Tensor[2], steps: Sequence[Tensor[3]], labels: SparseTensor[4]) -> Any:
        return C.combine([features + 1, steps + 1, C.times(labels, np.ones((4, 1)))])

    assert [str(v.type) for v in criterion.arguments] == ["Tensor[2]", "Sequence[Tensor[3]]", "SparseTensor[4]"]


def test_a_signature_can_be_given_later() -> None:
    layer = Dense(3)
    layer.update_signature(Tensor[2])
    assert str(layer) == "Dense(x: Tensor[2]) -> Tensor[3]"
    with pytest.raises(TypeError, match="expected 1 arguments, got 2"):
        Dense(3).update_signature(2, 3)


# ---- copying ----


def test_a_sharing_clone_has_the_same_parameters(network: Any) -> None:
    assert network.clone("share").parameters == network.parameters
    assert network.clone(C.CloneMethod.share).parameters == network.parameters


def test_a_clone_has_parameters_of_its_own_with_equal_values(network: Any) -> None:
    clone = network.clone("clone")
    assert_array_equal(clone(ONES), network(ONES))
    for copied, original in zip(clone.parameters, network.parameters, strict=True):
        assert copied is not original
        assert copied.name == original.name
        copied.value = np.zeros(copied.shape)
    assert_array_equal(clone(ONES), 0 * ONES)
    assert network(ONES).any()


def test_a_frozen_clone_has_constants(network: Any) -> None:
    frozen = network.clone("freeze")
    assert frozen.parameters == ()
    assert [c.name for c in frozen.constants] == [p.name for p in network.parameters]
    assert_array_equal(frozen(ONES), network(ONES))


@pytest.mark.parametrize("method", ["share", "clone", "freeze"])
def test_a_clone_has_inputs_of_its_own(network: Any, x: Any, method: str) -> None:
    clone = network.clone(method)
    assert clone.arguments != network.arguments
    assert_array_equal(clone.eval({"x": ONES}), clone.eval({clone.arguments[0]: ONES}))
    with pytest.raises(ValueError, match=r"no data for Input.'x'"):
        clone.eval({x: ONES})


def test_cloning_replaces_inputs_and_intermediate_results(network: Any, x: Any) -> None:
    wider, middle = C.input_variable(2, name="wider"), C.input_variable(3, name="middle")
    assert network.clone("share", {x: wider}).arguments == (wider,)
    cut = network.clone("share", {network.hidden: middle})
    assert cut.arguments == (middle,)
    assert [p.shape for p in cut.parameters] == [(3, 2), (2,)]
    with pytest.raises(ValueError, match=r"Times.*the product sums over"):
        network.clone("share", {x: middle})


def test_cloning_keeps_names_of_layers(network: Any) -> None:
    clone = network.clone("clone")
    assert clone.hidden.W.shape == (2, 3)
    assert str(clone) == str(network)


def test_the_method_of_cloning_must_be_known(network: Any) -> None:
    for method in ("copy", None):
        with pytest.raises(ValueError, match=f"clone: {method!r} is not a method of cloning; use 'share', 'clone' or 'freeze'"):
            network.clone(method)
    with pytest.raises(TypeError, match="substitutions must be a dictionary of variables, got list"):
        network.clone("share", [])


# ---- placeholders ----


def test_placeholders_are_bound_in_place(x: Any) -> None:
    p = C.placeholder(name="p")
    f = C.relu(p)
    assert f.placeholders == (p,)
    assert f.replace_placeholders({p: x}) is f
    assert (f.placeholders, f.arguments, f.shape) == ((), (x,), (2,))
    assert_array_equal(f.eval({x: -ONES}), 0 * ONES)


def test_the_only_placeholder_needs_no_name(x: Any) -> None:
    assert C.relu(C.placeholder()).replace_placeholder(x + 1).arguments == (x,)
    with pytest.raises(ValueError, match="has 2 placeholders; use replace_placeholders"):
        (C.placeholder() + C.placeholder()).replace_placeholder(x)
    with pytest.raises(ValueError, match="is not a placeholder of"):
        (x + 1).replace_placeholders({x: C.input_variable(2)})


def test_binding_a_placeholder_outdates_compiled_programs(x: Any) -> None:
    p, q = C.placeholder(), C.placeholder()
    total = p + q
    total.replace_placeholders({p: x})
    with pytest.raises(ValueError, match="is an unbound placeholder"):
        total.eval({x: ONES})
    total.replace_placeholders({q: x})
    assert_array_equal(total.eval({x: ONES}), 2 * ONES)


def test_what_was_read_off_a_graph_is_read_again_once_that_changes(x: Any) -> None:
    p, weight = C.placeholder(), C.parameter(2)
    outer = C.relu(p) * weight
    assert (outer.arguments, outer.parameters, outer.inputs) == ((p,), (weight,), (p, weight))
    assert outer.arguments is outer.arguments
    bias = C.parameter(2)
    outer.replace_placeholder(x + bias)
    assert (outer.arguments, outer.inputs) == ((x,), (x, bias, weight))
    assert set(outer.parameters) == {weight, bias}


def test_arguments_are_read_again_once_another_order_is_set() -> None:
    left, right = C.input_variable(2), C.input_variable(2)
    total = C.combine(left + right)
    assert (total.arguments, total.inputs) == ((left, right), (left, right))
    total.order = (right, left)
    assert (total.arguments, total.inputs) == ((right, left), (right, left))


def test_the_order_of_arguments_follows_the_global_option() -> None:
    left, right = C.input_variable((2, 3)), C.input_variable((3, 2))
    product = C.times(left, right) + 1
    assert product.arguments == (left, right)
    C.set_global_option("python_operand_order", False)
    assert product.arguments == (right, left)


# ---- searching ----


def test_layers_and_parameters_are_attributes(network: Any) -> None:
    assert str(network.hidden) == "hidden: Dense(x: Tensor[2]) -> Tensor[3]"
    assert repr(network.hidden.W) == "Parameter('W', [], [2 x 3])"
    assert repr(network.result.b) == "Parameter('b', [], [2])"
    assert network.shape == (2,)
    with pytest.raises(AttributeError, match=r"neither the function .* nor its output has 'absent'"):
        network.absent  # noqa: B018


def test_nodes_are_found_by_name(network: Any, x: Any) -> None:
    assert network.find_by_name("hidden").op_name == "Dense"
    assert network.find_by_name("x") is x
    assert network.find_by_name("absent") is None
    assert network.find_all_with_name("W") == [network.result.W, network.hidden.W]


def test_nodes_inside_blocks_are_found_to_a_depth(x: Any) -> None:
    @C.BlockFunction("Inner", "inner")
    def inner(value: Any) -> Any:
        return C.relu(value, name="deep")

    @C.BlockFunction("Outer", "outer")
    def outer(value: Any) -> Any:
        return inner(value) + 1

    model = outer(x)
    found = [[len(model.find_all_with_name(name, depth)) for depth in (0, 1, 2, -1)] for name in ("outer", "inner", "deep")]
    assert found == [[1, 1, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1]]


def test_a_name_must_be_unique_to_find_a_node_by_it(x: Any) -> None:
    total = C.plus(x, 1, name="twin") + C.plus(x, 2, name="twin")
    with pytest.raises(ValueError, match="2 nodes are called 'twin'"):
        total.find_by_name("twin")
    with pytest.raises(ValueError, match="2 nodes are called 'twin'"):
        total.twin  # noqa: B018


def test_a_function_is_named_once(x: Any) -> None:
    f = x + 1
    f.name = "sum"
    assert f.name == "sum"
    with pytest.raises(ValueError, match="function 'sum' cannot be renamed 'total'"):
        f.name = "total"


# ---- putting together ----


def test_combined_functions_keep_their_outputs(x: Any) -> None:
    both = C.combine([x + 1, C.combine([x * 2, x * 3])])
    assert len(both.outputs) == 3
    assert both[1] is both.outputs[1]
    with pytest.raises(RuntimeError, match="has 3 outputs; choose one"):
        both.output  # noqa: B018
    with pytest.raises(KeyError, match="index them with an int"):
        both["name"]


def test_nothing_combined_is_a_function_without_outputs(x: Any) -> None:
    nothing = C.combine([])
    assert (nothing.outputs, nothing.arguments, nothing.parameters) == ((), (), ())
    assert C.combine([nothing, x]).outputs == (x,)
    with pytest.raises(RuntimeError, match="has no outputs"):
        nothing.output  # noqa: B018
    with pytest.raises(ValueError, match="cannot be evaluated without outputs"):
        nothing.eval()


def test_the_same_output_may_be_combined_twice(x: Any) -> None:
    f = x + 1
    assert C.combine([f, f]).outputs == (f.output, f.output)


def test_blocks_show_as_one_node(x: Any) -> None:
    u = C.placeholder(name="u")
    block = C.as_block(C.relu(C.plus(u, 2)), [(u, x)], "OP", "inst")
    assert str(block) == "inst: OP(x: Tensor[2]) -> Tensor[2]"
    root = block.root_function
    assert root.is_block
    assert root.block_root.op_name == "ReLU"
    assert not root.block_root.is_composite
    assert root.block_root.inputs[0].owner.op_name == "Plus"
    assert root.block_arguments_mapping == ((u, x),)
    assert_array_equal(block.eval({x: ONES}), 3 * ONES)
    with pytest.raises(ValueError, match="is not a block"):
        (x + 1).root_function.block_root  # noqa: B018
    with pytest.raises(ValueError, match=r"as_block: Input\('x'.* is not an argument"):
        C.as_block(C.plus(u, 2), [(x, x)], "OP")


def test_a_graph_is_inside_one_block_only(x: Any) -> None:
    u = C.placeholder(name="u")
    graph = C.plus(u, 2)
    C.as_block(graph, [(u, x)], "OP")
    with pytest.raises(ValueError, match=r"is bound by another block of this graph; make the second block of a clone"):
        C.as_block(graph, [(u, x + 1)], "OP")
    v = C.placeholder(name="v")
    assert_array_equal(C.as_block(graph.clone("share", {u: v}), [(v, x)], "OP").eval({x: ONES}), 3 * ONES)


def test_a_cloned_block_takes_operands_of_other_shapes(x: Any) -> None:
    u, weights, wider = C.placeholder(), C.parameter((2, 3), init=1), C.parameter((5, 3), init=1)
    block = C.as_block(C.times(u, weights), [(u, x)], "OP")
    y = C.input_variable(5)
    assert_array_equal(block.clone("share", {x: y, weights: wider}).eval({y: np.ones((1, 5), np.float32)}), [[5, 5, 5]])


def test_a_block_and_what_is_inside_may_both_be_roots() -> None:
    x, u = C.input_variable(2, needs_gradient=True), C.placeholder()
    block = C.as_block(u * u, [(u, x)], "OP")
    outer, inner = block.output, block.root_function.block_root.output
    for root in (outer, inner):
        state, _ = block.forward({x: ONES}, keep_for_backward=[outer, inner])
        assert_array_equal(block.backward(state, {root: ONES}, [x])[x], 2 * ONES)


def test_a_python_function_can_be_a_block(x: Any) -> None:
    @C.BlockFunction("Twice", "double")
    def twice(value: Any) -> Any:
        return value + value

    assert str(twice(x)) == "double: Twice(x: Tensor[2]) -> Tensor[2]"
    assert_array_equal(twice(twice(x)).eval({x: ONES}), 4 * ONES)


def test_parameters_come_in_the_order_of_the_engine(network: Any) -> None:
    assert [(p.name, p.shape) for p in network.parameters] == [("W", (3, 2)), ("b", (2,)), ("W", (2, 3)), ("b", (3,))]


def test_a_primitive_has_the_parameters_among_its_operands(network: Any) -> None:
    node = network.root_function
    assert [p for p in node.inputs if p.is_parameter] == list(node.parameters)
    assert set(node.parameters) < set(network.parameters)
    assert (network * 2).root_function.parameters == ()
    assert len((network * 2).root_function.constants) == 1
