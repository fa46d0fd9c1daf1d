"""``cntk plugins``: what plugins there are and what each registers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from cntk.core.extension.plugins import HOOK_PREFIX, PluginRecord, problems, records

from .arguments import Parser


def run(arguments: Sequence[str]) -> int:
    """List the plugins found and what each of them registers.

    Objects of other distributions' plugins are imported, to find those that cannot be.

    Args:
        arguments: ``--all`` for all that the built-in ones register, ``--json`` for a list that programs read, ``--broken`` for those
            plugins only that are broken, or of which something is left out.

    Returns:
        0, or with ``--broken`` 1 when there is a broken plugin.

    >>> from cntk.commands.plugins import run
    >>> run(["--broken"])
    no plugin is broken
    0
    """
    parser = Parser(prog="cntk plugins", description="List the plugins found and what each of them registers.")
    parser.add_argument("--all", action="store_true", help="also what the built-in ones register")
    parser.add_argument("--json", action="store_true", help="print a list that programs read")
    parser.add_argument("--broken", action="store_true", help="only those with something broken; the exit status is 1 when there is one")
    options = parser.parse_args(arguments)
    found = [(record, faults(record)) for record in sorted(records, key=lambda record: record.is_built_in)]
    shown = [(record, faulty) for record, faulty in found if faulty or not options.broken]
    if options.json:
        print(json.dumps([asdict(record) | {"faults": faulty} for record, faulty in shown], indent=2))
    elif not shown:
        print("no plugin is broken" if options.broken else "no plugins")
    else:
        print("\n".join(_lines(shown, options.all)))
    return 1 if options.broken and shown else 0


def faults(record: PluginRecord) -> list[str]:
    """What is wrong with a plugin: why it is broken, what of it is left out, and what cannot be imported where it is another's."""
    is_checked = record.state == "loaded" and not record.is_built_in
    return [*([record.error] if record.error else []), *record.warnings, *(problems(record) if is_checked else [])]


def _lines(shown: Iterable[tuple[PluginRecord, list[str]]], in_full: bool) -> list[str]:
    """Plugins of others in full, those that are built in by name unless something is wrong with them, or all is asked for."""
    lines, named = [], []
    for record, faulty in shown:
        if record.is_built_in and record.state == "loaded" and not faulty and not in_full:
            named.append(record.name)
        else:
            lines += _describe(record, faulty)
    return [*lines, f"built in: {', '.join(named)}   (--all shows what they register)"] if named else lines


def _describe(record: PluginRecord, faulty: Iterable[str]) -> list[str]:
    lines = [f"{record.name} ({record.distribution} {record.version}, {record.value}): {record.state}"]
    lines += [f"    {fault}" for fault in faulty]
    for hook, names in record.provides.items():
        kind = hook.removeprefix(HOOK_PREFIX).replace("_", " ")
        lines.append(f"    {kind}: {', '.join(sorted(names))}")
    return lines
