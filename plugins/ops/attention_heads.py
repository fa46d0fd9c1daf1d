"""Attention with several heads in one operator: heads are columns side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...core.types.context import Context
from ...core.types.spec import Spec
from .attention import Attention


class AttentionHeads(Attention):
    """Attention of each head, whose queries, keys, values and results are some columns of all.

    Operands are queries ``(queries, heads * depth)``, keys ``(keys, heads * depth)``, values ``(keys, heads * columns)``, a scale for each
    head, and a bias for all of them, as the attributes say.

    Attributes:
        heads: how many heads there are.
    """

    op_name = "AttentionHeads"
    heads: int

    def infer(self, query: Spec, key: Spec, value: Spec, *others: Spec) -> Spec:
        for spec, name in ((query, "queries"), (value, "values")):
            if spec.dims[1] % self.heads:
                raise ValueError(f"{spec.dims[1]} columns of {name} cannot be divided between {self.heads} heads")
        return super().infer(query, key, value, *others)

    def flop(self, ctx: Context, out: Any, *inputs: Any) -> int:
        """Two products over all heads and, for each score of each head, as many operations as a softmax has."""
        query, key = inputs[:2]
        scores = query.shape[0] * query.shape[1] * key.shape[1]
        return int(scores * (2 * query.shape[2] + 2 * out.shape[2] + 5 * self.heads))

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        for head, operands in enumerate(self._operands(inputs)):
            self._one.forward(ctx, self.columns(out, head), *operands)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        bias_grad = grads[-1] if self.biased else None
        part = None if bias_grad is None else ctx.scratch("gradient of bias", bias_grad.shape, bias_grad.dtype)
        for head, operands in enumerate(self._operands(inputs)):
            own_grads = [None if dx is None else self.columns(dx, head) for dx in grads[:3]]
            own_grads += [*([] if self.scaling == "none" else [None]), *([part] if self.biased else [])]
            result = self.columns(out, head)
            self._one.forward(ctx, result, *operands)  # which keeps this head's weights
            self._one.backward(ctx, self.columns(grad, head), own_grads, result, *operands)
            if bias_grad is not None and head == 0:
                ctx.xp.copyto(bias_grad, part)
            elif bias_grad is not None:
                ctx.xp.add(bias_grad, part, out=bias_grad)

    def columns(self, x: Any, head: int) -> Any:
        """View a head's columns."""
        size = x.shape[-1] // self.heads
        return x[..., head * size : (head + 1) * size]

    def scales(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """The scales of heads, none where there is none."""
        return () if self.scaling == "none" else inputs[3 : 3 + self.heads]

    @property
    def _one(self) -> Attention:
        """The operator of a single head."""
        return Attention(turned=self.turned, scaling=self.scaling, biased=self.biased)

    def _operands(self, inputs: Sequence[Any]) -> Iterator[list[Any]]:
        """The operands of each head."""
        scales = self.scales(inputs)
        for head in range(self.heads):
            matrices = [self.columns(x, head) for x in inputs[:3]]
            yield [*matrices, *scales[head : head + 1], *(inputs[-1:] if self.biased else ())]
