"""The ``cntk`` program: one command a registered name, those of other distributions among them."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches

from cntk.core.extension import plugins
from cntk.core.extension.hookspecs import Command, Register, hookimpl

SUCCESS, FAILED, USAGE_ERROR, INTERRUPTED = 0, 1, 2, 130
"""Exit statuses."""

USAGE = "usage: cntk COMMAND [arguments]   (cntk COMMAND --help tells more)"


@hookimpl
def cntk_register_commands(register: Register) -> None:
    register("plugins", "cntk.commands.plugins:run")
    register("bench", "cntk.commands.bench:run")
    register("compile", "cntk.commands.compile:run")
    register("completion", "cntk.commands.completion:run")
    register("convert", "cntk.commands.convert:run")
    register("ctf2bin", "cntk.commands.ctf2bin:run")
    register("doctor", "cntk.commands.doctor:run")
    register("launch", "cntk.commands.launch:run")
    register("new", "cntk.commands.new:run")
    register("new-plugin", "cntk.commands.new_plugin:run")
    register("predict", "cntk.commands.predict:run")
    register("serve", "cntk.commands.serve:run")
    register("show", "cntk.commands.show:run")
    register("stubs", "cntk.commands.stubs:run")
    register("tune", "cntk.commands.tune:run")
    register("view", "cntk.commands.view:run")
    register("watch", "cntk.commands.watch:run")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: the command's name and what follows it; those of the process when None.

    Returns:
        The exit status: that of the command, 0 for success; 2 when there is no such command; 1 when it raised a ValueError, an OSError or,
        as readers of damaged files do, a RuntimeError, which is printed in one line, or when its output is a closed pipe; 130 when it was
        interrupted.  With ``CNTK_STRICT_PLUGINS=1`` errors are raised.

    Raises:
        SystemExit: with 2, arguments of the command are wrong, or with 0, it was asked for help.

    >>> from cntk.cli import main
    >>> main(["plugin"])
    2
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    name = given[0] if given else "--help"
    try:
        with _short_warnings(name):
            status = _run(name, given[1:])
        print(end="", flush=True)  # a closed output is no file that could be flushed
    except BrokenPipeError:
        _close_output()
        return FAILED
    except (ValueError, OSError, ImportError, RuntimeError) as error:
        if plugins.is_strict():
            raise
        print(f"cntk {name}: {one_line(error)}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print(f"cntk {name}: interrupted", file=sys.stderr)
        return INTERRUPTED
    return status


def _run(name: str, arguments: list[str]) -> int:
    if name in ("-h", "--help"):
        print(_help())
        return SUCCESS
    if name == "--version":
        print(_version())
        return SUCCESS
    if name not in plugins.commands:
        near = get_close_matches(name, list(plugins.commands), 1)
        print(
            f"cntk: there is no command '{name}'; {f'did you mean {near[0]}? ' if near else ''}there are {', '.join(plugins.commands)}",
            file=sys.stderr,
        )
        return USAGE_ERROR
    command: Command = plugins.commands.get(name)
    return int(command(arguments) or SUCCESS)


def one_line(error: BaseException) -> str:
    """The message of an error in one line; that of the system with the file in front.

    >>> from cntk.cli import one_line
    >>> one_line(FileNotFoundError(2, "No such file or directory", "a.dnn"))
    "'a.dnn': No such file or directory"
    """
    if isinstance(error, OSError) and error.filename is not None:
        return f"'{error.filename}': {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def _short_warnings(name: str) -> Iterator[None]:
    """Warnings in one line each, as errors are: lines of this package's code tell a user nothing."""
    usual = warnings.formatwarning
    warnings.formatwarning = lambda message, *place, **more: f"cntk {name}: {' '.join(str(message).split())}\n"
    try:
        yield
    finally:
        warnings.formatwarning = usual


def _close_output() -> None:
    """Prevent further writing to standard output, which Python would try once more when it exits."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _help() -> str:
    lines = [USAGE, "", "commands:"]
    lines += [f"  {name:12} {_summary(name)}" for name in plugins.commands]
    return "\n".join(lines)


def _summary(name: str) -> str:
    """First line of a command's docstring, or the error of a plugin's command that cannot be imported."""
    try:
        documentation = plugins.commands.get(name).__doc__ or ""
    except Exception as error:
        return f"(of {plugins.commands.owner(name)}; cannot be imported: {error})"
    return documentation.strip().partition("\n")[0]


def _version() -> str:
    from importlib.metadata import version

    return f"{plugins.DISTRIBUTION} {version(plugins.DISTRIBUTION)}"
