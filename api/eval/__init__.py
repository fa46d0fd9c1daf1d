"""Evaluating functions over minibatches, and applying them to data as programs have it, with what is imported when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cntk.eval.evaluator import Evaluator

if TYPE_CHECKING:
    from cntk.eval.predictor import Predictor
    from cntk.eval.scoring import predict_file
    from cntk.eval.signature import Signature, TensorInfo

__all__ = ["Evaluator", "Predictor", "Signature", "TensorInfo", "predict_file"]

_LATER = {"Predictor": "predictor", "Signature": "signature", "TensorInfo": "signature", "predict_file": "scoring"}


if TYPE_CHECKING:
    from cntk.eval.predictor import Predictor as Predictor
    from cntk.eval.scoring import predict_file as predict_file
    from cntk.eval.signature import Signature as Signature
    from cntk.eval.signature import TensorInfo as TensorInfo
else:

    def __getattr__(name: str) -> Any:
        if name not in _LATER:
            raise AttributeError(f"module 'cntk.eval' has no '{name}'; it has Evaluator, {', '.join(_LATER)}")
        return globals().setdefault(name, getattr(import_module(f"cntk.eval.{_LATER[name]}"), name))
