"""The conformance kit finds what is wrong: each part here breaks its contract in one way."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.common.thresholds import thresholds
from cntk.core.extension import plugins
from cntk.core.extension.identity import identity_of
from cntk.core.operators.elementwise import Elementwise
from cntk.core.operators.op import Traits
from cntk.core.operators.samples import operator, sample
from cntk.core.types.sparse import SparseRows
from cntk.plugins.distributed.data_parallel import DataParallel
from cntk.plugins.ops.activation import Tanh
from cntk.testing import assert_close, check, check_backend, check_learner, check_op, check_progress_writer, kernels
from cntk.testing.ops import METHODS_OF_KINDS


class Double(Elementwise):
    """Twice the operand: right, but for what a subclass breaks."""

    op_name = "Double"
    factor = 2

    def forward(self, ctx: Any, out: Any, *inputs: Any) -> None:
        ctx.xp.multiply(inputs[0], 2, out=out)

    def gradient(self, i: int, ctx: Any, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        ctx.xp.multiply(dy, self.factor, out=dx)


class WrongGradient(Double):
    factor = 2.001


class DependentRows(Double):
    def forward(self, ctx: Any, out: Any, *inputs: Any) -> None:
        super().forward(ctx, out, *inputs)
        out -= out.mean(axis=0)


class DependentInTraining(Double):
    """Each row less the mean of all, in training alone."""

    def forward(self, ctx: Any, out: Any, *inputs: Any) -> None:
        super().forward(ctx, out, *inputs)
        if ctx.training:
            out -= out.mean(axis=0)

    def gradient(self, i: int, ctx: Any, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        super().gradient(i, ctx, dx, dy, y, *inputs)
        if ctx.training:
            dx -= dx.mean(axis=0)


class Varying(DependentInTraining):
    traits = Traits(varies_in_training=True)


class Unordered(Double):
    """Takes the rows of sequences for samples in the user's order."""

    def forward(self, ctx: Any, out: Any, *inputs: Any) -> None:
        super().forward(ctx, out, *inputs)
        if ctx.layout.is_sequence:
            out += ctx.index(ctx.layout, "sequence_of_row")[:, None, None]


class Refusing(Double):
    def infer(self, *inputs: Any) -> Any:
        if len(inputs[0].axes) > 1:
            raise ValueError("only one thing is possible")
        return super().infer(*inputs)


class Refused(Double):
    def infer(self, *inputs: Any) -> Any:
        if len(inputs[0].axes) > 1:
            raise ValueError("takes no sequence axis")
        return super().infer(*inputs)


class Stale(Double):
    """Adds up gradients with the number of rows of the first minibatch."""

    rows = None

    def gradient(self, i: int, ctx: Any, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        self.rows = self.rows or len(dy)
        ctx.xp.multiply(dy, 2 * len(dy) / self.rows, out=dx)


class Remembering(Double):
    """Remembers one step of a recurrence, where backward needs every one."""

    def forward(self, ctx: Any, out: Any, *inputs: Any) -> None:
        ctx.state = inputs[0].copy()
        ctx.xp.square(inputs[0], out=out)

    def gradient(self, i: int, ctx: Any, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        ctx.xp.multiply(dy, 2 * ctx.state, out=dx)


class LookingAhead(Double):
    """Adds up the steps of each sequence that are there, and does not say so."""

    def forward(self, ctx: Any, out: Any, *inputs: Any) -> None:
        out[...] = inputs[0]
        if ctx.layout.is_sequence:
            for sequence in range(ctx.layout.samples):
                out[ctx.layout.sequence_of_row == sequence] = inputs[0][ctx.layout.sequence_of_row == sequence].sum(axis=0)

    def gradient(self, i: int, ctx: Any, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        self.forward(ctx, dx, dy)


class HalfSparse(Double):
    """Twice a dense operand, and once a sparse one."""

    sparse_inputs = (0,)

    def forward(self, ctx: Any, out: Any, *inputs: Any) -> None:
        if isinstance(inputs[0], SparseRows):
            inputs[0].to_dense(ctx.xp, out)
        else:
            super().forward(ctx, out, *inputs)


class AlwaysSingle(Double):
    def infer(self, *inputs: Any) -> Any:
        return super().infer(*inputs).but(dtype=np.float32)


def public(op: type[Double], expected: Callable[..., Any] | None = None, sequences: Any = "any") -> Callable[..., Any]:
    @operator(sample((3, 2), expected=expected, sequences=sequences))
    def double(x: Any, name: str = "") -> Any:
        """Twice the operand.

        >>> double(1.0).eval()
        """
        return op()(x, name=name)

    return double


@pytest.mark.parametrize(("op", "sequences"), [(Double, "any"), (Varying, "any"), (Refused, "none")])
def test_a_conforming_operator_passes(op: type[Double], sequences: str) -> None:
    check_op(public(op, lambda x: 2 * x, sequences))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (public(Double, lambda x: 2.001 * x), r"double\(\(3, 2\)\) in float"),
        (public(WrongGradient), r"double\(\(3, 2\)\): gradient of operand 0 along"),
        (public(DependentRows), r"sample 0 gives another result in a minibatch of the samples \[0\]"),
        (public(Stale), r"gradient of operand 0 for a minibatch of the samples \[2, 1, 0\]"),
        (public(Unordered, lambda x: 2 * x), r"double\(sequence \(3, 2\)\) in float64"),
        (public(Remembering), r"double\(sequence \(3, 2\)\) in a recurrence over past_value through operand 0: gradient"),
        (public(LookingAhead), r"double\(sequence \(3, 2\)\) in a recurrence over past_value through operand 0: sequence 0"),
        (public(HalfSparse), r"double\(sparse \(3, 2\)\)"),
        (public(DependentInTraining), r"double\(\(3, 2\)\): results in training depend on what else is in a minibatch"),
        (public(Refused), "is refused, which its sample does not declare: .*takes no sequence axis"),
        (public(Refusing, None, "none"), "is refused, but not for its sequence axis: .*only one thing is possible"),
        (public(Double, None, "none"), "is not refused, as its sample declares: sequences='none'"),
        (public(AlwaysSingle), "the result is of type float32"),
        (abs, "abs carries no sample"),
    ],
    ids=[
        "values",
        "gradient",
        "rows",
        "gradients of minibatches",
        "sequences",
        "state",
        "whole sequences",
        "sparse operands",
        "rows in training",
        "undeclared refusal",
        "no sequences",
        "sequences that should be refused",
        "element type",
        "no sample",
    ],
)
def test_what_is_wrong_with_an_operator_is_found(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_op(function)


class Biased:
    """A kernel that is a little off where there is enough to do."""

    @staticmethod
    def forward(op: Any, ctx: Any, out: Any, *inputs: Any) -> None:
        op.forward(ctx, out, *inputs)
        if out.size >= thresholds.pooling_compiled:
            out += 0.5

    @staticmethod
    def backward(op: Any, ctx: Any, grad: Any, grads: Any, out: Any, *inputs: Any) -> None:
        op.backward(ctx, grad, grads, out, *inputs)


@pytest.mark.parametrize("rows", [3, -(-thresholds.pooling_compiled // 6)], ids=["whatever the size", "where there is much to do"])
def test_a_wrong_kernel_is_found(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if rows > 3:
        monkeypatch.setattr(kernels, "all_set_to", lambda size: contextlib.nullcontext())
    plugins.kernels.add((identity_of(Double), C.device.use_default_device().backend.name), Biased, "test")
    try:
        with pytest.raises(AssertionError, match=rf"double\(\(3, 2\)\) with {rows} rows, by a kernel"):
            check_op(public(Double, lambda x: 2 * x))
    finally:
        plugins.kernels.remove_all_of("test")


def test_an_operator_without_example_is_found() -> None:
    function = public(Double)
    function.__doc__ = "Twice the operand."
    with pytest.raises(AssertionError, match="no example"):
        check_op(function)


@pytest.mark.parametrize("name", plugins.learners.names())
def test_learners_conform(name: str) -> None:
    momentum = C.momentum_schedule(0.5)
    arguments: dict[str, tuple[Any, ...]] = {
        "adam": (momentum,),
        "fsadagrad": (momentum,),
        "momentum_sgd": (momentum,),
        "nesterov": (momentum,),
        "rmsprop": (0.9, 1.2, 0.7, 10.0, 1e-3),
    }
    rates = {"adadelta": 100.0, "universal": 1.0}  # of universal, whose graph has a rate of its own, it is what learning_rate() shows

    def made(parameters: Any, rate: Any) -> Any:
        if name == "universal":
            pairs = functools.partial(zip, strict=True)
            return C.universal(lambda held, slopes: C.combine([C.assign(p, p - 0.005 * g) for p, g in pairs(held, slopes)]), parameters)
        return getattr(C.learners, name)(parameters, rate, *arguments.get(name, ()))

    check_learner(made, rates.get(name, 0.02))


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (lambda parameters, lr: C.sgd(parameters, C.learning_parameter_schedule(-0.02)), "learning_rate"),
        (lambda parameters, lr: C.sgd([C.parameter(3)], lr), "parameters are not those"),
    ],
)
def test_what_is_wrong_with_a_learner_is_found(factory: Callable[..., Any], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_learner(factory)


def test_a_learner_that_does_not_learn_is_found() -> None:
    class Lazy(C.learners.Learner):  # type: ignore[name-defined,misc]
        def step(self, xp: Any, w: Any, g: Any, states: Any, work: Any) -> None:
            """Do nothing."""

    from cntk.learners.options import LearnerOptions

    with pytest.raises(AssertionError, match="after 60 steps"):
        check_learner(lambda parameters, lr: Lazy(parameters, lr, LearnerOptions()))


@pytest.mark.parametrize("tells", [True, False])
def test_a_learner_whose_updates_evaluation_does_not_see_is_found(tells: bool) -> None:
    class Secret(C.UserLearner):
        """Writes to the parameters' arrays."""

        def update(self, gradient_values: Any, training_sample_count: int, sweep_end: bool) -> bool:
            for parameter in self.parameters():
                gradient = parameter.backend.asarray(gradient_values[parameter].asarray(), parameter.dtype)
                parameter.array[...] -= self.learning_rate() / training_sample_count * gradient
                parameter.updates += tells
            return True

    def factory(parameters: Any, schedule: Any) -> Any:
        return Secret(parameters, schedule)

    if tells:
        check_learner(factory)
    else:
        with pytest.raises(AssertionError, match=r"evaluation does not see its updates; .* parameter.updates \+= 1"):
            check_learner(factory)


class Forgetful(C.UserLearner):
    """Momentum that checkpoints do not have, from an update on."""

    begin_at = 0

    def __init__(self, parameters: Any, schedule: Any) -> None:
        super().__init__(parameters, schedule)
        self.smoothed = [np.zeros_like(parameter.value) for parameter in self.parameters()]
        self.updates = 0

    def update(self, gradient_values: Any, training_sample_count: int, sweep_end: bool) -> bool:
        self.updates += 1
        for parameter, smoothed in zip(self.parameters(), self.smoothed, strict=True):
            smoothed *= 0.5 if self.updates > self.begin_at else 0
            smoothed += np.asarray(gradient_values[parameter].asarray())
            parameter.value = parameter.value - self.learning_rate() / training_sample_count * smoothed
        return True


class ForgetfulLater(Forgetful):
    begin_at = 20


class Sharing(Forgetful):
    """Its checkpoints are what it goes on with."""

    def create_checkpoint(self) -> dict[str, Any]:
        return {**super().create_checkpoint(), "smoothed": self.smoothed}

    def restore_from_checkpoint(self, checkpoint: Any) -> None:
        super().restore_from_checkpoint(checkpoint)
        self.smoothed = [array.copy() for array in checkpoint["smoothed"]]


class Unwritable(Forgetful):
    def create_checkpoint(self) -> dict[str, Any]:
        return {**super().create_checkpoint(), "rule": self.update}


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (Forgetful, "from its checkpoint of update 3 gives"),
        (ForgetfulLater, "from its checkpoint of update 40 gives"),
        (Sharing, "create_checkpoint returns copies of all that it keeps"),
        (Unwritable, "its checkpoint cannot be written"),
    ],
)
def test_state_that_checkpoints_lack_is_found(factory: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_learner(factory)


def test_what_is_no_progress_writer_is_found() -> None:
    with pytest.raises(AssertionError, match="this is a list"):
        check_progress_writer(list)


@pytest.mark.parametrize("name", plugins.progress_writers.names())
def test_progress_writers_conform(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "MLflowProgressWriter":
        pytest.importorskip("mlflow", reason="MLflow is not installed: pip install opencntk[mlflow]")
        monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        monkeypatch.setenv("MLFLOW_TRACKING_URI", "mlruns")  # within the folder that the check makes
    arguments = {"TrainingSummaryProgressCallback": (4, lambda *summary: None)}
    check_progress_writer(lambda: plugins.progress_writers.get(name)(*arguments.get(name, ())))


def test_a_conforming_backend_passes() -> None:
    check_backend(NumpyBackend)


class Forgetful(NumpyBackend):
    def uniform(self, out: Any, seed: int, draw: int) -> None:
        super().uniform(out, seed, 0)


class Sharing(NumpyBackend):
    def to_numpy(self, array: Any) -> Any:
        return array


class Absent(NumpyBackend):
    def unavailable(self) -> str:
        return "no driver; install one"


@pytest.mark.parametrize(
    ("backend", "message"), [(Forgetful, "the same for two draws"), (Sharing, "shares memory"), (Absent, "no driver; install one")]
)
def test_what_is_wrong_with_a_backend_is_found(backend: type[NumpyBackend], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_backend(backend)


def test_shapes_must_agree() -> None:
    with pytest.raises(AssertionError, match="got an array of shape"):
        assert_close(np.ones((2, 1)), np.ones((2,)), "here")


@pytest.mark.parametrize("method", METHODS_OF_KINDS)
def test_a_method_of_a_kind_needs_the_kind(method: str) -> None:
    cls = type("Kindless", (Tanh,), {"op_name": f"Kindless{method}", method: lambda *_: None})

    @operator(sample((2,)))
    def kindless(x: Any, name: str = "") -> Any:
        """>>> C.tanh([0]).eval()"""
        return cls()(x, name=name)

    with pytest.raises(
        AssertionError, match=rf"kindless.*Kindless has the method {method}, but is not a {METHODS_OF_KINDS[method].__name__}"
    ):
        check_op(kindless)


class Unchecked:
    """Neither kind of plugin."""


@pytest.mark.parametrize(
    ("plugin", "kind"),
    [
        (C.tanh, "check_op"),
        (C.sgd, "check_learner"),
        (lambda parameters, rate: None, "check_learner"),
        (DataParallel, "check_strategy"),
        (lambda learner, transport: None, "check_strategy"),
        (NumpyBackend, "check_backend"),
        (lambda: C.logging.TrainingSummaryProgressCallback(4, print), "check_progress_writer"),
        (lambda: C.io.CTFDeserializer("none.ctf", C.io.StreamDefs(x=C.io.StreamDef(field="x", shape=1))), "check_deserializer"),
    ],
)
def test_a_plugin_is_checked_as_what_it_is(plugin: Any, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = []
    module = import_module("cntk.testing.check")
    for name in [name for name in vars(module) if name.startswith("check_")]:
        monkeypatch.setattr(module, name, lambda given, name=name: checked.append((name, given)))
    module.check(plugin)
    assert checked == [(kind, plugin)]


@pytest.mark.parametrize("plugin", [Unchecked, lambda: 3, "softcap"], ids=["class", "what it makes", "name"])
def test_what_is_no_plugin_is_refused(plugin: Any) -> None:
    with pytest.raises(TypeError, match="check: expected the function of an operator"):
        check(plugin)
