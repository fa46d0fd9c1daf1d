"""Models on MLflow's disks and in its runs."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cntk.core.extension import plugins
from cntk.core.graph.function import Function
from cntk.eval.predictor import Predictor
from cntk.mlflow.package import mlflow_module
from cntk.mlflow.requirements import get_default_pip_requirements, modules_to_import
from cntk.mlflow.schemas import example_of, model_signature, schema_of_frame

FLAVOR_NAME = "cntk"
FILE_NAME = "model.dnn"


def save_model(
    cntk_model: Function,
    path: str | Path,
    outputs: Any = None,
    lengths: bool = True,
    sparse: str = "dense",
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: Sequence[str] | str | None = None,
    extra_pip_requirements: Sequence[str] | None = None,
    conda_env: Any = None,
    code_paths: Sequence[str] | None = None,
    metadata: dict[str, Any] | None = None,
    mlflow_model: Any = None,
) -> None:
    """Save a function as a model of MLflow, in a folder.

    Args:
        cntk_model: the function.
        path: the folder, which is made; one that is there must be empty.
        outputs: names, functions or variables, which to save and compute; None for all that is there, of which losses and metrics are
            computed only where there is nothing else.
        lengths: whether the signature asks for the lengths of sequences; without them all sequences of a minibatch are equally long.
        sparse: whether sparse inputs are ``'dense'`` tensors in the signature, or ``'indices'``, the numbers of the elements that are 1.
        signature: what predictions take and give, a ``ModelSignature``; by default :func:`model_signature`; False for none, so that MLflow
            checks nothing.
        input_example: an example of what predictions take; zeros where left out.  Where it is a frame, its columns are the inputs of the
            signature, and predictions take frames.
        pip_requirements: what is to be installed for the model; by default :func:`get_default_pip_requirements`.
        extra_pip_requirements: what else is.
        conda_env: an environment of Conda in their place, as a dictionary or the path of its file.
        code_paths: files or folders with modules of the program's own that the model needs, such as those of user functions.
        metadata: whatever else is to be kept with the model.
        mlflow_model: the ``mlflow.models.Model`` that is completed; a new one where left out.

    Raises:
        ImportError: MLflow is not installed.
        TypeError: *cntk_model* is not a function.
        ValueError: an output is unknown or has no batch axis, shapes are not known yet, or a user function is of the main module.
        mlflow.MlflowException: the folder is not empty, or the example does not fit the signature.

    >>> import cntk.mlflow, mlflow                                              # doctest: +SKIP
    >>> z = C.layers.Dense(2, init=1)(C.input_variable(3, name='x'))            # doctest: +SKIP
    >>> cntk.mlflow.save_model(z, 'model')                                      # doctest: +SKIP
    >>> data = {'x': np.ones((1, 3), np.float32)}                               # doctest: +SKIP
    >>> mlflow.pyfunc.load_model('model').predict(data)                         # doctest: +SKIP
    array([[3., 3.]], dtype=float32)
    """
    if not isinstance(cntk_model, Function):
        raise TypeError(f"cntk_model must be a function, got {type(cntk_model).__name__} {cntk_model!r:.80}")
    pyfunc = mlflow_module("mlflow.pyfunc")
    described = Predictor(cntk_model, outputs).signature
    function = cntk_model if outputs is None else described.function
    if signature is None:
        signature = model_signature(function, lengths, sparse)
        if input_example is None:
            input_example = example_of(function, signature)
        elif hasattr(input_example, "columns"):
            signature.inputs = schema_of_frame(input_example)
    if pip_requirements is None and conda_env is None:
        pip_requirements = [*get_default_pip_requirements(function), *(extra_pip_requirements or ())]
        extra_pip_requirements = None
    imports = modules_to_import(function)
    model = mlflow_module("mlflow.models").Model() if mlflow_model is None else mlflow_model
    model.add_flavor(FLAVOR_NAME, opencntk_version=version(plugins.DISTRIBUTION), data=f"data/{FILE_NAME}")
    with tempfile.TemporaryDirectory() as folder:
        function.save(written := str(Path(folder, FILE_NAME)))
        pyfunc.save_model(
            str(path),
            loader_module="cntk.mlflow",
            data_path=written,
            code_paths=None if code_paths is None else [str(one) for one in code_paths],
            mlflow_model=model,
            signature=signature or None,
            input_example=input_example,
            pip_requirements=pip_requirements,
            extra_pip_requirements=extra_pip_requirements,
            conda_env=conda_env,
            metadata=metadata,
            model_config={"imports": imports} if imports else None,
        )


def log_model(cntk_model: Function, name: str | None = None, registered_model_name: str | None = None, **options: Any) -> Any:
    """Log a function to MLflow as a model of the active run, or of one that is started.

    Args:
        cntk_model: the function.
        name: name of the model in MLflow; one is made up where left out.
        registered_model_name: name under which it is registered too, as a new version: ``models:/NAME/VERSION`` leads to it.
        options: those of :func:`save_model`, and of ``mlflow.models.Model.log``: ``params``, ``tags``, ``step`` and others.

    Returns:
        MLflow's ``ModelInfo``; its ``model_uri`` is what :func:`load_model` takes.

    Raises:
        ImportError, TypeError, ValueError: as :func:`save_model`.

    >>> import cntk.mlflow, mlflow                                              # doctest: +SKIP
    >>> z = C.layers.Dense(2, name='z')(C.input_variable(3, name='x'))          # doctest: +SKIP
    >>> with mlflow.start_run():                                                # doctest: +SKIP
    ...     info = cntk.mlflow.log_model(z, 'scores')
    >>> cntk.mlflow.load_model(info.model_uri).arguments                        # doctest: +SKIP
    (Input('x', [#], [3]),)
    """
    return mlflow_module("mlflow.models").Model.log(
        artifact_path=None,
        name=name,
        flavor=sys.modules["cntk.mlflow"],
        registered_model_name=registered_model_name,
        cntk_model=cntk_model,
        **options,
    )


def load_model(model_uri: str, dst_path: str | None = None) -> Function:
    """The function of a model that was saved or logged.

    Args:
        model_uri: a folder, ``runs:/RUN/NAME``, ``models:/NAME/VERSION``, ``models:/NAME@ALIAS`` or whatever else MLflow knows.
        dst_path: folder for files that are fetched.

    Raises:
        ImportError: MLflow is not installed.
        ValueError: the model is no function of CNTK.

    >>> import cntk.mlflow                                                      # doctest: +SKIP
    >>> z = C.layers.Dense(2)(C.input_variable(3, name='x'))                    # doctest: +SKIP
    >>> cntk.mlflow.save_model(z, 'model')                                      # doctest: +SKIP
    >>> cntk.mlflow.load_model('model').arguments                               # doctest: +SKIP
    (Input('x', [#], [3]),)
    """
    pyfunc = mlflow_module("mlflow.pyfunc")
    loaded = pyfunc.load_model(str(model_uri), dst_path=dst_path)
    if FLAVOR_NAME not in loaded.metadata.flavors:
        raise ValueError(f"{model_uri} was not saved by cntk.mlflow; it has the flavors {', '.join(loaded.metadata.flavors)}")
    function: Function = loaded.get_raw_model()
    return function
