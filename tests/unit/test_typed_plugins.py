"""Authors of plugins may have mypy check all of them: what they import from ``cntk.extend`` is typed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PARTS = ("core", "plugins", "backends", "readers", "learners")

PLUGIN = '''
from collections.abc import Sequence
from typing import Any

from cntk.extend import Context, Delay, Elementwise, Kernel, Layout, Op, Pass, Register, SequenceOp, Spec, Traits, View, hookimpl
from cntk.extend import operator, sample


class Twice(Elementwise):
    op_name = "Twice"
    in_place = (0,)
    traits = Traits(compares=True)

    def forward(self, ctx: Context, out: Any, x: Any) -> None:
        ctx.xp.multiply(x, 2, out=out)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, x: Any) -> None:
        ctx.xp.multiply(dy, 2, out=dx)


class Column(View):
    def infer(self, x: Spec) -> Spec:
        return x.but(shape=(*x.dims, 1))

    def view(self, x: Any, out_shape: tuple[int, ...]) -> Any:
        return x.reshape(out_shape)


class Pair(Op):
    def infer(self, left: Spec, right: Spec) -> Spec:
        return self.common(left, right)

    def forward(self, ctx: Context, out: Any, left: Any, right: Any) -> None:
        ctx.xp.add(left, right, out=out)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, left: Any, right: Any) -> None:
        for dx in grads:
            ctx.xp.copyto(dx, grad)


class Counted(SequenceOp):
    whole_sequences = True

    def infer(self, x: Spec) -> Spec:
        return x.but()

    def make_layout(self, layouts: Sequence[Layout | None], shapes: Sequence[tuple[int, ...]]) -> Layout:
        return Layout(shapes[0][0])


class Back(Delay):
    @property
    def steps_back(self) -> int:
        return 1

    def fill(self, ctx: Context, out: Any, initial: Any) -> None:
        out.fill(0)


class TwiceKernel:
    in_place = True

    @staticmethod
    def forward(op: Op, ctx: Context, out: Any, x: Any) -> None:
        op.forward(ctx, out, x)

    @staticmethod
    def backward(op: Op, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        op.backward(ctx, grad, grads, out, x)


KERNEL: Kernel = TwiceKernel


class Census(Pass):
    name = "census"


@operator(sample((3, 2), expected=lambda x: 2 * x))
def twice(x: Any, name: str = "") -> Any:
    """Twice the operand."""
    return Twice()(x, name=name)


class Plugin:
    @hookimpl
    def cntk_register_ops(self, register: Register) -> None:
        register("twice", twice)
'''

WRONG = """
from typing import Any

from cntk.extend import Kernel, View


class Column(View):
    def view(self, x: Any) -> Any:
        return x


class Half:
    @staticmethod
    def forward(op: Any, ctx: Any, out: Any, x: Any) -> None:
        pass


KERNEL: Kernel = Half
"""


@pytest.mark.slow
def test_mypy_finds_what_is_wrong_with_a_plugin_and_nothing_else(tmp_path: Path) -> None:
    tree = tmp_path / "tree" / "cntk"
    for part, to in (("api", tree), *((part, tree / part) for part in PARTS)):
        shutil.copytree(ROOT / part, to)
    shutil.copy(ROOT / "_cntk_py.py", tree.parent)
    shutil.copytree(ROOT / "examples" / "cntk-extras" / "src" / "cntk_extras", tmp_path / "cntk_extras")
    (tmp_path / "right.py").write_text(PLUGIN)
    (tmp_path / "wrong.py").write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "right.py", "wrong.py", "cntk_extras"]
    environment = {**os.environ, "MYPYPATH": str(tree.parent)}
    told = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300).stdout
    errors = [line for line in told.splitlines() if ": error: " in line]
    assert [(line.split(":")[0], line.rpartition("[")[2]) for line in errors] == [("wrong.py", "override]"), ("wrong.py", "assignment]")], (
        told
    )
