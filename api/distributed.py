"""Another name of :mod:`cntk.train.distributed`."""

import sys
from typing import TYPE_CHECKING

from cntk.train import distributed

if TYPE_CHECKING:
    from cntk.train.distributed import *  # noqa: F403

sys.modules[__name__] = distributed
