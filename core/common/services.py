"""What lower rooms ask of higher ones, and the kernel of what is built on it: set once, while the package is imported.

A function, say, has a method ``eval``, though graphs know nothing of programs that run.  :mod:`cntk.wiring` is the one place that knows
who does what.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Service = Callable[..., Any]


class Services:
    """The services, by attribute.

    Attributes:
        apply: makes a function of an operator and its operands.
        start: takes memory for a run of a program, and loads data into it.
        evaluate, forward, backward, grad: what the methods of functions with these names do (``evaluate`` is ``eval``).
        held_by: the array or CSR matrix that a Value or NDArrayView holds; what else it is given as it is.
        view_of: an NDArrayView of a CSR matrix.
        save, load, restore, register_callback: functions and their files.
        reduce, shallow_copy, deep_copy: functions and variables for ``pickle`` and ``copy``.
    """

    apply: Service
    start: Service
    evaluate: Service
    forward: Service
    backward: Service
    grad: Service
    held_by: Service
    view_of: Service
    save: Service
    load: Service
    restore: Service
    register_callback: Service
    reduce: Service
    shallow_copy: Service
    deep_copy: Service

    def provide(self, **services: Service) -> None:
        """Set services by name.

        Raises:
            TypeError: nobody asks for one of these.
        """
        for name, service in services.items():
            if name not in Services.__annotations__:
                raise TypeError(f"services: nobody asks for '{name}'; expected one of {', '.join(Services.__annotations__)}")
            setattr(self, name, service)


services = Services()
