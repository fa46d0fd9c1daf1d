"""Attention with several heads in one operator: heads are columns side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...core.operators.op import ALL, Which
from ...core.types.context import Context
from ...core.types.spec import Spec
from .attention import Attention


class MaskedAttention(Attention):
    """Attention in which a number replaces scores where a mask is 0; these two are the last operands."""

    op_name = "MaskedAttention"
    masked = True


class AttentionHeads(Attention):
    """Attention of each head, whose queries, keys, values and results are some columns of all.

    Operands are queries ``(queries, heads * depth)``, keys ``(keys, heads * depth)``, values ``(keys, heads * columns)``, a scale for each
    head, and a bias for all of them or a score for each and a mask for all, as the attributes say.

    Attributes:
        heads: how many heads there are.
        masked: whether scores are replaced by a constant number where a mask, which broadcasts to ``(queries, keys)``, is 0.
    """

    op_name = "AttentionHeads"
    heads: int
    masked: bool

    @property
    def gradient_inputs(self) -> Which:
        """All but masks and numbers."""
        return (0, 1, 2) if self.masked else ALL

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
            own_grads += [None] * (len(operands) - 3 - self.biased) + [part] * self.biased
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

    def numbers(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """The score of each head where the mask is 0, none without a mask."""
        return inputs[-1 - self.heads : -1] if self.masked else ()

    @property
    def _one(self) -> Attention:
        """The operator of a single head."""
        kind = MaskedAttention if self.masked else Attention
        return kind(turned=self.turned, scaling=self.scaling, biased=self.biased)

    def _operands(self, inputs: Sequence[Any]) -> Iterator[list[Any]]:
        """The operands of each head."""
        scales, numbers, has_last = self.scales(inputs), self.numbers(inputs), self.biased or self.masked
        for head in range(self.heads):
            matrices = [self.columns(x, head) for x in inputs[:3]]
            yield [*matrices, *scales[head : head + 1], *numbers[head : head + 1], *(inputs[-1:] if has_last else ())]
