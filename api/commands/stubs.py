"""``cntk stubs``: what editors and type checkers need to know the names of installed plugins."""

from __future__ import annotations

import json
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from cntk.core.storage.files import write_file
from cntk.internal.stubs import HEADING, OF_ALL, can_be_had, left_out, of_others, stubs

from .arguments import Parser

PACKAGE = "cntk-stubs"


def run(arguments: Sequence[str]) -> int:
    """Let editors and type checkers know the names of installed plugins.

    Those of built-in plugins they know from the package itself.  What is made is a partial stub package (PEP 561), which mypy and pyright
    find beside installed packages.

    Args:
        arguments: ``--into FOLDER``, ``--check``, ``--remove``, ``--json``, or ``--help``.

    Returns:
        0, or with ``--check`` 1 where the stubs are not those of what is installed.

    Raises:
        OSError: the stubs cannot be written.
        FileExistsError: there is a package of stubs that something else has made.

    >>> import pathlib, tempfile
    >>> from cntk.commands.stubs import run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run(["--into", folder])
    ...     sorted(path.name for path in pathlib.Path(folder, "cntk-stubs").iterdir())[-2:]
    names of plugins of others: ...
    0
    ['py.typed', 'random']
    """
    parser = Parser(
        prog="cntk stubs",
        description="Let editors and type checkers know the names of installed plugins, by a package of stubs beside installed packages.",
    )
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="put the package there, for pyright typings in a project's folder")
    parser.add_argument("--json", action="store_true", help="print what was done for programs")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--check", action="store_true", help="write nothing; the exit status is 1 where the stubs are not up to date")
    ways.add_argument("--remove", action="store_true", help="remove the package")
    options = parser.parse_args(arguments)
    folder = (Path(sysconfig.get_path("purelib")) if options.into is None else options.into) / PACKAGE
    _check_is_own(folder)
    if options.remove:
        shutil.rmtree(folder, ignore_errors=not folder.exists())
        _tell(options.json, {"folder": str(folder), "removed": True}, f"removed {folder}")
        return 0
    wanted = {**stubs(OF_ALL, can_be_had), "py.typed": "partial\n"}
    is_current = wanted == _existing(folder)
    if not options.check and not is_current:
        shutil.rmtree(folder, ignore_errors=not folder.exists())
        for path, text in wanted.items():
            write_file(folder / path, [text.encode()])
    names, missing = of_others(), left_out()
    if missing:
        print(f"cntk stubs: no stub has {', '.join(missing)}, which stand in modules without one", file=sys.stderr)
    outcome = {"folder": str(folder), "names": names, "left_out": missing, "current": is_current or not options.check}
    state = "" if outcome["current"] else " are not up to date; cntk stubs makes them anew"
    _tell(options.json, outcome, f"names of plugins of others: {', '.join(names) or 'none'}; the stubs in {folder}{state}")
    return 0 if outcome["current"] else 1


def _tell(as_json: bool, outcome: dict[str, object], words: str) -> None:
    print(json.dumps(outcome, indent=2) if as_json else words)


def _existing(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in sorted(folder.rglob("*")) if path.is_file()}


def _check_is_own(folder: Path) -> None:
    """Refuse to write over, or remove, what this command has not made."""
    foreign = [path for path in folder.rglob("*.pyi") if not path.read_text("utf-8").startswith(HEADING + OF_ALL)]
    if foreign:
        raise FileExistsError(f"'{foreign[0]}' was not made by this command; --into puts the stubs elsewhere")
