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
from cntk.core.extension.backend import Backend
from cntk.core.extension.hookspecs import Register, hookimpl
from cntk.core.extension.plugins import register_plugin, unregister_plugin
from cntk.core.operators import formula
from cntk.core.operators.op import Elementwise, Op, Operand, operator, sample
from cntk.core.program.passes import Pass
from cntk.core.types.context import Context
from cntk.core.types.layout import Layout
from cntk.core.types.spec import Spec
from cntk.learners import Learner
from cntk.plugins.distributed.base import Strategy, Transport
from cntk.plugins.progress.base import ProgressWriter
from cntk.readers.deserializer import Deserializer

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
    "formula",
    "hookimpl",
    "operator",
    "register_plugin",
    "sample",
    "unregister_plugin",
]
