"""Devices: those of any backend, what lives on them, and that nothing is mixed."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.common import switches
from cntk.core.extension import device as devices
from cntk.core.extension import plugins
from cntk.core.extension.device import DeviceDescriptor, DeviceKind, default_device
from cntk.core.extension.hookspecs import Register, hookimpl
from cntk.core.extension.registry import Registry
from cntk.core.run.evaluate import program_for
from cntk.testing import check_backend, isolated


class Twin(NumpyBackend):
    """NumPy on two devices."""

    name = "twin"

    def device_count(self) -> int:
        return 2


class Graphics(Twin):
    """What a backend for GPUs looks like from outside."""

    name = "graphics"
    kind = DeviceKind.GPU

    def properties(self) -> Any:
        return f"properties of {self.device_id}"


class Missing(NumpyBackend):
    """A backend that cannot be used here."""

    name = "missing"
    kind = DeviceKind.GPU

    def unavailable(self) -> str:
        return "there is no driver"


class Misnamed(NumpyBackend):
    """A backend that is registered under another name than its own."""


class Provider:
    """A plugin that has these backends."""

    def __init__(self, **backends: type) -> None:
        self._backends = backends

    @hookimpl
    def cntk_register_backends(self, register: Register) -> None:
        for name, backend in self._backends.items():
            register(name, backend)


@pytest.fixture
def twins() -> Iterator[tuple[DeviceDescriptor, DeviceDescriptor]]:
    """Two devices of one backend that is not built in."""
    plugins.register_plugin(Provider(twin=Twin, misnamed=Misnamed), "twins")
    yield devices.device("twin", 0), devices.device("twin", 1)
    plugins.unregister_plugin("twins")


Twins = tuple[DeviceDescriptor, DeviceDescriptor]


def test_devices_of_any_backend_are_found_by_name_and_number(twins: Twins) -> None:
    first, second = twins
    assert C.device.device("twin") == first != second
    assert C.device.all_devices() == (first, second, C.cpu())
    assert (first.id(), second.id(), second.type(), second.is_locked()) == (0, 1, DeviceKind.CPU, False)
    assert (str(first), str(second), str(C.device.device("numpy"))) == ("twin[0]", "twin[1]", "CPU")
    assert C.device.device("numpy") == C.cpu()
    assert pickle.loads(pickle.dumps(second)) == second


def test_each_device_has_one_instance_of_its_backend(twins: Twins) -> None:
    first, second = twins
    assert isinstance(first.backend, Twin)
    assert first.backend is C.device.device("twin", 0).backend is not second.backend
    assert (first.backend.device_id, second.backend.device_id) == (0, 1)
    assert devices.device_of(second.backend) == second


@pytest.mark.parametrize(
    ("name", "number", "match"),
    [
        ("abacus", 0, "no backend is called 'abacus'; there are"),
        ("numpy", 1, "backend 'numpy' has no device 1; its devices are numbered from 0 to 0"),
        ("twin", -1, "backend 'twin' has no device -1"),
        ("misnamed", 0, "backend 'misnamed' calls itself 'numpy'"),
    ],
)
def test_what_is_no_device_is_refused(name: str, number: int, match: str, twins: Twins) -> None:
    with pytest.raises(ValueError, match=match):
        C.device.device(name, number)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: C.device.try_set_default_device("gpu"), r"try_set_default_device: expected a device such as .*, got str 'gpu'"),
        (lambda: C.device.set_excluded_devices(["gpu"]), "set_excluded_devices: expected a device"),
        (lambda: C.device.get_gpu_properties(0), "get_gpu_properties: expected a device .*, got int 0"),
        (lambda: C.device.gpu("a"), "gpu: device_id must be a whole number, got str 'a'"),
        (lambda: (C.input_variable(1) + 1).eval(np.ones((1, 1), np.float32), device="gpu"), "device: expected a device"),
    ],
)
def test_what_is_no_device_at_all_is_a_type_error(call: Any, match: str) -> None:
    with pytest.raises(TypeError, match=match):
        call()
    assert C.use_default_device() == C.device.cpu()


def test_a_backend_that_is_taken_back_leaves_no_device(twins: Twins) -> None:
    plugins.unregister_plugin("twins")
    assert C.device.all_devices() == (C.cpu(),)
    with pytest.raises(ValueError, match="no backend is called 'twin'"):
        C.device.device("twin")


def test_gpus_are_the_devices_of_a_backend_for_gpus() -> None:
    with pytest.raises(ValueError, match=r"gpu\(0\): backend 'cupy' cannot be used here"):
        C.gpu(0)
    plugins.register_plugin(Provider(graphics=Graphics, missing=Missing), "graphics")
    try:
        assert C.gpu(1) == C.device.device("graphics", 1) == DeviceDescriptor(DeviceKind.GPU, 1)
        assert str(C.gpu(1)) == "GPU[1]"
        assert C.device.all_devices() == (C.gpu(0), C.gpu(1), C.cpu())
        assert C.device.get_gpu_properties(C.gpu(1)) == "properties of 1"
        with pytest.raises(ValueError, match=r"gpu\(2\): backend 'graphics' has no device 2"):
            C.gpu(2)
    finally:
        plugins.unregister_plugin("graphics")
    with pytest.raises(ValueError, match="CPU is not a GPU"):
        C.device.get_gpu_properties(C.cpu())


def test_a_gpu_that_cannot_be_used_says_why() -> None:
    plugins.register_plugin(Provider(missing=Missing), "missing")
    try:
        assert C.device.all_devices() == (C.cpu(),)
        with pytest.raises(ValueError, match=r"gpu\(0\): .*backend 'missing' cannot be used here: there is no driver"):
            C.gpu(0)
    finally:
        plugins.unregister_plugin("missing")


def test_programs_run_where_they_are_asked_to(twins: Twins) -> None:
    x = C.input_variable(2)
    f = C.exp(x)
    for device in (*twins, C.cpu()):
        value = f.eval({x: [[0, 1]]}, device=device, as_numpy=False)
        assert value.device == device
        np.testing.assert_allclose(value.asarray(), [[1, np.e]], rtol=1e-6)
    assert {program.backend for program, _ in f.__dict__["_programs"].values()} == {device.backend for device in (*twins, C.cpu())}


def test_devices_are_not_mixed(twins: Twins) -> None:
    first, second = twins
    x = C.input_variable(2)
    w = C.parameter(2, init=3, device=first)
    assert w.device == first
    f = w * x
    assert f.eval({x: [[1, 2]]}, device=first).tolist() == [[3, 6]]
    for device in (second, C.cpu(), None):
        with pytest.raises(ValueError, match=r"Parameter\('Parameter\d+', \[\], \[2\]\) lives on twin\[0\], but the program is to run on"):
            f.eval({x: [[1, 2]]}, device=device)
        with pytest.raises(ValueError, match=r"lives on twin\[0\]"):
            f.grad({x: [[1, 2]]}, wrt=[w], device=device)
    with pytest.raises(ValueError, match=r"Constant\(.*\) lives on CPU, but the program is to run on twin\[1\]; run it where the model is"):
        (x * C.constant(2)).eval({x: [[1, 2]]}, device=second)


def test_values_are_transferred(twins: Twins) -> None:
    first, second = twins
    w = C.parameter(2, init=3, device=first)
    other = C.parameter(2, init=w.value, device=second)
    other.value = w.value * 2
    assert (w.value.tolist(), other.value.tolist(), other.device) == ([3, 3], [6, 6], second)
    sparse = C.Value.one_hot([0, 1], 2, device=second)
    x = C.input_variable(2, is_sparse=True)
    with default_device(first):
        assert C.times(x, C.constant(np.eye(2))).eval({x: sparse}).tolist() == [[1, 0], [0, 1]]


def test_training_on_a_device_needs_the_model_there(twins: Twins) -> None:
    x, y = C.input_variable(2), C.input_variable(1)
    data = {x: np.ones((4, 2), np.float32), y: np.zeros((4, 1), np.float32)}
    with default_device(twins[1]):
        model = C.layers.Dense(1, init=1)(x)
        trainer = C.Trainer(model, C.squared_error(model, y), [C.sgd(model.parameters, 0.1)])
        trainer.train_minibatch(data)
    first = trainer.previous_minibatch_loss_average
    trainer.train_minibatch(data, device=twins[1])
    assert trainer.previous_minibatch_loss_average < first
    with pytest.raises(ValueError, match=r"lives on twin\[1\], but the program is to run on CPU"):
        trainer.train_minibatch(data)


def test_models_are_loaded_onto_a_device(twins: Twins, tmp_path: Any) -> None:
    x = C.input_variable(2)
    C.layers.Dense(1, init=1)(x).save(tmp_path / "model")
    model = C.load_model(tmp_path / "model", device=twins[1])
    assert {parameter.device for parameter in model.parameters} == {twins[1]}
    assert model.eval([[1, 2]], device=twins[1]).tolist() == [[3]]


def test_the_default_device_is_chosen_as_in_cntk(twins: Twins) -> None:
    switches.default_device_is_in_use.value = False
    first, second = twins
    C.device.set_excluded_devices([second])
    assert not C.try_set_default_device(second)
    assert C.try_set_default_device(first)
    assert C.use_default_device() == first
    assert not C.try_set_default_device(C.cpu())
    assert C.try_set_default_device(first)
    assert C.parameter(1).device == first


def test_check_backend_asks_for_the_class() -> None:
    with pytest.raises(TypeError, match="check_backend: expected the class that is registered, got an object of it"):
        check_backend(Twin())  # type: ignore[arg-type]
    check_backend(Twin)


@pytest.mark.parametrize(
    ("method", "match"),
    [
        ("load", "load does not broadcast and convert"),
        ("on_device", "on_device changes the data"),
        ("device_count", r"device_count\(\) is 0"),
        ("__init__", "its class does not take the number of a device"),
    ],
)
def test_check_backend_finds_what_does_not_conform(method: str, match: str) -> None:
    wrong = {
        "load": lambda *_: None,
        "on_device": lambda _, *data: [one + 1 for one in data],
        "device_count": lambda _: 0,
        "__init__": lambda _: None,
    }[method]
    with pytest.raises(AssertionError, match=match):
        check_backend(type("Wrong", (NumpyBackend,), {method: wrong}))


def test_set_benchmark_keeps_programs_apart() -> None:
    with isolated():
        f = 2 * C.constant([1])
        compiled = []
        for enable in (False, True, False):
            C.device.set_benchmark(enable)
            compiled.append(program_for(f, f.outputs))
        assert compiled[0] is compiled[2] is not compiled[1]


def test_set_math_keeps_programs_apart_and_refuses_other_modes() -> None:
    with isolated():
        f = 2 * C.constant([1])
        compiled = []
        for mode in ("ieee", "tf32", "ieee"):
            C.device.set_math(mode)
            compiled.append(program_for(f, f.outputs))
        assert compiled[0] is compiled[2] is not compiled[1]
        with pytest.raises(ValueError, match="set_math: expected one of 'ieee', 'tf32', got 'fast'"):
            C.device.set_math("fast")


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three backends of GPUs: two that anybody may use, and one for who asks for it by name."""
    kinds = {name: type(name, (Graphics,), {"name": name}) for name in ("abacus", "cupy", "slides")}
    kinds["slides"].for_tests = True  # type: ignore[attr-defined]
    monkeypatch.delenv(devices.GPU_CHOICE, raising=False)
    monkeypatch.setattr(plugins, "backends", Registry("backend"))
    for name, backend in {**kinds, "numpy": NumpyBackend}.items():
        plugins.backends.add(name, backend, "tests")


@pytest.mark.parametrize(("chosen", "name"), [("", "cupy"), ("abacus", "abacus"), (" slides ", "slides")])
def test_the_environment_chooses_the_backend_of_gpus(chosen: str, name: str, cards: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CNTK_GPU_BACKEND", chosen)
    assert C.device.gpu(1).backend.name == name
    assert (C.device.gpu(1).id(), C.device.gpu(1).type()) == (1, DeviceKind.GPU)


@pytest.mark.parametrize(
    ("chosen", "match"),
    [
        ("cuda", "CNTK_GPU_BACKEND is 'cuda': no backend is called 'cuda'; there are .*'abacus'.*; correct or unset it"),
        ("numpy", "CNTK_GPU_BACKEND is 'numpy', which computes on the CPU; name a backend of GPUs or unset it"),
    ],
)
def test_a_wrong_choice_is_explained(chosen: str, match: str, cards: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CNTK_GPU_BACKEND", chosen)
    with pytest.raises(ValueError, match=match):
        C.device.gpu(0)


def test_a_backend_for_who_names_it_is_not_chosen_by_itself(cards: None) -> None:
    for name in ("abacus", "cupy"):
        plugins.backends.remove(name, "tests")
    with pytest.raises(ValueError, match="no GPU backend is installed"):
        C.device.gpu(0)
