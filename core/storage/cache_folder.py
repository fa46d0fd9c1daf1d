"""The user's folder for files that can be recreated."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def user_cache(name: str) -> Path | None:
    """A program's folder for files that can be recreated, which need not exist; None if the user has no home.

    Args:
        name: the program's.
    """
    if sys.platform == "win32":
        local, home = _absolute(os.environ.get("LOCALAPPDATA")), home_folder()
        return local / name if local else home / "AppData" / "Local" / name if home else None
    given, home = _absolute(os.environ.get("XDG_CACHE_HOME")), home_folder()
    if given:
        return given / name
    if home is None:
        return None
    return home / "Library" / "Caches" / name if sys.platform == "darwin" else home / ".cache" / name


def home_folder() -> Path | None:
    """The user's home; None if there is none.  Relative paths are ignored, since they depend on the working folder."""
    return _absolute(os.environ.get("HOME")) or _registered_home()


def _registered_home() -> Path | None:
    if sys.platform == "win32":
        return _absolute(os.path.expanduser("~"))
    import pwd

    try:
        return _absolute(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        return None


def _absolute(given: str | None) -> Path | None:
    return Path(given) if given and os.path.isabs(given) else None
