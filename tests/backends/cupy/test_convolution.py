"""The kernel of convolution: what it hands to cuDNN computes what the operators do, and which engines it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from standin.cudnn import ENGINES
from standin.cudnn import Cudnn as StandIn
from standin.host_backend import STREAM, compare, host_device, results, with_libraries

import cntk as C
from cntk.backends.cupy.cudnn import Kind
from cntk.core.extension import compiled
from cntk.testing import check_op

FORWARD, FILTERS, OPERAND = (
    Kind.OPERATION_CONVOLUTION_FORWARD,
    Kind.OPERATION_CONVOLUTION_BACKWARD_FILTER,
    Kind.OPERATION_CONVOLUTION_BACKWARD_DATA,
)
EACH = Kind.OPERATION_POINTWISE


pytestmark = pytest.mark.usefixtures("on_host")


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    made = StandIn()
    with with_libraries(monkeypatch, cudnn=made):
        yield made


def numbers(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)


def network(filters: tuple[int, ...], operand: tuple[int, ...], follows: str = "", **options: Any) -> Callable[[Any], Any]:
    """A convolution, and what follows it."""

    def build(dtype: Any) -> Any:
        x = C.input_variable(operand, dtype=dtype, needs_gradient=True)
        around = {"auto_padding": [False, *(True,) * (len(operand) - 1)], **options}
        y = C.convolution(C.parameter(init=numbers(*filters, seed=1).astype(dtype)), x, **around)
        if "+" in follows:
            y = y + C.parameter(init=numbers(filters[0], *(1,) * (len(y.shape) - 1), seed=2).astype(dtype))
        if "relu" in follows:
            y = C.relu(y)
        return C.reduce_sum(y * y)

    return build


@pytest.mark.parametrize("function", [C.convolution, C.convolution_transpose])
def test_all_kinds_of_convolutions(standin: StandIn, function: Any) -> None:
    with host_device():
        check_op(function)
    assert {kind for _, kinds in standin.executed for kind in kinds} == {FORWARD, FILTERS, OPERAND}


axes = st.lists(
    st.tuples(st.integers(1, 7), st.integers(1, 4), st.integers(1, 3), st.integers(1, 2), st.booleans()), min_size=1, max_size=3
)


@settings(max_examples=40, deadline=None)
@given(axes=axes, groups=st.sampled_from([1, 1, 2, 3]), channels=st.integers(1, 3), maps=st.integers(1, 2), samples=st.sampled_from([1, 3]))
def test_windows_of_any_geometry(axes: Any, groups: int, channels: int, maps: int, samples: int) -> None:
    axes = [(max(dim, (kernel - 1) * dilation + 1), kernel, stride, dilation, pad) for dim, kernel, stride, dilation, pad in axes]
    dims, kernel, strides, dilation, padding = zip(*axes, strict=True)
    build = network(
        (groups * maps, channels, *kernel),
        (groups * channels, *dims),
        strides=(1, *strides),
        dilation=(1, *dilation),
        auto_padding=[False, *padding],
        groups=groups,
    )
    with pytest.MonkeyPatch.context() as monkeypatch, with_libraries(monkeypatch, cudnn=StandIn()):
        compare(build, np.float64, [numbers(samples, groups * channels, *dims, dtype=np.float64)])


@pytest.mark.parametrize("dtype", [C.bfloat16, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("follows", ["", "+", "relu", "+ relu"])
def test_what_follows_is_part_of_the_graph(standin: StandIn, on_host: list[str], follows: str, dtype: Any) -> None:
    build = network((4, 3, 3, 3), (3, 6, 5), follows)
    compare(build, dtype, [numbers(2, 3, 6, 5, dtype=dtype)])
    graphs = [kinds for _, kinds in standin.executed]
    assert graphs == [[FORWARD] + [EACH] * len(follows.split()), [FILTERS], [OPERAND]]
    assert len(on_host) == {"": 0, "relu": 1, "+": 2, "+ relu": 2}[follows]  # launches for what follows: a bias takes one to add up parts


def test_what_follows_is_computed_apart_where_no_engine_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    standin = StandIn(refuses=lambda kinds: len(kinds) > 1)
    with with_libraries(monkeypatch, cudnn=standin):
        compare(network((4, 3, 3, 3), (3, 6, 5), "+ relu"), np.float32, [numbers(2, 3, 6, 5)])
    assert [kinds for _, kinds in standin.executed] == [[FORWARD], [FILTERS], [OPERAND]]


@pytest.mark.parametrize("kind", [FORWARD, FILTERS, OPERAND])
def test_operators_compute_what_no_engine_does(monkeypatch: pytest.MonkeyPatch, kind: Kind) -> None:
    standin = StandIn(refuses=lambda kinds: kind in kinds)
    with with_libraries(monkeypatch, cudnn=standin):
        compare(network((4, 3, 3, 3), (3, 6, 5), "+ relu"), np.float32, [numbers(2, 3, 6, 5)])
    assert {kind for _, kinds in standin.executed for kind in kinds} >= {FILTERS, OPERAND} - {kind} if kind is not FORWARD else True


@pytest.mark.parametrize(("math", "dtype", "engine"), [("ieee", np.float32, 3), ("tf32", np.float32, 2), ("ieee", np.float16, 2)])
def test_engines_that_round_or_vary_are_passed_over(standin: StandIn, math: str, dtype: Any, engine: int) -> None:
    C.device.set_math(math)
    with host_device():
        results(network((4, 3, 3, 3), (3, 6, 5)), dtype, [numbers(2, 3, 6, 5, dtype=dtype)])
    assert {chosen for chosen, _ in standin.executed} == {engine}
    assert engine < len(ENGINES)


@pytest.mark.parametrize("follows", ["", "+ relu"])
def test_engines_that_are_timed_compute_the_same(standin: StandIn, follows: str) -> None:
    C.device.set_benchmark(True)
    compare(network((4, 3, 3, 3), (3, 6, 5), follows), np.float16, [numbers(2, 3, 6, 5, dtype=np.float16)])
    assert len(standin.executed) == 3 * (2 + 1)  # two engines are timed for each direction, and one is taken


def test_a_step_that_comes_again_only_executes(standin: StandIn) -> None:
    with host_device() as device:
        f = network((4, 3, 3, 3), (3, 6, 5), "+ relu")(np.float32)
        trainer = C.Trainer(f, (f, None), [C.sgd(f.parameters, 0.01)])
        data = {f.arguments[0]: numbers(2, 3, 6, 5)}
        trainer.train_minibatch(data, device=device)
        standin.calls.clear()
        for _ in range(3):
            trainer.train_minibatch(data, device=device)
    assert [name for name, _ in standin.calls] == ["cudnnSetStream", "cudnnBackendExecute"] * 9
    assert set(standin.streams) == {STREAM}


def test_minibatches_of_other_sizes_have_plans_of_their_own(standin: StandIn) -> None:
    with host_device():
        f = network((4, 3, 3, 3), (3, 6, 5), "relu")(np.float32)
        x = numbers(3, 3, 6, 5)
        alone = [f.eval({f.arguments[0]: x[: at + 1]}) for at in range(3)]
    np.testing.assert_allclose(alone[0], alone[2][:1], rtol=1e-5)


def test_filters_over_four_axes_are_left_to_the_operator(standin: StandIn) -> None:
    compare(network((2, 1, 2, 2, 2, 2), (1, 3, 3, 3, 3)), np.float32, [numbers(2, 1, 3, 3, 3, 3)])
    assert standin.executed == []


def test_without_the_library_operators_compute_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "switched_off", {})
    with with_libraries(monkeypatch), pytest.warns(RuntimeWarning, match="convolutions and pooling by cuDNN are switched off"):
        compare(network((4, 3, 3, 3), (3, 6, 5), "+ relu"), np.float32, [numbers(2, 3, 6, 5)])
