"""What notebooks show of functions, variables, values, learners, sources and trainers: a file each, which makes a :class:`View`.

Kernel and plugins derive from :class:`cntk.core.common.displayed.Displayed` and know nothing of these; everything here is imported when the
first of them is displayed.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from cntk.core.graph.function import Function
from cntk.core.graph.variable import Variable
from cntk.core.values.value import NDArrayView, Value
from cntk.io.minibatch_source import MinibatchSource
from cntk.io.user_minibatch_source import UserMinibatchSource
from cntk.learners.interface import LearnerInterface
from cntk.readers.deserializer import Deserializer
from cntk.readers.streams import MinibatchData
from cntk.readers.user import UserDeserializer
from cntk.train.trainer import Trainer
from cntk.views import functions, learners, sources, trainers, values, variables
from cntk.views.view import View

__all__ = ["bundle_of", "view_of"]


@singledispatch
def view_of(item: Any) -> View:
    """The view of an object, by its class; of a class without one, its ``repr``.

    >>> from cntk.views import view_of
    >>> print(view_of(C.parameter(2, name='w')).text)
    Parameter('w', [], [2])
    [0. 0.]
    """
    return View(repr(item))


view_of.register(Function, functions.view)
view_of.register(Variable, variables.view)
view_of.register(Value, values.view)
view_of.register(NDArrayView, values.view)
view_of.register(MinibatchData, values.view)
view_of.register(LearnerInterface, learners.view)
view_of.register(MinibatchSource, sources.view)
view_of.register(UserMinibatchSource, sources.view)
view_of.register(Deserializer, sources.view)
view_of.register(UserDeserializer, sources.view)
view_of.register(Trainer, trainers.view)


def bundle_of(item: Any) -> dict[str, str]:
    """What is shown of an object, by MIME type: text always, HTML and SVG where there are.

    >>> from cntk.views import bundle_of
    >>> sorted(bundle_of(C.layers.Dense(2)(C.input_variable(3))))
    ['image/svg+xml', 'text/html', 'text/plain']
    """
    view = view_of(item)
    kinds = {"text/plain": view.text, "text/html": view.html, "image/svg+xml": view.svg}
    return {kind: held for kind, held in kinds.items() if held}
