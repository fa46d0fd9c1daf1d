"""opencntk: networks as function objects.

>>> x = C.input_variable(2)
>>> model = C.layers.Dense(1, init=1)(x)
>>> model.eval({x: [[3, 4]]})
array([[7.]], dtype=float32)

Operators and learners come from plugins: ``C.relu`` is found in the registry and imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cntk.core.extension import plugins as _plugins

_installed = _plugins.installed()
_plugins.load_plugins(point for point in _installed if _plugins.is_built_in(point))

from cntk import wiring  # noqa: E402, I001

from cntk import axis as axis  # noqa: E402
from cntk import core as core  # noqa: E402
from cntk import debugging as debugging  # noqa: E402
from cntk import device as device  # noqa: E402
from cntk import eval as eval  # noqa: E402
from cntk import initializer as initializer  # noqa: E402
from cntk import internal as internal  # noqa: E402
from cntk import io as io  # noqa: E402
from cntk import layers as layers  # noqa: E402
from cntk import learners as learners  # noqa: E402
from cntk import logging as logging  # noqa: E402
from cntk import cntk_py as cntk_py  # noqa: E402
from cntk import losses as losses  # noqa: E402
from cntk import metrics as metrics  # noqa: E402
from cntk import misc as misc  # noqa: E402
from cntk import ops as ops  # noqa: E402
from cntk import random as random  # noqa: E402
from cntk import tensor as tensor  # noqa: E402
from cntk import train as train  # noqa: E402
from cntk import variables as variables  # noqa: E402
from cntk.axis import Axis as Axis  # noqa: E402
from cntk.compatibility import complete_modules as _complete_modules  # noqa: E402
from cntk.compatibility.members import complete_classes as _complete_classes  # noqa: E402
from cntk.core import NDArrayView as NDArrayView  # noqa: E402
from cntk.core import Value as Value  # noqa: E402
from cntk.core import asarray as asarray  # noqa: E402
from cntk.core import asvalue as asvalue  # noqa: E402
from cntk.plugins.user_functions import user_function as user_function  # noqa: E402
from cntk.core.common.dtypes import as_dtype as _as_dtype  # noqa: E402
from cntk.core.common.phrasebook import NAMES as _NAMES_ELSEWHERE  # noqa: E402
from cntk.core.common.phrasebook import lacking as _lacking  # noqa: E402
from cntk.core.common.random import AUTO_SEED as SentinelValueForAutoSelectRandomSeed  # noqa: E402
from cntk.core.common.random import AUTO_SEED as auto_select  # noqa: E402
from cntk.core.common.shape import FreeDimension as FreeDimension  # noqa: E402
from cntk.core.common.shape import InferredDimension as InferredDimension  # noqa: E402
from cntk.default_options import *  # noqa: E402
from cntk.device import *  # noqa: E402
from cntk.eval import Evaluator as Evaluator  # noqa: E402
from cntk.initializer import *  # noqa: E402
from cntk.internal.namespaces import open_to_plugins as _open_to_plugins  # noqa: E402
from cntk.internal.utils import _to_cntk_dict_value  # noqa: E402
from cntk.io import INFINITELY_REPEAT as INFINITELY_REPEAT  # noqa: E402
from cntk.learners import IGNORE as IGNORE  # noqa: E402
from cntk.learners import UnitType as UnitType  # noqa: E402
from cntk.ops.functions import BlockFunction as BlockFunction  # noqa: E402
from cntk.ops.functions import CloneMethod as CloneMethod  # noqa: E402
from cntk.ops.functions import Function as Function  # noqa: E402
from cntk.ops.functions import ModelFormat as ModelFormat  # noqa: E402
from cntk.ops.functions import load_model as load_model  # noqa: E402
from cntk.train import *  # noqa: E402
from cntk.train import distributed as distributed  # noqa: E402
from cntk.variables import Constant as Constant  # noqa: E402
from cntk.variables import Parameter as Parameter  # noqa: E402
from cntk.variables import Record as Record  # noqa: E402
from cntk.variables import Variable as Variable  # noqa: E402

__version__ = "2.7"
"""Version of CNTK whose programming interface this is; the distribution ``opencntk`` has a version of its own."""

DATATYPE = np.float32

_HOMES = {name: source for source in (metrics, losses, learners, ops) for name in source.__all__}
"""Where names come from that are looked up when they are first used; those that plugins of others register come beside them."""


if TYPE_CHECKING:
    from cntk._names import *
else:

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            others = (name for kind in (_plugins.ops, _plugins.learners) for name in _plugins.names_to_import(kind, __name__))
            found = {*globals(), *_HOMES, *others}
            return sorted(name for name in found if not name.startswith("_") and name not in ("annotations", "Any", "np"))
        if name == "bfloat16":
            return _bfloat16()
        if name in _HOMES:
            return getattr(_HOMES[name], name)
        for registry in (_plugins.ops, _plugins.learners):
            if name in registry:
                return _plugins.shown(registry, name, __name__)
        raise _lacking(f"module 'cntk' has no attribute '{name}'", _NAMES_ELSEWHERE, name)


def _bfloat16() -> Any:
    """The element type, whose package is imported when a program first asks for it."""
    try:
        return _as_dtype("bfloat16")
    except ValueError as error:
        raise AttributeError(f"cntk.bfloat16: {error}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_plugins.names_shown(_plugins.ops), *_plugins.names_shown(_plugins.learners)})


_open_to_plugins(vars().values())
_complete_modules()
_complete_classes()

_plugins.load_plugins(_installed)
_plugins.warn_of_unknown_names()
