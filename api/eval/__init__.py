"""Evaluating functions over minibatches, and applying them to data as programs have it."""

from cntk.eval.evaluator import Evaluator
from cntk.eval.predictor import Predictor
from cntk.eval.scoring import predict_file
from cntk.eval.signature import Signature, TensorInfo

__all__ = ["Evaluator", "Predictor", "Signature", "TensorInfo", "predict_file"]
