"""The interface for authors of plugins, in one import.

>>> from cntk.extend import Elementwise, operator, sample
>>> class Twice(Elementwise):
...     op_name = "Twice"
...
...     def forward(self, ctx, y, x):
...         ctx.xp.multiply(x, 2, out=y)
...
...     def gradient(self, i, ctx, dx, dy, y, x):
...         ctx.xp.multiply(dy, 2, out=dx)
>>> Twice()(C.input_variable(2)).eval([[1, 2]])
array([[2., 4.]], dtype=float32)

The rest of ``cntk.core``, ``cntk.plugins``, ``cntk.backends``, ``cntk.readers`` and ``cntk.learners`` may change from one version to the
next; what ``__all__`` lists does not, nor do the types beside it, which go with these names.
"""

from cntk.backends.numpy.backend import NumpyBackend as NumpyBackend
from cntk.core.extension.backend import Backend
from cntk.core.extension.hookspecs import Command, hookimpl
from cntk.core.extension.hookspecs import Register as Register
from cntk.core.extension.hookspecs import RegisterKernel as RegisterKernel
from cntk.core.extension.kernel import Kernel
from cntk.core.extension.plugins import register_plugin as register_plugin
from cntk.core.extension.plugins import unregister_plugin as unregister_plugin
from cntk.core.formulas import formula as formula
from cntk.core.operators.delay import Delay
from cntk.core.operators.elementwise import Elementwise
from cntk.core.operators.op import Op
from cntk.core.operators.op import Traits as Traits
from cntk.core.operators.samples import Operand as Operand
from cntk.core.operators.samples import operator, sample
from cntk.core.operators.sequence_op import SequenceOp
from cntk.core.operators.view import View
from cntk.core.program.passes import Pass
from cntk.core.program.program import Program as Program
from cntk.core.types.context import Context as Context
from cntk.core.types.layout import Layout
from cntk.core.types.sparse import RowSparse as RowSparse
from cntk.core.types.spec import Spec
from cntk.core.values.minibatch import Minibatch as Minibatch
from cntk.learners import IGNORE as IGNORE
from cntk.learners import Learner
from cntk.learners.options import LearnerOptions as LearnerOptions
from cntk.plugins.distributed.base import Strategy
from cntk.plugins.distributed.base import Transport as Transport
from cntk.plugins.launchers.job import Ended as Ended
from cntk.plugins.launchers.job import Job as Job
from cntk.plugins.launchers.job import free_port as free_port
from cntk.plugins.models.format import Format
from cntk.plugins.progress.base import ProgressWriter
from cntk.readers.deserializer import Chunk as Chunk
from cntk.readers.deserializer import ChunkInfo as ChunkInfo
from cntk.readers.deserializer import Deserializer
from cntk.readers.deserializer import Errors as Errors
from cntk.readers.deserializer import SequenceInfos as SequenceInfos
from cntk.readers.deserializer import StreamData as StreamData
from cntk.readers.streams import StreamInformation as StreamInformation
from cntk.testing.check import check

__all__ = [
    "Backend",
    "Command",
    "Delay",
    "Deserializer",
    "Elementwise",
    "Format",
    "Kernel",
    "Layout",
    "Learner",
    "Op",
    "Pass",
    "ProgressWriter",
    "SequenceOp",
    "Spec",
    "Strategy",
    "View",
    "check",
    "hookimpl",
    "operator",
    "sample",
]
