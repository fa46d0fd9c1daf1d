"""``cntk plugins``: what plugins there are and what each registers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict

from cntk.core.plugins import PluginRecord, records

HOOK_PREFIX = "cntk_register_"


def run(arguments: Sequence[str]) -> int:
    """List the plugins found and what each of them registers.

    Args:
        arguments: ``--json`` for a list that programs read, ``--broken`` for the broken plugins only.

    Returns:
        0, or with ``--broken`` 1 when there is a broken plugin.

    >>> from cntk.commands.plugins import run
    >>> run(["--broken"])
    no plugin is broken
    0
    """
    parser = argparse.ArgumentParser(prog="cntk plugins", description="List the plugins found and what each of them registers.")
    parser.add_argument("--json", action="store_true", help="print a list that programs read")
    parser.add_argument("--broken", action="store_true", help="only the broken ones; the exit status is 1 when there is one")
    options = parser.parse_args(arguments)
    shown = [record for record in records if record.state == "broken" or not options.broken]
    if options.json:
        print(json.dumps([asdict(record) for record in shown], indent=2))
    elif shown:
        print("\n".join(line for record in shown for line in _describe(record)))
    else:
        print("no plugin is broken" if options.broken else "no plugins")
    return 1 if options.broken and shown else 0


def _describe(record: PluginRecord) -> list[str]:
    lines = [f"{record.name} ({record.distribution} {record.version}, {record.value}): {record.state}"]
    if record.error:
        lines.append(f"    {record.error}")
    for hook, names in record.provides.items():
        kind = hook.removeprefix(HOOK_PREFIX).replace("_", " ")
        lines.append(f"    {kind}: {', '.join(sorted(names))}")
    return lines
