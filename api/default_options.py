"""Default options of layers and variables."""

from __future__ import annotations

from cntk.core.common.options import (
    default_options,
    default_options_for,
    default_override_or,
    get_default_override,
    get_global_option,
    is_default_override,
    set_global_option,
)

__all__ = [
    "default_options",
    "default_options_for",
    "default_override_or",
    "get_default_override",
    "get_global_option",
    "is_default_override",
    "set_global_option",
]
