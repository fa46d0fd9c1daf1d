"""Conformance kit for plugin authors: one line runs the contract of a part against theirs.

>>> from cntk.testing import check_op
>>> check_op(C.tanh)

Each check returns nothing when the part conforms, and raises an AssertionError with the arguments, the result and
the expected result.  :func:`isolated` lets tests change settings of the whole process.
"""

from cntk.core.common.switches import isolated
from cntk.testing.backends import check_backend
from cntk.testing.check import check
from cntk.testing.deserializers import check_deserializer
from cntk.testing.learners import check_learner
from cntk.testing.ops import check_op
from cntk.testing.progress import check_progress_writer
from cntk.testing.strategies import check_strategy
from cntk.testing.tolerances import assert_close

__all__ = [
    "assert_close",
    "check",
    "check_backend",
    "check_deserializer",
    "check_learner",
    "check_op",
    "check_progress_writer",
    "check_strategy",
    "isolated",
]
