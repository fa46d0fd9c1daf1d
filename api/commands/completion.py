"""``cntk completion``: what lets a shell complete commands and their options."""

from __future__ import annotations

import argparse
import io
import shlex
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout, suppress
from typing import NamedTuple, NoReturn
from unittest import mock

from cntk.core.extension import plugins
from cntk.core.extension.hookspecs import Command

from .arguments import Parser

INSTALL = {
    "bash": "cntk completion bash >> ~/.bashrc",
    "zsh": "cntk completion zsh >> ~/.zshrc",
    "fish": "cntk completion fish > ~/.config/fish/completions/cntk.fish",
}


def run(arguments: Sequence[str]) -> int:
    """Print a script by which a shell completes commands, their options, and files.

    The script has the commands and options of installed plugins; print it anew when others are installed.

    Args:
        arguments: ``bash``, ``zsh`` or ``fish``, or ``--help``.

    Returns:
        0.

    >>> from cntk.commands.completion import run
    >>> run(["fish"])
    complete -c cntk -n __fish_use_subcommand -f
    ...
    0
    """
    parser = Parser(
        prog="cntk completion",
        description="Print a script by which a shell completes commands, their options, and files.",
        epilog="\n".join(["for good:", *(f"  {line}" for line in INSTALL.values())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=SCRIPTS, help="the shell")
    options = parser.parse_args(arguments)
    print("\n".join(SCRIPTS[options.shell]([command_of(name) for name in plugins.commands])))
    return 0


class Option(NamedTuple):
    """An option of a command: how it is written, what it is for, and the values it may have, if these are few."""

    words: tuple[str, ...]
    summary: str
    choices: tuple[str, ...]


class Described(NamedTuple):
    """A command: its name, what it does, its options, and the words it takes without an option's name."""

    name: str
    summary: str
    options: tuple[Option, ...]
    words: tuple[str, ...]


class _Asked(BaseException):
    """Ends a command as soon as it would read its arguments."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def command_of(name: str) -> Described:
    """What is known of a command: the options of its parser, where it reads its arguments by argparse; of a broken one its name."""
    try:
        command = plugins.commands.get(name)
    except (ImportError, TypeError):
        return Described(name, "", (), ())
    summary = (command.__doc__ or "").strip().partition("\n")[0]
    parser = _parser_of(command)
    if parser is None:
        return Described(name, summary, (), ())
    options: list[Option] = []
    words: list[str] = []
    for action in parser._actions:
        choices = tuple(map(str, action.choices or ()))
        if action.option_strings:
            options.append(Option(tuple(action.option_strings), _help(parser, action), choices))
        else:
            words += choices
    return Described(name, summary, tuple(options), tuple(words))


def _parser_of(command: Command) -> argparse.ArgumentParser | None:
    """The parser that a command makes before it does anything else."""

    def ask(parser: argparse.ArgumentParser, *arguments: object, **named: object) -> NoReturn:
        raise _Asked(parser)

    with mock.patch.object(argparse.ArgumentParser, "parse_args", ask), suppress(Exception, SystemExit), redirect_stdout(io.StringIO()):
        try:
            command(["--help"])  # one that does not use argparse does no more than print its help
        except _Asked as asked:
            return asked.parser
    return None


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return " ".join(parser._get_formatter()._expand_help(action).split()) if action.help else ""


def _bash(commands: Sequence[Described]) -> Iterator[str]:
    yield "_cntk() {"
    yield "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options= words="
    yield "  COMPREPLY=()"
    yield "  if [ $COMP_CWORD = 1 ]; then"
    yield f'    COMPREPLY=($(compgen -W {shlex.quote(" ".join(["--help", "--version", *(one.name for one in commands)]))} -- "$current"))'
    yield "    return"
    yield "  fi"
    yield '  case "${COMP_WORDS[1]} $before" in'
    for command in commands:
        for option in command.options:
            if option.choices:
                places = "|".join(shlex.quote(f"{command.name} {word}") for word in option.words)
                yield f'    {places}) COMPREPLY=($(compgen -W {shlex.quote(" ".join(option.choices))} -- "$current")); return;;'
    yield "  esac"
    yield '  case "${COMP_WORDS[1]}" in'
    for command in commands:
        options = " ".join(word for option in command.options for word in option.words)
        yield f"    {shlex.quote(command.name)}) options={shlex.quote(options)} words={shlex.quote(' '.join(command.words))};;"
    yield "  esac"
    yield '  case "$current" in'
    yield '    -*) COMPREPLY=($(compgen -W "$options" -- "$current"));;'
    yield '    *) COMPREPLY=($(compgen -W "$words" -- "$current"));;'
    yield "  esac"
    yield "}"
    yield "complete -o default -F _cntk cntk"  # files where there is nothing else


def _zsh(commands: Sequence[Described]) -> Iterator[str]:
    yield "autoload -U +X compinit && compinit"
    yield "autoload -U +X bashcompinit && bashcompinit"
    yield from _bash(commands)


def _fish(commands: Sequence[Described]) -> Iterator[str]:
    yield "complete -c cntk -n __fish_use_subcommand -f"
    for command in commands:
        yield f"complete -c cntk -n __fish_use_subcommand -a {_quoted(command.name)} -d {_quoted(command.summary)}"
        here = _quoted(f"__fish_seen_subcommand_from {command.name}")
        for option in command.options:
            names = " ".join(f"-l {word[2:]}" if word.startswith("--") else f"-s {word[1:]}" for word in option.words)
            values = f" -x -a {_quoted(' '.join(option.choices))}" if option.choices else ""
            yield f"complete -c cntk -n {here} {names}{values} -d {_quoted(option.summary)}"
        if command.words:
            yield f"complete -c cntk -n {here} -a {_quoted(' '.join(command.words))}"


def _quoted(text: str) -> str:
    """A text as fish quotes it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
