"""What authors of plugins build on, in one import.

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

from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.common.minibatch import Minibatch as Minibatch
from cntk.core.extension.backend import Backend
from cntk.core.extension.hookspecs import Register, hookimpl
from cntk.core.extension.hookspecs import RegisterKernel as RegisterKernel
from cntk.core.extension.plugins import register_plugin, unregister_plugin
from cntk.core.operators.op import Elementwise, Op, Operand, operator, sample
from cntk.core.program.passes import Pass
from cntk.core.program.program import Program as Program
from cntk.core.types.context import Context
from cntk.core.types.layout import Layout
from cntk.core.types.sparse import RowSparse as RowSparse
from cntk.core.types.spec import Spec
from cntk.learners import IGNORE as IGNORE
from cntk.learners import Learner
from cntk.learners.options import LearnerOptions as LearnerOptions
from cntk.plugins.distributed.base import Strategy, Transport
from cntk.plugins.progress.base import ProgressWriter
from cntk.readers.deserializer import Chunk as Chunk
from cntk.readers.deserializer import ChunkInfo as ChunkInfo
from cntk.readers.deserializer import Deserializer
from cntk.readers.deserializer import Errors as Errors
from cntk.readers.deserializer import SequenceInfos as SequenceInfos
from cntk.readers.deserializer import StreamData as StreamData
from cntk.readers.streams import StreamInformation as StreamInformation

__all__ = [
    "Backend",
    "Context",
    "Deserializer",
    "Elementwise",
    "Layout",
    "Learner",
    "NumpyBackend",
    "Op",
    "Operand",
    "Pass",
    "ProgressWriter",
    "Register",
    "Spec",
    "Strategy",
    "Transport",
    "hookimpl",
    "operator",
    "register_plugin",
    "sample",
    "unregister_plugin",
]
