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
next; these names, what they take and what they give do not.
"""

from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.common.minibatch import Minibatch
from cntk.core.extension.backend import Backend
from cntk.core.extension.hookspecs import Register, RegisterKernel, hookimpl
from cntk.core.extension.plugins import register_plugin, unregister_plugin
from cntk.core.operators.op import Elementwise, Op, Operand, operator, sample
from cntk.core.program.passes import Pass
from cntk.core.program.program import Program
from cntk.core.types.context import Context
from cntk.core.types.layout import Layout
from cntk.core.types.sparse import RowSparse
from cntk.core.types.spec import Spec
from cntk.learners import IGNORE, Learner
from cntk.learners.options import LearnerOptions
from cntk.plugins.distributed.base import Strategy, Transport
from cntk.plugins.progress.base import ProgressWriter
from cntk.readers.deserializer import Chunk, ChunkInfo, Deserializer, Errors, SequenceInfos, StreamData
from cntk.readers.streams import StreamInformation

__all__ = [
    "IGNORE",
    "Backend",
    "Chunk",
    "ChunkInfo",
    "Context",
    "Deserializer",
    "Elementwise",
    "Errors",
    "Layout",
    "Learner",
    "LearnerOptions",
    "Minibatch",
    "NumpyBackend",
    "Op",
    "Operand",
    "Pass",
    "Program",
    "ProgressWriter",
    "Register",
    "RegisterKernel",
    "RowSparse",
    "SequenceInfos",
    "Spec",
    "Strategy",
    "StreamData",
    "StreamInformation",
    "Transport",
    "hookimpl",
    "operator",
    "register_plugin",
    "sample",
    "unregister_plugin",
]
