"""Names and numbers that nothing else has."""

from __future__ import annotations

import itertools

from cntk.cntk_py.constants import variable_kind_name
from cntk.core.graph.variable import new_uid

_ids = itertools.count()


def new_unique_id() -> int:
    """A number that no call before has given."""
    return next(_ids)


def generate_uid(prefix: str | int) -> str:
    """A name that no other node of this process has, which begins with a text or the name of a kind of variable.

    >>> C.cntk_py.generate_uid('mine').startswith('mine')
    True
    """
    return new_uid(prefix if isinstance(prefix, str) else variable_kind_name(prefix))
