"""Whether tests notice when the kernel is wrong: one small change after another to a module, each with the tests that hold it.

A change is made while the module is imported, in a process of its own; files stay as they are.  What comes of it is kept in
build/mutants, so that a run that was broken off goes on; changes that no test noticed are tried again.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.machinery
import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import CodeType
from typing import Any

import hypothesis
import numba  # noqa: F401 - what is imported here need not be imported for each change
import numpy  # noqa: F401
import pytest
import scipy.sparse  # noqa: F401

ROOT = Path(__file__).resolve().parent.parent
MEMORY = 6 << 30
OPTIONS = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", "-W", "ignore::pytest.PytestAssertRewriteWarning"]

TESTS = {
    "core/program/differentiation.py": (
        "tests/unit/core/program/test_differentiation.py",
        "tests/backends/every/test_random_graphs.py",
        "tests/backends/every/test_recurrence.py",
    ),
    "core/program/ordering.py": (
        "tests/unit/core/program/test_ordering.py",
        "tests/unit/core/program/test_ordering_laws.py",
        "tests/backends/every/test_recurrence.py",
    ),
    "core/run/memory.py": ("tests/unit/core/run/test_memory.py",),
    "core/run/sizes.py": (
        "tests/unit/core/run/test_sizes.py",
        "tests/backends/every/test_recurrence.py",
        "tests/backends/every/test_sequence_ops.py",
    ),
}
"""By module the tests that hold it, the quickest first."""

OTHERS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
    ast.And: (ast.Or,), ast.Or: (ast.And,), ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Add,), ast.FloorDiv: (ast.Mult,),
    ast.LShift: (ast.RShift,), ast.RShift: (ast.LShift,), ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,),
}  # fmt: skip
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "bisect_left": "bisect_right"}


def variants(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in the place of a node."""
    match node:
        case ast.Compare():
            for i, operator in enumerate(node.ops):
                for other in OTHERS[type(operator)]:
                    yield changed(node, ops=[*node.ops[:i], other(), *node.ops[i + 1 :]])
        case ast.BoolOp(values=values):
            yield changed(node, op=OTHERS[type(node.op)][0]())
            for i in range(len(values)):
                rest = [*values[:i], *values[i + 1 :]]
                yield rest[0] if len(rest) == 1 else changed(node, values=rest)
        case ast.BinOp() | ast.AugAssign():
            for other in OTHERS.get(type(node.op), ()):
                yield changed(node, op=other())
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.IfExp(body=body, orelse=orelse):
            yield from (body, orelse)
        case ast.If() | ast.While():
            yield changed(node, test=ast.UnaryOp(ast.Not(), node.test))
        case ast.comprehension(ifs=[_, *_]):
            yield changed(node, ifs=[])
        case ast.Call(func=func, args=args, keywords=keywords):
            if isinstance(func, ast.Name) and func.id in CALLS:
                yield changed(node, func=ast.Name(CALLS[func.id], ast.Load()))
            if len(args) > 1:
                yield changed(node, args=[args[1], args[0], *args[2:]])
            for i in range(len(keywords)):
                yield changed(node, keywords=[*keywords[:i], *keywords[i + 1 :]])
    match node:
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Delete() | ast.Raise() | ast.Continue() | ast.Break():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
            yield ast.Pass()
        case ast.Return(value=ast.expr()):
            yield ast.Return(None)
        case ast.FunctionDef() if not any(isinstance(inner, (ast.Return, ast.Yield)) for inner in ast.walk(node)):
            yield changed(node, body=[ast.Pass()])


def changed(node: ast.AST, **fields: Any) -> ast.AST:
    made = copy.copy(node)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def places(node: ast.AST) -> Iterator[tuple[list[Any] | ast.AST, Any, ast.AST]]:
    """Where nodes stand that may be changed: what holds them, where in it, and the node; types and texts are left out."""
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "decorator_list"} or isinstance(value, ast.JoinedStr):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(field, value)]:
            if isinstance(child, ast.AST) and not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
                yield (value if isinstance(value, list) else node), index, child
                yield from places(child)


@dataclass(frozen=True)
class Mutant:
    """A module with one change."""

    path: Path
    line: int
    before: str
    after: str
    code: CodeType
    key: str


def mutants_of(path: Path) -> list[Mutant]:
    """All changes to a module, in the order of its lines."""
    tree, made = ast.parse(path.read_text()), {}
    for holder, at, node in list(places(tree)):
        for other in variants(node):
            put(holder, at, other)
            text = ast.unparse(tree)
            key = sha256(text.encode()).hexdigest()[:16]
            line = getattr(node, "lineno", None) or node.ifs[0].lineno  # type: ignore[attr-defined]
            code = compile(ast.fix_missing_locations(ast.parse(text)), str(path), "exec")
            made[key] = Mutant(path, line, ast.unparse(node), ast.unparse(other), code, key)
            put(holder, at, node)
    return sorted(made.values(), key=lambda mutant: (mutant.line, mutant.key))


def put(holder: list[Any] | ast.AST, at: Any, node: ast.AST) -> None:
    if isinstance(holder, list):
        holder[at] = node
    else:
        setattr(holder, at, node)


class Verdict:
    """A plugin of pytest that notes the first test that fails."""

    failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.failed:
            self.failed = f"{report.nodeid} (not collected)"


def tried(mutant: Mutant | None, tests: tuple[str, ...], seconds: int) -> str:
    """The first test that notices a change, an empty text where none does; None is no change."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _try(mutant, tests, seconds, writing)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return f"(killed by {signal.Signals(os.WTERMSIG(status)).name})"
    return told or ("" if os.WEXITSTATUS(status) == 0 else "(nothing ran)")


def _try(mutant: Mutant | None, tests: tuple[str, ...], seconds: int, writing: int) -> None:
    """Run the tests in this process, which ends with them, or by a signal where they take too long."""
    signal.alarm(seconds)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    original = importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: importlib.machinery.SourceFileLoader, name: str) -> CodeType | None:
        same = mutant is not None and Path(loader.path).resolve() == mutant.path
        return mutant.code if same and mutant is not None else original(loader, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    hypothesis.settings.register_profile(
        "mutants", derandomize=True, database=None, deadline=None, phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate]
    )
    hypothesis.settings.load_profile("mutants")
    verdict, status = Verdict(), 1
    try:
        status = pytest.main([*OPTIONS, *tests], plugins=[verdict])
    except BaseException as error:
        verdict.failed = verdict.failed or repr(error)
    os.write(writing, verdict.failed.encode())
    os._exit(int(status))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", default=sorted(TESTS), help=f"of {', '.join(sorted(TESTS))}; all if none is given")
    parser.add_argument("--sample", type=int, default=0, help="how many changes of each module are tried; 0 for all")
    parser.add_argument("--seed", type=int, default=1, help="which are drawn")
    parser.add_argument("--fresh", action="store_true", help="try again what tests have noticed before")
    options = parser.parse_args()
    os.chdir(ROOT)
    missed = 0
    for module in options.modules:
        mutants = mutants_of(ROOT / module)
        if 0 < options.sample < len(mutants):
            drawn = set(random.Random(options.seed).sample(range(len(mutants)), options.sample))
            mutants = [mutant for i, mutant in enumerate(mutants) if i in drawn]
        begin = time.monotonic()
        if failed := tried(None, TESTS[module], 600):
            sys.exit(f"{module}: its tests fail without any change: {failed}")
        limit = 20 + round(3 * (time.monotonic() - begin))
        file = ROOT / "build" / "mutants" / module.replace("/", "-").replace(".py", ".jsonl")
        file.parent.mkdir(parents=True, exist_ok=True)
        known = {} if options.fresh or not file.exists() else dict(map(json.loads, file.read_text().splitlines()))
        killed = 0
        for mutant in mutants:
            if not known.get(mutant.key):
                known[mutant.key] = tried(mutant, TESTS[module], limit)
                with file.open("a") as lines:
                    print(json.dumps([mutant.key, known[mutant.key]]), file=lines)
            killed += bool(known[mutant.key])
            if not known[mutant.key]:
                print(f"{module}:{mutant.line}: {mutant.before}\n    became: {mutant.after}", flush=True)
        missed += len(mutants) - killed
        print(f"{module}: {killed} of {len(mutants)} changes noticed, {killed / len(mutants):.0%}", flush=True)
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
