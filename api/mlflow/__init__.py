"""Models of MLflow: functions saved, logged, registered, loaded and served by it.

A model is a folder with the function's file, what it takes and gives, and what is to be installed for it.  MLflow loads it as a
``python_function``, for ``mlflow models serve``, ``mlflow models build-docker``, ``mlflow.pyfunc.spark_udf`` and whatever else knows these;
:func:`load_model` gives the function.  ``pip install 'opencntk[mlflow]'`` brings what it needs.

>>> import cntk.mlflow                                                       # doctest: +SKIP
>>> cntk.mlflow.save_model(z, 'digits')                                      # doctest: +SKIP
>>> mlflow.pyfunc.load_model('digits').predict({'pixels': images})           # doctest: +SKIP
"""

from cntk.mlflow.flavor import FLAVOR_NAME, load_model, log_model, save_model
from cntk.mlflow.pyfunc import _load_pyfunc
from cntk.mlflow.requirements import get_default_pip_requirements
from cntk.mlflow.schemas import model_signature

__all__ = ["FLAVOR_NAME", "get_default_pip_requirements", "load_model", "log_model", "model_signature", "save_model"]
