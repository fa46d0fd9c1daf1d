"""What notebooks show of an object in place of its ``repr``."""

from __future__ import annotations

from typing import Any

from .services import services


class Displayed:
    """Base of objects that notebooks show by pictures and tables; what these are is up to higher parts."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """By MIME type what is shown, as IPython asks for it; *include* and *exclude* are types that are wanted or not."""
        bundle: dict[str, str] = services.displayed(self)
        return {kind: held for kind, held in bundle.items() if kind in (include or bundle) and kind not in (exclude or ())}
