"""Functions as models of MLflow: saved, logged, registered and loaded again."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
import cntk.mlflow
from cntk.core.extension import plugins
from cntk.core.extension.plugins import PluginRecord
from cntk.core.operators.elementwise import Elementwise

# MLflow imports protobuf and others whose warnings are not ours.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

DATA = np.float32([[1, 2], [3, 4]])


def network() -> Any:
    return C.layers.Dense(3, activation=C.tanh, name="z")(C.input_variable(2, name="x"))


def test_what_is_saved_is_loaded(mlflow: Any) -> None:
    z = network()
    cntk.mlflow.save_model(z, "saved", metadata={"trained on": "nothing"})
    loaded = cntk.mlflow.load_model("saved")
    np.testing.assert_array_equal(loaded.eval({loaded.x: DATA}), z.eval({z.x: DATA}))
    np.testing.assert_array_equal(mlflow.pyfunc.load_model("saved").predict({"x": DATA}), z.eval({z.x: DATA}))
    described = mlflow.models.Model.load("saved")
    assert described.flavors["cntk"] == {"opencntk_version": version("opencntk"), "data": "data/model.dnn"}
    assert described.metadata == {"trained on": "nothing"}
    assert C.load_model("saved/data/model.dnn").z.shape == (3,)


def test_a_logged_model_belongs_to_its_run_and_is_registered(mlflow: Any) -> None:
    z = network()
    with mlflow.start_run() as run:
        first = cntk.mlflow.log_model(z, "model", registered_model_name="digits", tags={"stage": "trial"})
        cntk.mlflow.log_model(z, "model", registered_model_name="digits")
    assert first.run_id == run.info.run_id
    for place in (first.model_uri, f"runs:/{run.info.run_id}/model", "models:/digits/2"):
        np.testing.assert_array_equal(mlflow.pyfunc.load_model(place).predict(DATA), z.eval({z.x: DATA}))
    assert cntk.mlflow.load_model("models:/digits/1").z.shape == (3,)
    assert mlflow.get_logged_model(first.model_id).tags["stage"] == "trial"


def test_outputs_are_chosen(mlflow: Any) -> None:
    z = network()
    cntk.mlflow.save_model(C.combine([z, C.plus(z, 1, name="more")]), "saved", outputs="more")
    assert [one.name for one in cntk.mlflow.load_model("saved").outputs] == ["more"]
    with pytest.raises(ValueError, match="no result or node is called 'less'"):
        cntk.mlflow.save_model(z, "other", outputs=["less"])
    assert not Path("other").exists()


def test_the_example_is_zeros_or_what_is_given(mlflow: Any) -> None:
    z = network()
    cntk.mlflow.save_model(z, "zeros")
    cntk.mlflow.save_model(z, "given", input_example={"x": DATA})
    for place, wanted in (("zeros", [[0, 0]]), ("given", DATA)):
        np.testing.assert_array_equal(mlflow.models.Model.load(place).load_input_example(place)["x"], wanted)
    with pytest.raises(mlflow.MlflowException, match="does not match"):
        cntk.mlflow.save_model(z, "wrong", input_example={"x": np.float32([[1, 2, 3]])})


def test_a_signature_may_be_given_or_left_out(mlflow: Any) -> None:
    z = network()
    mine = mlflow.models.infer_signature({"x": DATA.astype(np.float64)})
    cntk.mlflow.save_model(z, "mine", signature=mine, input_example={"x": DATA.astype(np.float64)})
    cntk.mlflow.save_model(z, "none", signature=False)
    for place in ("mine", "none"):
        loaded = mlflow.pyfunc.load_model(place)
        np.testing.assert_array_equal(loaded.predict({"x": DATA.astype(np.float64)}), z.eval({z.x: DATA}))
    assert mlflow.models.Model.load("mine").signature == mine
    assert mlflow.models.Model.load("none").signature is None


def test_requirements_name_what_is_installed(mlflow: Any) -> None:
    def written(**options: Any) -> list[str]:
        place = f"model{len(list(Path().iterdir()))}"
        cntk.mlflow.save_model(network(), place, **options)
        return Path(place, "requirements.txt").read_text().split()

    own = f"opencntk[mlflow]=={version('opencntk')}"
    assert written()[1:] == [own]
    assert written()[0].startswith("mlflow")
    assert written(extra_pip_requirements=["numpy"])[1:] == [own, "numpy"]
    assert written(pip_requirements=["numpy"])[1:] == ["numpy"]
    assert written(conda_env={"dependencies": [{"pip": ["numpy"]}]})[1:] == ["numpy"]


class Doubled(Elementwise):
    """An operator of a plugin."""

    op_name = "DoubledForMlflow"

    def forward(self, ctx: Any, y: Any, x: Any) -> None:
        ctx.xp.multiply(x, 2, out=y)


def test_requirements_name_plugins_whose_operators_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "records", [*plugins.records, PluginRecord("acme", "acme-ops", "2.0", "acme_ops:plugin", "loaded")])
    monkeypatch.setattr(Doubled, "__module__", "acme_ops.doubled")
    inside = C.as_block(Doubled()(x := C.placeholder(name="p")), [(x, C.input_variable(2))], "Inside")
    assert cntk.mlflow.get_default_pip_requirements(inside)[-1] == "acme-ops==2.0"
    assert "acme-ops==2.0" not in cntk.mlflow.get_default_pip_requirements(network())


USER_MODULE = """
import cntk as C
class Scale(C.ops.functions.UserFunction):
    def __init__(self, inputs, name='', by=3.0):
        super().__init__(inputs, name=name)
        self.by = by
    def infer_outputs(self):
        return [C.output_variable(self.inputs[0].shape, self.inputs[0].dtype, self.inputs[0].dynamic_axes)]
    def forward(self, argument, device=None, outputs_to_retain=None):
        return None, argument * self.by
    def serialize(self):
        return {'by': self.by}
    @staticmethod
    def deserialize(inputs, name, state):
        return Scale(inputs, name, state['by'])
"""

LOADER = """
import cntk.mlflow, numpy
f = cntk.mlflow.load_model('saved')
print(f.eval({f.arguments[0]: numpy.float32([[1, 2]])}).tolist())
"""


@pytest.mark.slow
def test_classes_of_a_program_travel_with_the_model(mlflow: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "my_scale.py").write_text(USER_MODULE)
    monkeypatch.syspath_prepend(tmp_path / "code")
    scale = __import__("my_scale").Scale
    cntk.mlflow.save_model(
        C.user_function(scale([C.input_variable(2, name="x")])), "saved", code_paths=[str(tmp_path / "code" / "my_scale.py")]
    )
    done = subprocess.run([sys.executable, "-c", "import my_scale"], capture_output=True, check=False)
    assert done.returncode != 0
    done = subprocess.run([sys.executable, "-c", LOADER], capture_output=True, text=True, check=False)
    assert done.stdout.endswith("[[3.0, 6.0]]\n"), done.stderr


def test_classes_of_the_main_module_are_refused(mlflow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Doubled, "__module__", "__main__")
    with pytest.raises(ValueError, match="put the class into a module, and the module's file into code_paths"):
        cntk.mlflow.save_model(Doubled()(C.input_variable(2)), "saved")


def test_only_functions_are_saved(mlflow: Any) -> None:
    with pytest.raises(TypeError, match="cntk_model must be a function, got str 'Dense'"):
        cntk.mlflow.save_model("Dense", "saved")  # type: ignore[arg-type]


def test_models_of_others_are_refused(mlflow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow.pyfunc.save_model("other", loader_module="json", data_path=__file__, pip_requirements=[])
    Path("other/MLmodel").write_text(Path("other/MLmodel").read_text().replace("loader_module: json", "loader_module: other_loader"))
    monkeypatch.syspath_prepend(Path.cwd())
    Path("other_loader.py").write_text("class M:\n    def predict(self, data):\n        return data\n_load_pyfunc = lambda path: M()\n")
    with pytest.raises(ValueError, match=r"other was not saved by cntk\.mlflow; it has the flavors python_function"):
        cntk.mlflow.load_model("other")


def test_without_mlflow_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "mlflow"] or ["mlflow"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"cntk\.mlflow needs MLflow and pandas: pip install 'opencntk\[mlflow\]'"):
        cntk.mlflow.save_model(network(), "saved")
