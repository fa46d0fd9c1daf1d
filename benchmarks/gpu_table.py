"""The table of what was measured on a GPU: ``python benchmarks/gpu_table.py`` writes it into docs/gpu.md, from the committed results."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpu_plan import EAGER, GRAPH, GRAPH_FAST, OURS, OURS_FAST
from table import line, number, write

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "benchmarks" / "measured" / "gpu.json", ROOT / "docs" / "gpu.md"
BEGIN, END = "<!-- begin: made by benchmarks/gpu_table.py -->", "<!-- end -->"

FLOPS, BANDWIDTH = 67e12, 4.3e12
"""Operations of float32 and bytes of memory a second of an H200: of the first the vendor's figure, of the second a copy that was timed."""

HEAD = ("training step, ms", "opencntk", "PyTorch", "PyTorch, graph", "best : ours", "kernels", "theirs", "busy, µs", "theirs", "floor, µs")
AGAIN_HEAD = ("both on one machine, ms", "opencntk", "PyTorch", "PyTorch, graph", "best : ours")
FAST_HEAD = ("with TF32 and engines by their times, ms", "opencntk", "PyTorch, graph", "theirs : ours")


def main() -> None:
    content = json.loads(RESULTS.read_text(encoding="utf-8"))
    write(PAGE, page(content), BEGIN, END)


def page(content: dict[str, Any]) -> str:
    """The tables, and what they were measured on."""
    rows, again = _by_workload(content["rows"]), _by_workload(content.get("rows_again", ()))
    exact = [_exact(ways) for ways in rows.values() if OURS in ways]
    fast = [_fast(ways) for ways in rows.values() if OURS_FAST in ways and GRAPH_FAST in ways]
    versions = ", ".join(f"{name} {version}" for name, version in content["measured_on"]["versions"].items() if version)
    where = f"{content['measured_on']['backend']}; {versions}. {content.get('note', '')}".rstrip()
    repeated = [_exact(ways)[: len(AGAIN_HEAD)] for ways in again.values() if OURS in ways]
    tables = [
        *_table(HEAD, exact),
        "",
        *([*_table(AGAIN_HEAD, repeated), ""] if repeated else []),
        *([*_table(FAST_HEAD, fast), ""] if fast else []),
    ]
    return "\n".join([*tables, where])


def _by_workload(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rows by workload and way."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        found.setdefault(row["workload"], {})[row["way"]] = row
    return found


def _table(head: tuple[str, ...], rows: Iterable[list[str]]) -> list[str]:
    return [line(head), line(["---"] * len(head)), *map(line, rows)]


def _exact(ways: dict[str, Any]) -> list[str]:
    ours, theirs = ways[OURS], [ways[way] for way in (EAGER, GRAPH) if way in ways]
    best = min(theirs, key=lambda row: row["median_ms"], default=None)
    floor = 1e6 * max(ours["flop"] / FLOPS, ours["bytes"] / BANDWIDTH)
    return [
        ours["title"].partition(": training step")[0],
        number(ours["median_ms"]),
        *(number(ways[way]["median_ms"]) if way in ways else "" for way in (EAGER, GRAPH)),
        f"{best['median_ms'] / ours['median_ms']:.2f}" if best else "",
        *_of(ours, best, "kernels"),
        *_of(ours, best, "busy_us"),
        number(floor) if floor else "",
    ]


def _of(ours: dict[str, Any], theirs: dict[str, Any] | None, what: str) -> list[str]:
    return [f"{row[what]:.0f}" if row else "" for row in (ours, theirs)]


def _fast(ways: dict[str, Any]) -> list[str]:
    ours, theirs = ways[OURS_FAST]["median_ms"], ways[GRAPH_FAST]["median_ms"]
    return [ways[OURS_FAST]["title"].partition(": training step")[0], number(ours), number(theirs), f"{theirs / ours:.2f}"]


if __name__ == "__main__":
    main()
