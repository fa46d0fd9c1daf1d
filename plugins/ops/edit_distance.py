"""Edit distance of sequences of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.shape import format_shape
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.op import Op, Traits
from ...core.operators.samples import Operand, operator, sample
from ...core.types.context import Context
from ...core.types.layout import Layout
from ...core.types.sparse import SparseRows
from ...core.types.spec import Spec, merge_dtypes


class EditDistanceError(Op):
    """Number of edits that turn the classes of the first operand's sequences into those of the second's, scaled to the first's steps."""

    op_name = "EditDistanceError"
    gradient_inputs = ()
    sparse_inputs = (0, 1)
    traits = Traits(expands_operands=False)

    def __init__(
        self,
        substitution_penalty: float,
        deletion_penalty: float,
        insertion_penalty: float,
        squash_inputs: bool,
        tokens_to_ignore: Sequence[int],
    ) -> None:
        super().__init__()
        self.substitution_penalty = float(substitution_penalty)
        self.deletion_penalty = float(deletion_penalty)
        self.insertion_penalty = float(insertion_penalty)
        self.squash_inputs = bool(squash_inputs)
        self.tokens_to_ignore = [int(token) for token in tokens_to_ignore]

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes under the names that CNTK gives them."""
        return {
            "SubstitutionPenalty": self.substitution_penalty,
            "DeletionPenalty": self.deletion_penalty,
            "InsertionPenalty": self.insertion_penalty,
            "SquashInputs": self.squash_inputs,
            "TokensToIgnore": self.tokens_to_ignore,
        }

    def infer(self, a: Spec, b: Spec) -> Spec:
        if not a.dims or a.rank != b.rank or any(m != n and min(m, n) >= 0 for m, n in zip(a.dims, b.dims, strict=True)):
            raise ValueError(
                f"the operands have the shapes {format_shape(a.dims)} and {format_shape(b.dims)}; "
                "expected scores of the same classes, such as shape [5] each"
            )
        if () in (a.axes, b.axes):
            raise ValueError("both operands must have a batch axis; with a sequence axis a sample is a sequence, else a single step")
        unknown = None in (a.axes, b.axes)
        return Spec((), merge_dtypes((a, b)), None if unknown else ())

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        layouts = [layout for layout in ctx.layouts if layout is not None]
        if layouts[0].samples != layouts[1].samples:
            raise ValueError(f"the operands have {layouts[0].samples} and {layouts[1].samples} sequences; each needs its counterpart")
        left, right = (self._tokens(ctx, x, layout) for x, layout in zip(inputs, layouts, strict=True))
        tokens = sum(len(sequence) for sequence in right)
        out[...] = self._edits(left, right) * layouts[0].rows / max(1, tokens)

    def _tokens(self, ctx: Context, scores: Any, layout: Layout) -> list[Any]:
        """The classes of each sequence that are left after squashing and ignoring."""
        classes = ctx.backend.to_numpy(_largest(ctx, scores))
        if not layout.is_sequence:
            return [self._left_over(classes[i : i + 1]) for i in range(len(classes))]
        return [self._left_over(tokens) for tokens in np.split(classes[layout.unpack_index], layout.splits)]

    def _left_over(self, tokens: Any) -> Any:
        if self.squash_inputs:
            tokens = tokens[np.append(True, tokens[1:] != tokens[:-1])]
        return tokens[~np.isin(tokens, self.tokens_to_ignore)]

    def _edits(self, left: list[Any], right: list[Any]) -> int:
        """Number of edits on the cheapest paths from *left* to *right*, summed over the sequences.

        Cells of the table of prefixes with i tokens of the left and j of the right sequence are worked out along lines i + j = d, for all
        sequences together.  Of equally cheap steps a substitution comes before an insertion, and that before a deletion.
        """
        a, sizes = _padded(left, -1)
        b, others = _padded(right, -2)
        ends = sizes + others
        shape = (len(a), a.shape[1] + 1)
        costs, counts = ([np.zeros(shape, dtype) for _ in range(3)] for dtype in (np.float64, np.intp))  # of the lines d, d - 1, d - 2
        edits = 0
        for d in range(1, int(ends.max()) + 1):
            costs, counts = [costs[2], *costs[:2]], [counts[2], *counts[:2]]
            first, last = max(1, d - b.shape[1]), min(d - 1, a.shape[1])
            here, before = slice(first, last + 1), slice(first - 1, last)
            differ = a[:, before] != b[:, d - last - 1 : d - first][:, ::-1]
            substituted = costs[2][:, before] + differ * self.substitution_penalty
            inserted = costs[1][:, here] + self.insertion_penalty
            deleted = costs[1][:, before] + self.deletion_penalty
            substitute = (substituted <= inserted) & (substituted <= deleted)
            insert = inserted <= deleted
            costs[0][:, here] = np.where(substitute, substituted, np.where(insert, inserted, deleted))
            one_more = np.where(insert, counts[1][:, here], counts[1][:, before]) + 1
            counts[0][:, here] = np.where(substitute, counts[2][:, before] + differ, one_more)
            if d <= b.shape[1]:
                costs[0][:, 0], counts[0][:, 0] = d * self.insertion_penalty, d
            if d <= a.shape[1]:
                costs[0][:, d], counts[0][:, d] = d * self.deletion_penalty, d
            ended = np.flatnonzero(ends == d)
            edits += int(counts[0][ended, sizes[ended]].sum())
        return edits


def _largest(ctx: Context, scores: Any) -> Any:
    """Class of the largest score in each row, the first of equal ones."""
    if isinstance(scores, SparseRows):
        if scores.is_one_hot and len(scores.indices) == scores.shape[0] and bool((scores.data > 0).all()):
            return scores.indices
        sparse, scores = scores, ctx.scratch("scores", scores.shape, scores.dtype)
        sparse.to_dense(ctx.xp, scores)
    return scores.reshape(len(scores), -1).argmax(axis=1)


def _padded(sequences: list[Any], filler: int) -> tuple[Any, Any]:
    """The sequences as rows of a matrix, filled up behind, and their lengths."""
    lengths = np.array([len(sequence) for sequence in sequences])
    table = np.full((len(sequences), lengths.max()), filler)
    table[np.arange(table.shape[1]) < lengths[:, None]] = np.concatenate(sequences)
    return table, lengths


_scores = Operand((3,), gradient=False)


@operator(
    sample(_scores, _scores),
    sample(_scores, Operand((3,), sparse=True, gradient=False), subPen=2, squashInputs=True, tokensToIgnore=[1]),
)
def edit_distance_error(
    input_a: TensorLike,
    input_b: TensorLike,
    subPen: float = 1,
    delPen: float = 1,
    insPen: float = 1,
    squashInputs: bool = False,
    tokensToIgnore: Sequence[int] = [],
    name: str = "",
) -> Function:
    """Error rate of sequences of classes: edits that the cheapest way from one sequence to the other takes.  No gradient flows through it.

    Each step of a sequence stands for the class with the largest score.  The penalties decide which way is the cheapest; what is
    counted is its edits.  That is the metric of connectionist temporal classification.

    Args:
        input_a: scores of the classes with a batch axis and, as a rule, a sequence axis: what a network says.
        input_b: the same for the right answer; its sequence axis and lengths may be others, the number of sequences may not.
        subPen: cost of putting one class in place of another.
        delPen: cost of leaving out a class of *input_a*.
        insPen: cost of putting in a class of *input_b*.
        squashInputs: whether steps of the same class in a row count as one.
        tokensToIgnore: classes that are left out, after squashing.
        name: name of the Function.

    Returns:
        the number of edits for each remaining class of *input_b*, times the number of steps of *input_a* in the minibatch: shape ()
        without dynamic axes.  Where no class of *input_b* remains, the number of edits is taken whole.

    Raises:
        ValueError: the shapes differ, an operand has no batch axis, or the operands have different numbers of sequences.

    Source: A. Graves, S. Fernández, F. Gomez, J. Schmidhuber, "Connectionist temporal classification: labelling unsegmented sequence
    data with recurrent neural networks", ICML 2006.

    >>> a, b = C.sequence.input_variable(3), C.sequence.input_variable(3)
    >>> error = C.edit_distance_error(a, b)
    >>> classes = np.eye(3, dtype=np.float32)
    >>> error.eval({a: [classes[[0, 1, 1, 2]]], b: [classes[[0, 1, 2, 2]]]})
    array(1., dtype=float32)
    """
    return EditDistanceError(subPen, delPen, insPen, squashInputs, tokensToIgnore)(input_a, input_b, name=name)
