"""Members that CNTK's classes show beside what they offer, most of them those of the engine's objects below them.

Classes here hold members for those that the tables ``MEMBERS`` name; :func:`complete_classes` gives them to them.
"""

from __future__ import annotations

from types import FunctionType

from cntk.compatibility.members import data, graph, training


def complete_classes() -> None:
    """Give the classes their members."""
    for table in (graph.MEMBERS, data.MEMBERS, training.MEMBERS):
        for target, members in table.items():
            for name, member in vars(members).items():
                if not name.startswith("__"):
                    if isinstance(member, FunctionType) and member.__qualname__.startswith(members.__name__):
                        member.__qualname__ = f"{target.__name__}.{name}"
                    setattr(target, name, member)
