"""Recognises attention in a program: a product, the softmax of a product before it, and between these two a scale, and a bias or a mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...core.common.dtypes import is_half
from ...core.common.shape import broadcast
from ...core.common.thresholds import thresholds
from ...core.graph.variable import Constant
from ...core.operators.abilities import Expression
from ...core.program.slots import FOLDED, HELD, Instruction, Slot
from ...core.types.axis import static_axis_number
from ...core.types.spec import Spec
from .arithmetic import ElementDivide, ElementTimes, Plus
from .attention import Attention
from .attention_heads import AttentionHeads
from .comparison import Select
from .product import Times, TransposeTimes
from .slicing import Slice, positions
from .softmax import Softmax


class Scores(NamedTuple):
    """Scores that a softmax is of.

    Attributes:
        product: the product of queries and keys.
        scaling: what is done with it, as in :class:`~.attention.Attention`.
        others: slots of scale and bias, as far as there are any.
        biased: whether there is a bias.
        mask: slots of the number that replaces scores and of the mask that says where, as far as there are any.
    """

    product: Instruction
    scaling: str = "none"
    others: tuple[int, ...] = ()
    biased: bool = False
    mask: tuple[int, ...] = ()


def attention_at(own: Instruction, expression: Expression) -> tuple[Attention, tuple[int, ...]] | None:
    """The operator that computes a product with all that is before it, and its operands; None where that is not attention."""
    if type(own.op) is not Times:
        return None
    softmax, value, slots = expression.maker(own.inputs[0]), own.inputs[1], expression.slots
    if softmax is None or type(softmax.op) is not Softmax or not _is_of_matrices(own, slots):
        return None
    if softmax.op.axis is None or static_axis_number(softmax.op.axis, 2, softmax.op.op_name) != 1:
        return None
    scores = _masked(softmax.inputs[0], expression) or _biased(softmax.inputs[0], expression) or _scaled(softmax.inputs[0], expression)
    if scores is None or not _is_of_matrices(scores.product, slots):
        return None
    sizes = (slots[index].spec.dims[1] for index in (scores.product.inputs[0], value))
    if not all(0 <= size < thresholds.attention_apart for size in sizes):
        return None
    turned = type(scores.product.op) is Times
    attributes = {"turned": turned, "scaling": scores.scaling, "biased": scores.biased}
    op = AttentionHeads(**attributes, heads=1, masked=True) if scores.mask else Attention(**attributes)
    return op, (*scores.product.inputs, value, *scores.others, *scores.mask)


def heads_at(own: Instruction, expression: Expression) -> tuple[AttentionHeads, tuple[int, ...]] | None:
    """The operator that computes heads side by side, whose operands are columns side by side; None where that is not so."""
    products = [expression.maker(slot) for slot in own.inputs]
    found = [None if product is None else attention_at(product, expression) for product in products]
    heads = [head for head in found if head is not None]
    if len(heads) < 2 or len(heads) < len(found):
        return None
    op = heads[0][0]
    if op.turned or any(other.attributes != op.attributes for other, _ in heads[1:]):
        return None
    matrices = [_divided([slots[number] for _, slots in heads], expression) for number in range(3)]
    lasts = {slots[-1] for _, slots in heads} if op.biased or op.masked else set()
    if None in matrices or len(lasts) > 1:
        return None
    scales = () if op.scaling == "none" else tuple(slots[3] for _, slots in heads)
    numbers = tuple(slots[-2] for _, slots in heads) if op.masked else ()
    whole = AttentionHeads(turned=False, scaling=op.scaling, biased=op.biased, heads=len(heads), masked=op.masked)
    return whole, (*(index for index in matrices if index is not None), *scales, *numbers, *lasts)


def _divided(parts: Sequence[int], expression: Expression) -> int | None:
    """The matrix that is divided into these columns, in this order; None if there is none."""
    slices = [expression.maker(slot) for slot in parts]
    whole = None if slices[0] is None else slices[0].inputs[0]
    if whole is None:
        return None
    columns = expression.slots[whole].spec.dims[-1]
    size = columns // len(parts)
    if columns < 0 or size * len(parts) < columns:
        return None
    for number, one in enumerate(slices):
        if one is None or type(one.op) is not Slice or one.inputs[0] != whole or len(one.op.cuts) != 1:
            return None
        ((axis, *cut),) = one.op.cuts
        if static_axis_number(axis, 2, one.op.op_name) != 1 or positions(columns, *cut) != (number * size, (number + 1) * size, 1):
            return None
    return whole


def _masked(slot: int, expression: Expression) -> Scores | None:
    """Scores that a constant number replaces where a mask, which is no larger than they are, is 0."""
    select, slots = expression.maker(slot), expression.slots
    if select is None or type(select.op) is not Select:
        return None
    mask, own, number = select.inputs
    scores = _scaled(own, expression)
    if scores is None or not _is_bias(slots[mask].spec, slots[own].spec) or not _is_number(slots[number]):
        return None
    return scores._replace(mask=(number, mask))


def _biased(slot: int, expression: Expression) -> Scores | None:
    """Scores with a bias, which is no larger than they are."""
    plus, slots = expression.maker(slot), expression.slots
    if plus is None or type(plus.op) is not Plus:
        return None
    for own, bias in (plus.inputs, plus.inputs[::-1]):
        scores = _scaled(own, expression)
        if scores is not None and _is_bias(slots[bias].spec, slots[own].spec):
            return scores._replace(others=(*scores.others, bias), biased=True)
    return None


def _scaled(slot: int, expression: Expression) -> Scores | None:
    """Scores that are a product, or one times or divided by a constant number."""
    made, slots = expression.maker(slot), expression.slots
    if made is None:
        return None
    if type(made.op) in (Times, TransposeTimes):
        return Scores(made)
    if type(made.op) not in (ElementTimes, ElementDivide):
        return None
    scaling = "times" if type(made.op) is ElementTimes else "divided"
    for own, scale in (made.inputs, made.inputs[::-1])[: 2 if scaling == "times" else 1]:
        product = expression.maker(own)
        if product is not None and type(product.op) in (Times, TransposeTimes) and _is_number(slots[scale]):
            return Scores(product, scaling, (scale,))
    return None


def _is_of_matrices(product: Instruction, slots: Sequence[Slot]) -> bool:
    """Whether a product multiplies two dense matrices of each row."""
    specs = [slots[index].spec for index in product.inputs]
    same_rows = bool(specs[0].axes) and specs[0].axes == specs[1].axes
    of_matrices = all(spec.rank == 2 and not spec.sparse and not is_half(spec.dtype) for spec in specs)
    return same_rows and of_matrices and product.op.output_rank == 1


def _is_number(slot: Slot) -> bool:
    """Whether it is a single number that has no gradient."""
    is_constant = slot.kind == FOLDED or (slot.kind == HELD and isinstance(slot.variable, Constant))
    return is_constant and slot.spec.axes == () and all(dim == 1 for dim in slot.spec.dims) and slot.spec.rank <= 2


def _is_bias(bias: Spec, scores: Spec) -> bool:
    """Whether the sum has the shape of the scores; of keys there are as many as values, so their free dimension is one."""
    if bias.sparse or bias.axes not in ((), scores.axes) or broadcast(bias.dims, scores.dims) != scores.dims:
        return False
    return len(bias.dims) < 2 or bias.dims[0] >= 0
