"""Variables: what is known of them, and of parameters and constants statistics and first numbers."""

from __future__ import annotations

from typing import Any

from cntk.core.common.dtypes import dtype_name
from cntk.core.common.shape import is_concrete, size_of
from cntk.core.graph.variable import Constant, Parameter, Variable
from cntk.logging.model_summary import shown
from cntk.views.arrays import STATISTICS, few, first_rows, statistics
from cntk.views.view import View, facts, page


def view(variable: Variable) -> View:
    """The view of a variable."""
    known: list[tuple[str, Any]] = [
        ("kind", variable.kind),
        ("name", variable.name),
        ("uid", variable.uid),
        ("shape", shown(variable.spec)),
        ("element type", "not known yet" if variable.dtype is None else dtype_name(variable.dtype)),
        ("data", "sparse" if variable.is_sparse else "dense"),
        ("gradient", "wanted" if variable.needs_gradient else "not wanted"),
    ]
    if not isinstance(variable, (Parameter, Constant)):
        return View(repr(variable), page(repr(variable), facts(known)))
    if not is_concrete(variable.shape) or variable.dtype is None:
        return View(repr(variable), page(repr(variable), facts([*known, ("value", "not known before the shape is")])))
    array = variable.value
    known.append(("numbers", size_of(variable.shape)))
    if variable.is_sparse:
        return View(repr(variable), page(repr(variable), facts([*known, ("entries", variable.array.to_csr(variable.backend).nnz)])))
    numbers = list(zip(STATISTICS, statistics(array), strict=True)) if array.size else []
    return View(f"{variable!r}\n{few(array)}", page(repr(variable), facts([*known, *numbers]), first_rows(array)))
