"""Finding out what a network does."""

from cntk.core.evaluate import set_checked_mode
from cntk.debugging.debug import DEBUG_USAGE, debug_model

__all__ = ["DEBUG_USAGE", "debug_model", "set_checked_mode"]
