"""Models that are saved by one program and loaded by the other; runs on CNTK 2.7 with Python 3.6 as well as here."""

from . import convolutional, feed_forward, losses, operators, recurrent, sequences
from .model import MODELS

__all__ = ["MODELS", "convolutional", "feed_forward", "losses", "operators", "recurrent", "sequences"]
