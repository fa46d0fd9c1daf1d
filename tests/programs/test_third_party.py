"""Packages of others: really built, really installed beside the wheel in an environment of its own, and used by name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

REQUIREMENTS = ("numpy>=2.0", "pluggy>=1.5")
SOURCES = ("api", "core", "plugins", "backends", "readers", "learners", "packaging", "pyproject.toml", "README.md", "LICENSE")

TRAINING = """
import sys
import numpy as np
import cntk as C

C.cntk_py.set_fixed_random_seed(1)
x, y = C.input_variable(2), C.input_variable(1)
w, b = C.parameter((2, 1), init=0.1), C.parameter((1,))
model = C.swish(C.times(x, w) + b)
learner = C.learners.lion(model.parameters, C.learning_parameter_schedule(0.02))
trainer = C.Trainer(model, C.squared_error(model, y), [learner], [C.logging.CSVWriter(sys.argv[1], freq=10)])
data = np.random.default_rng(1).normal(size=(32, 2)).astype(np.float32)
for _ in range(50):
    trainer.train_minibatch({x: data, y: np.maximum(data[:, :1], 0)})
print("trained", C.ops.swish is C.swish)
"""

CONFORMANCE = """
import sys
import cntk as C
from cntk.testing import check_learner, check_op, check_progress_writer

check_op(C.swish)
check_learner(C.learners.lion)
check_progress_writer(lambda: C.logging.CSVWriter(sys.argv[1]))
print("conforms")
"""

SAVING = """
import pickle, sys
import numpy as np
import cntk as C

C.cntk_py.set_fixed_random_seed(1)
folder, epochs = sys.argv[1], int(sys.argv[2])
x, y = C.input_variable(2, name="x"), C.input_variable(1)
w = C.parameter((2, 1), init=0.1)
model = C.swish(C.times(x, w), 1.5, name="model")
data = np.random.default_rng(1).normal(size=(32, 2)).astype(np.float32)
config = C.CheckpointConfig(folder + "/checkpoint", frequency=32)
learner = C.learners.lion([w], C.learning_parameter_schedule(0.02))
loss = C.squared_error(model, y)
loss.train((data, np.maximum(data[:, :1], 0)), parameter_learners=[learner], minibatch_size=8, max_epochs=epochs, callbacks=[config])
model.save(folder + "/model.dnn")
with open(folder + "/model.pickle", "wb") as file:
    pickle.dump(model.clone("clone"), file)
print(model.eval({x: data[:2]}).tolist())
"""

LOADING = """
import pickle, sys
import numpy as np
import cntk as C

folder = sys.argv[1]
data = np.random.default_rng(1).normal(size=(32, 2)).astype(np.float32)
loaded = C.load_model(folder + "/model.dnn")
print("cntk_extras.swish" in sys.modules, loaded.root_function.op.beta, loaded.model.op_name)
print(loaded.eval({loaded.x: data[:2]}).tolist())
with open(folder + "/model.pickle", "rb") as file:
    pickled = pickle.load(file)
print(pickled.eval({pickled.x: data[:2]}).tolist())
"""

WITHOUT = """
import sys
import cntk as C

try:
    C.load_model(sys.argv[1] + "/model.dnn")
except RuntimeError as error:
    print(str(error).partition("cannot be read: ")[2])
print("cntk_extras.swish" in sys.modules)
"""

NATIVE = """
import cntk as C
from cntk.ops.functions import native_user_function, register_native_user_function

register_native_user_function("by plugin", "Extras.Native-1.0", "CreateGain")
register_native_user_function("by module", "cntk_extras.gain", "Gain")
x = C.input_variable(2, needs_gradient=True)
total = sum((native_user_function(op, [x], {"gain": gain}, op) for op, gain in (("by plugin", 2), ("by module", 3))), x)
print(total.eval([[1, 2]]).tolist(), total.grad([[1, 2]]).tolist(), total.find_by_name("by plugin").attributes)
"""

STRATEGY = """
import numpy as np
import cntk as C
from cntk.core.extension import plugins
from cntk.testing import check_strategy

top_k = plugins.distributed_strategies.get("top_k")
check_strategy(lambda learner, transport: top_k(learner, transport, share=0.5))
x, w = C.input_variable(2), C.parameter(2)
learner = C.distributed.distributed_learner("top_k", C.sgd([w], 1.0), share=0.5)
trainer = C.Trainer(None, C.reduce_sum(w * x), learner)
print([(trainer.train_minibatch({x: np.array([[1, 2]], np.float32)}), w.value.tolist()) for _ in range(3)])
"""

CONVOLUTION = """
import numpy as np
import cntk as C
from cntk.core.extension import plugins

x = C.input_variable((16, 40, 40))
z = C.convolution(np.ones((16, 16, 5, 5), np.float32), x, auto_padding=[False, True, True])
data = np.ones((32, 16, 40, 40), np.float32)
print(z.eval({x: data})[3, 5, :2, 7], any("dnnl" in line for line in open("/proc/self/maps")))
"""

BACKEND = """
import numpy as np
import cntk as C
from cntk.testing import check_backend, check_op
from cntk_counting.backend import CountingBackend

check_backend(CountingBackend)
first, second = (C.device.device("counting", number) for number in range(2))
for name in ("relu", "softmax", "times", "dropout"):
    check_op(getattr(C, name), second)


def losses(device):
    C.cntk_py.set_fixed_random_seed(1)
    C.device.try_set_default_device(device)
    x, y = C.input_variable(3), C.input_variable(2)
    model = C.layers.Sequential([C.layers.Dense(8, C.tanh), C.layers.Dense(2)])(x)
    loss = C.cross_entropy_with_softmax(model, y)
    trainer = C.Trainer(model, loss, [C.adam(model.parameters, 0.05, 0.9, unit_gain=False)])
    data = np.random.default_rng(1).normal(size=(64, 3)).astype(np.float32)
    labels = np.eye(2, dtype=np.float32)[(data.sum(axis=1) > 0).astype(int)]
    assert {parameter.device for parameter in model.parameters} == {device}
    found = [(trainer.train_minibatch({x: data, y: labels}), trainer.previous_minibatch_loss_average)[1] for _ in range(60)]
    assert not np.isnan(model.parameters[0].value).any()
    return found


C.device.device("numpy")
C.cntk_py.always_allow_setting_default_device()
found = [losses(device) for device in (C.cpu(), first, second)]
assert np.allclose(found[0], found[1], rtol=1e-5) and found[1] == found[2], found
print(found[1][-1] < found[1][0] / 2, first.backend.sent, second.backend.sent > first.backend.sent > 0, first.backend.fetched > 0)
print(C.device.all_devices())
"""

USE_WITHOUT = "import cntk as C; print(C.relu([-1.0, 2.0]).eval())"


class Environment:
    """A virtual environment that holds opencntk's wheel and what it needs to run, and nothing of the checkout."""

    def __init__(self, folder: Path) -> None:
        self.python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
        venv.create(folder, with_pip=True)

    def run(self, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run Python, kept away from the checkout and from the settings of the tests' own plugins."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CNTK_", "PYTHONPATH"))}
        return subprocess.run(
            [self.python, *arguments], capture_output=True, text=True, check=False, env=kept | variables, cwd=self.python.parent
        )

    def pip(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)


def succeeded(done: subprocess.CompletedProcess[str]) -> str:
    """Standard output of a program that must have ended well."""
    assert done.returncode == 0, done.stderr
    return done.stdout


def fetched(done: subprocess.CompletedProcess[str]) -> None:
    """Skip where packages cannot be fetched; in CI, which sets CNTK_CI, that is a failure."""
    if done.returncode != 0 and not os.environ.get("CNTK_CI"):
        pytest.skip(f"packages cannot be fetched here: {done.stderr.strip().splitlines()[-1]}")
    succeeded(done)


@pytest.fixture(scope="module")
def build(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Builds the wheel of a project folder, from a copy so that nothing is left in the checkout."""

    def build(project: Path) -> Path:
        copy, wheels = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("wheels")
        for source in SOURCES if project == root else [path.name for path in project.iterdir()]:
            path = project / source
            if path.is_dir():
                shutil.copytree(path, copy / source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
            else:
                shutil.copy(path, copy)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels), str(copy)]
        without_code = os.environ | {"CNTK_BUILD_MACHINE_CODE": "0"}  # which takes long, and is no matter here
        fetched(subprocess.run(command, capture_output=True, text=True, check=False, env=without_code))
        return next(wheels.glob("*.whl"))

    return build


@pytest.fixture(scope="module")
def environment(root: Path, build: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = Environment(tmp_path_factory.mktemp("environment"))
    fetched(made.pip("install", *REQUIREMENTS))
    succeeded(made.pip("install", "--no-deps", build(root)))
    return made


@pytest.fixture(scope="module")
def with_extras(root: Path, build: Callable[[Path], Path], environment: Environment) -> Environment:
    succeeded(environment.pip("install", "--no-deps", build(root / "examples" / "cntk-extras")))
    return environment


@pytest.fixture(scope="module")
def with_onednn(root: Path, build: Callable[[Path], Path], environment: Environment) -> Environment:
    succeeded(environment.pip("install", "--no-deps", build(root / "examples" / "onednn")))
    return environment


def test_the_tutorial_plugin_is_used_by_name(with_extras: Environment, tmp_path: Path) -> None:
    environment, log = with_extras, tmp_path / "progress.csv"
    assert succeeded(environment.run("-c", TRAINING, log)) == "trained True\n"
    header, *lines = log.read_text(encoding="utf-8").splitlines()
    assert header == "minibatch,samples,loss,metric"
    assert [line.split(",")[:2] for line in lines] == [[str(number), "320"] for number in (10, 20, 30, 40, 50)]
    losses = [float(line.split(",")[2]) for line in lines]
    assert losses[-1] < losses[0] / 2

    listed = succeeded(environment.run("-m", "cntk", "plugins"))
    assert "extras (cntk-extras 0.1.0, cntk_extras): loaded" in listed
    native, strategies = "native functions: Extras.Native-1.0 on CreateGain", "distributed strategies: top_k"
    for provided in ("ops: swish", native, "learners: lion", strategies, "progress writers: CSVWriter"):
        assert f"    {provided}\n" in listed

    assert succeeded(environment.run("-c", CONFORMANCE, tmp_path / "other.csv")) == "conforms\n"


def test_its_operators_are_in_files_and_checkpoints(with_extras: Environment, tmp_path: Path) -> None:
    """Training that is stopped and goes on gives what it gives in one piece; other processes load the model, if they have the plugin."""
    folders = [tmp_path / "whole", tmp_path / "in parts"]
    for folder in folders:
        folder.mkdir()
    whole = succeeded(with_extras.run("-c", SAVING, folders[0], "3"))
    succeeded(with_extras.run("-c", SAVING, folders[1], "1"))
    assert succeeded(with_extras.run("-c", SAVING, folders[1], "3")) == whole
    assert succeeded(with_extras.run("-c", LOADING, folders[1])) == f"True 1.5 Swish\n{whole}{whole}"

    missing = "there is no operator Swish of the module cntk_extras.swish; "
    blocked = succeeded(with_extras.run("-c", WITHOUT, folders[0], CNTK_PLUGINS=""))
    assert blocked == f"{missing}it belongs to the plugin 'extras' of cntk-extras, which CNTK_PLUGINS leaves out\nFalse\n"


def test_a_model_says_what_to_install(root: Path, build: Callable[[Path], Path], with_extras: Environment, tmp_path: Path) -> None:
    succeeded(with_extras.run("-c", SAVING, tmp_path, "1"))
    succeeded(with_extras.pip("uninstall", "--yes", "cntk-extras"))
    try:
        said = succeeded(with_extras.run("-c", WITHOUT, tmp_path))
    finally:
        succeeded(with_extras.pip("install", "--no-deps", build(root / "examples" / "cntk-extras")))
    missing = "there is no operator Swish of the module cntk_extras.swish; "
    assert said == f"{missing}the file says that it comes with cntk-extras 0.1.0; if you trust that: pip install cntk-extras\nFalse\n"


def test_native_user_functions_are_made_by_name(with_extras: Environment) -> None:
    assert succeeded(with_extras.run("-c", NATIVE)) == "[[6.0, 12.0]] [[6.0, 6.0]] {'gain': 2}\n"


def test_workers_learn_together_in_a_way_of_the_plugin(with_extras: Environment) -> None:
    """Of two gradients the larger is sent; the other waits until it has grown."""
    done = "[(True, [0.0, -2.0]), (True, [0.0, -4.0]), (True, [-3.0, -4.0])]\n"
    assert succeeded(with_extras.run("-c", STRATEGY)) == done


def test_a_plugin_can_be_left_out(with_extras: Environment) -> None:
    program = "import cntk; print(hasattr(cntk, 'swish'))"
    assert succeeded(with_extras.run("-c", program)) == "True\n"
    assert succeeded(with_extras.run("-c", program, CNTK_PLUGINS="")) == "False\n"


def test_convolutions_go_without_onednn(with_onednn: Environment) -> None:
    assert "onednn (cntk-onednn 0.1.0, cntk_onednn): loaded" in succeeded(with_onednn.run("-m", "cntk", "plugins"))
    assert succeeded(with_onednn.run("-c", CONVOLUTION)) == "[240. 320.] False\n"

    broken = with_onednn.run("-m", "cntk", "plugins", "--broken", CNTK_ONEDNN="/nowhere/libdnnl.so.3")
    assert broken.returncode == 1
    assert "FileNotFoundError: CNTK_ONEDNN=/nowhere/libdnnl.so.3 is not a file; install it with" in broken.stdout


def test_convolutions_by_onednn(with_onednn: Environment, root: Path) -> None:
    library = onednn(root)
    listed = succeeded(with_onednn.run("-m", "cntk", "plugins", CNTK_ONEDNN=library))
    assert "onednn (cntk-onednn 0.1.0, cntk_onednn): loaded\n    kernels: cntk.plugins.ops.convolution:Convolution on numpy" in listed
    assert succeeded(with_onednn.run("-c", CONVOLUTION, CNTK_ONEDNN=library)) == "[240. 320.] True\n"
    assert succeeded(with_onednn.run("-c", CONVOLUTION, CNTK_ONEDNN=library, CNTK_PLUGINS="")) == "[240. 320.] False\n"


def onednn(root: Path) -> str:
    """oneDNN's library, where the tests' own environment has it."""
    program = "from cntk_onednn.library import find; print(find() or '')"
    sources = os.pathsep.join([str(root / "examples" / "onednn" / "src"), *sys.path])
    environment = {**os.environ, "PYTHONPATH": sources}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    return done.stdout.strip() or pytest.skip("oneDNN is not installed")


def test_a_backend_of_others_trains_a_network(root: Path, build: Callable[[Path], Path], environment: Environment) -> None:
    succeeded(environment.pip("install", "--no-deps", build(root / "examples" / "counting-backend")))
    try:
        trained, devices = succeeded(environment.run("-c", BACKEND)).splitlines()
        assert trained.startswith("True ")
        assert trained.endswith(" True True")
        assert devices == "(counting[0], counting[1], CPU)"
        doctor = succeeded(environment.run("-m", "cntk", "doctor"))
        assert "counting: ready, NumPy " in doctor
    finally:
        succeeded(environment.pip("uninstall", "--yes", "cntk-counting"))


def test_a_broken_plugin_is_reported_and_left_out(root: Path, build: Callable[[Path], Path], environment: Environment) -> None:
    succeeded(environment.pip("install", "--no-deps", build(root / "tests" / "data" / "broken_plugin")))
    try:
        done = environment.run("-c", USE_WITHOUT)
        assert succeeded(done) == "[0. 2.]\n"
        (line,) = done.stderr.splitlines()
        for part in ("'broken'", "cntk-broken 0.2.0", "RuntimeError: this plugin is broken on purpose"):
            assert part in line

        listed = environment.run("-m", "cntk", "plugins", "--broken")
        assert listed.returncode == 1
        assert listed.stdout.startswith("broken (cntk-broken 0.2.0, cntk_broken): broken\n")

        strict = environment.run("-c", USE_WITHOUT, CNTK_STRICT_PLUGINS="1")
        assert strict.returncode != 0
        assert "RuntimeError: this plugin is broken on purpose" in strict.stderr

        assert environment.run("-c", USE_WITHOUT, CNTK_PLUGINS="extras").stderr == ""
    finally:
        succeeded(environment.pip("uninstall", "--yes", "cntk-broken"))
