"""Services that packages of the kernel need from higher ones, and from the parts above the kernel: set once, on import.

A function, for example, has a method ``eval``, though the package ``graph`` cannot import ``run``.  :mod:`cntk.wiring` alone assigns the
services.
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
        evaluate, forward, backward, grad, bind: implementations of the methods of functions with these names (``evaluate`` is ``eval``).
        held_by: the array or CSR matrix that a Value or NDArrayView holds; anything else is returned unchanged.
        view_of: an NDArrayView of a CSR matrix.
        save, load, restore, register_callback: functions and their files.
        reduce, shallow_copy, deep_copy: functions and variables for ``pickle`` and ``copy``.
        displayed: what notebooks show of an object, by MIME type.
    """

    apply: Service
    start: Service
    evaluate: Service
    forward: Service
    backward: Service
    grad: Service
    bind: Service
    held_by: Service
    view_of: Service
    save: Service
    load: Service
    restore: Service
    register_callback: Service
    reduce: Service
    shallow_copy: Service
    deep_copy: Service
    displayed: Service

    def provide(self, **services: Service) -> None:
        """Set services by name.

        Raises:
            TypeError: there is no service of such a name.
        """
        for name, service in services.items():
            if name not in Services.__annotations__:
                raise TypeError(f"there is no service '{name}'; expected one of {', '.join(Services.__annotations__)}")
            setattr(self, name, service)


services = Services()
