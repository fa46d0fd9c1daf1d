"""Evaluating functions over minibatches."""

from cntk.eval.evaluator import Evaluator

__all__ = ["Evaluator"]
