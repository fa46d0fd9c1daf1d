"""Another name of :mod:`cntk.train.distributed`."""

import sys

from cntk.train import distributed

sys.modules[__name__] = distributed
