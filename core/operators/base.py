"""What all operators inherit: attributes, arguments of the constructor, copies, checkpoints, calls."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from inspect import BoundArguments, Parameter, signature
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ..common.services import services
from .op_names import claim

if TYPE_CHECKING:
    from ..graph.function import Function


class OpBase:
    """Base of :class:`~cntk.core.operators.op.Op`: the parts that authors of operators need not know."""

    op_name: ClassVar[str]

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        made = super().__new__(cls)
        made._given = arguments, named
        return made

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if vars(cls).get("op_name"):
            claim(cls, cls.op_name)

    def __init__(self, **attributes: Any) -> None:
        self._attribute_names = tuple(attributes)
        self.__dict__.update(attributes)

    if TYPE_CHECKING:
        _given: tuple[tuple[Any, ...], dict[str, Any]]

        def __getattr__(self, name: str) -> Any:
            """An attribute given to the constructor."""

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes under CNTK's camel-case names."""
        return {_camel(name): getattr(self, name) for name in self._attribute_names}

    def set_attribute(self, name: str, value: Any) -> None:
        """Change an attribute by its camel-case name; later evaluations see it."""
        for field in self._attribute_names:
            if _camel(field) == name:
                setattr(self, field, value)
                self._give(field, value)
                return
        raise RuntimeError(f"{self.op_name} has no attribute '{name}'; it has {sorted(self.attributes)}")

    def constructor_arguments(self) -> dict[str, Any]:
        """The arguments of the constructor, by name, from which :meth:`made_of` recreates the operator.

        These are the arguments of the call, with changes by :meth:`set_attribute`.  An operator whose constructor takes objects that no
        file can store overrides this, and has a constructor that also takes what it returns.
        """
        positional, named = self._given
        bound = signature(self.__init__).bind(*positional, **named)  # type: ignore[misc]
        rest = _rest_of(bound.signature.parameters)
        others = bound.arguments.pop(rest, {}) if rest else {}
        return {**bound.arguments, **others}

    @classmethod
    def made_of(cls, arguments: Mapping[str, Any]) -> Self:
        """The operator whose :meth:`constructor_arguments` these are.

        Raises:
            Exception: its constructor does not take them.
        """
        taken = signature(cls.__init__)
        known = {name: arguments[name] for name in list(taken.parameters)[1:] if name in arguments}
        others = {name: value for name, value in arguments.items() if name not in known}
        rest = _rest_of(taken.parameters)
        bound = BoundArguments(taken, {"self": None, **known, **({rest: others} if rest else {})})
        return cls(*bound.args[1:], **({} if rest else others), **bound.kwargs)

    def _give(self, name: str, value: Any) -> None:
        """Record *value* as the constructor's argument of this name."""
        positional, named = self._given
        places = [place for place, known in enumerate(signature(self.__init__).parameters) if known == name]  # type: ignore[misc]
        if places and places[0] < len(positional):
            self._given = (*positional[: places[0]], value, *positional[places[0] + 1 :]), named
        else:
            self._given = positional, {**named, name: value}

    def copy(self) -> Self:
        """A copy for a cloned graph: its attributes are its own, so changing them does not change the original."""
        return copy.copy(self)

    def create_checkpoint(self) -> dict[str, Any]:
        """The state that it keeps between passes, such as its position in a stream of random numbers; empty for none."""
        return {}

    def restore_from_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Go on from what :meth:`create_checkpoint` returned.

        This is tried first on a shallow copy, so it must replace the operator's objects and not change them.

        Raises:
            Exception: it is something else.
        """

    @property
    def keeps_state(self) -> bool:
        """Whether it keeps something from pass to pass that is in checkpoints."""
        return type(self).create_checkpoint is not OpBase.create_checkpoint

    @property
    def has_effects(self) -> bool:
        """Whether forward does more than compute the result, or gives another one each time: see
        :class:`~cntk.core.operators.effects.Effect`."""
        return self.keeps_state

    def __call__(self, *operands: Any, name: str = "") -> Function:
        """Apply the op to variables, functions, numbers or arrays; return the Function."""
        made: Function = services.apply(self, operands, name)
        return made


def _rest_of(parameters: Mapping[str, Parameter]) -> str | None:
    """Name of the parameter that takes all other named arguments; None where there is none."""
    return next((name for name, one in parameters.items() if one.kind is Parameter.VAR_KEYWORD), None)


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
