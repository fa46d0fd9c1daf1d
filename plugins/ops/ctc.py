"""Connectionist temporal classification: training on labels whose places in a sequence are not known.

Between the labels of a sequence, and at its ends, may stand blanks: these are the *states* a path runs through, a step at a time,
staying where it is, going on to the next one, or passing over a blank between two different labels.  The probability of the labels is
the sum over all paths, which two sweeps over the steps compute for all sequences and states at once.

Source: A. Graves, S. Fernández, F. Gomez, J. Schmidhuber, "Connectionist temporal classification", ICML 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.shape import format_shape, size_of
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.op import Op
from ...core.operators.samples import Operand, operator, sample
from ...core.operators.view import View
from ...core.types.context import Context
from ...core.types.layout import Layout
from ...core.types.spec import Spec, merge_axes, merge_dtypes
from .recurrent_scan import of_sequences

IMPOSSIBLE = 1e11
"""What labels cost that no path through their sequence fits, as in CNTK; no gradient comes from them."""

FIRST = 1.5
"""Label vectors whose largest element is above this begin a label; the others go on with it."""


class LabelsToGraph(View):
    """The operand itself: labels, one vector for each step."""

    op_name = "LabelsToGraph"
    gradient_inputs = ()

    def infer(self, labels: Spec) -> Spec:
        return labels.but()

    def view(self, x: Any, out_shape: Any) -> Any:
        return x


class ForwardBackward(Op):
    """Minus the logarithm of the probability of the labels, summed over all sequences."""

    op_name = "ForwardBackward"
    gradient_inputs = (1,)
    by_rows = False
    blank_token_id: int
    delay_constraint: int

    def __init__(self, blank_token_id: int, delay_constraint: int) -> None:
        super().__init__(blank_token_id=blank_token_id, delay_constraint=delay_constraint)

    @property
    def attributes(self) -> dict[str, Any]:
        return {"BlankTokenId": self.blank_token_id, "DelayConstraint": self.delay_constraint}

    # ---- types ----

    def infer(self, graph: Spec, features: Spec) -> Spec:
        if graph.is_concrete and features.is_concrete and size_of(graph.dims) != size_of(features.dims):
            shapes = f"{format_shape(graph.shape)} and {format_shape(features.shape)}"
            raise ValueError(f"labels and features must have the same number of classes, got the shapes {shapes}")
        if features.is_concrete and self.blank_token_id >= size_of(features.dims):
            raise ValueError(f"the blank label must be one of the {size_of(features.dims)} classes, got {self.blank_token_id}")
        merge_axes((graph, features))
        if graph.axes == () or features.axes == ():
            raise ValueError("labels and features must be sequences; declare them with sequence.input_variable")
        return Spec((), merge_dtypes((graph, features)), ())

    # ---- values ----

    def forward(self, ctx: Context, out: Any, graph: Any, features: Any) -> None:
        xp = ctx.xp
        layout = of_sequences(ctx.layouts[1])
        rows = layout.rows
        dtype = np.float64 if features.dtype == np.float64 else np.float32
        scores = ctx.keep("scores", (rows, features.size // rows), dtype)
        _log_softmax(ctx, features.reshape(scores.shape), scores)
        paths = _Paths(ctx, layout, graph.reshape(scores.shape), self.blank_token_id, dtype)
        emitted = paths.emitted(scores, self.delay_constraint)
        before = paths.before(emitted)
        likelihood = paths.likelihood(before)
        possible = likelihood > -xp.inf
        out[...] = -xp.where(possible, likelihood, -IMPOSSIBLE).sum()
        if ctx.training:  # the gradient is a byproduct: probabilities of classes less how often the paths are there
            xp.exp(scores, out=scores)
            paths.subtract_visits(scores, before, paths.behind(emitted), xp.where(possible, likelihood, 0))
            scores *= possible[paths.sequences][:, None]

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, graph: Any, features: Any) -> None:
        dx = grads[1]
        gradient = ctx.keep("scores", (len(dx), dx.size // len(dx)), np.float64 if dx.dtype == np.float64 else np.float32)
        ctx.xp.multiply(gradient.reshape(dx.shape), grad, out=dx, casting="same_kind")


class _Paths:
    """States of the sequences of a minibatch, and sweeps over them.  Sequences are in packed order, states those of the longest.

    Attributes:
        sequences: the sequence that each row belongs to.
        classes: class of each state, ``(sequences, states)``.
        places: place of the class of each state among the scores of all rows, ``(rows, states)``; known once something is emitted.
    """

    def __init__(self, ctx: Context, layout: Layout, graph: Any, blank: int, dtype: Any) -> None:
        xp = self.xp = ctx.xp
        self.ctx, self.layout, self.blank = ctx, layout, blank
        self.sequences = xp.asarray(layout.rank[layout.sequence_of_row])
        steps = xp.asarray(layout.step_of_row)
        begins = xp.flatnonzero(graph.max(axis=1) > FIRST)
        begins = begins[xp.argsort(self.sequences[begins], kind="stable")]  # rows in which labels begin, sequence by sequence
        owners = self.sequences[begins]
        self.labels = xp.bincount(owners, minlength=layout.samples)
        places = xp.arange(len(begins)) - (xp.cumsum(self.labels) - self.labels)[owners]
        states = 2 * int(self.labels.max()) + 1
        self.classes = xp.full((layout.samples, states), blank, np.intp)
        self.classes[owners, 2 * places + 1] = graph[begins].argmax(axis=1)
        self.starts = xp.full((layout.samples, states // 2 + 1), layout.rows, np.intp)
        self.starts[owners, places] = steps[begins]  # step at which each label begins
        differs = (self.classes[:, 2:] != self.classes[:, :-2]) & (self.classes[:, 2:] != blank)
        self.passing = _log_of(xp, differs, dtype)  # logarithm of whether a path may come from the state before the last one
        self.ends = list(zip(layout.offsets[:-1].tolist(), layout.offsets[1:].tolist(), strict=True))

    def _array(self, key: str, dtype: Any, rows: int) -> Any:
        """Scratch space with a number for each of some rows and each state, of a size that does not change with every minibatch."""
        states = self.classes.shape[1]
        room = rows << (states - 1).bit_length()
        return self.ctx.scratch(key, (room,), dtype)[: rows * states].reshape(rows, states)

    def emitted(self, scores: Any, delay: int) -> Any:
        """Logarithm of the probability of each state's class at each row; of 0 where the delay constraint forbids it.

        A label must be over by *delay* steps after the next one begins, a blank a step earlier than the label behind it.
        """
        xp = self.xp
        self.places = self._array("places", np.intp, len(scores))
        xp.take(self.classes, self.sequences, axis=0, out=self.places, mode="clip")
        self.places += (xp.arange(len(scores)) * scores.shape[1])[:, None]
        emitted = self._array("emitted", scores.dtype, len(scores))
        xp.take(scores.reshape(-1), self.places, out=emitted, mode="clip")
        if delay >= 0:
            last = xp.full(self.classes.shape, self.layout.rows, np.intp)
            last[:, 1::2] = self.starts[:, 1:] + delay
            last[:, :-1:2] = self.starts[:, 1:] + delay - 1
            steps = xp.asarray(self.layout.step_of_row)
            emitted[steps[:, None] > last[self.sequences]] = -xp.inf
        return emitted

    def before(self, emitted: Any) -> Any:
        """Logarithm of the probability of all paths up to each state at each row, the row itself included."""
        xp = self.xp
        before = self._array("before", emitted.dtype, len(emitted))
        work = self._array("work", emitted.dtype, self.layout.samples)
        start, end = self.ends[0]
        before[start:end] = -xp.inf
        before[start:end, :2] = emitted[start:end, :2]
        for (start, _), (now, end) in zip(self.ends[:-1], self.ends[1:], strict=True):
            alive = end - now
            earlier, here, passed = before[start : start + alive], before[now:end], work[:alive, 2:]
            here[...] = earlier
            xp.logaddexp(here[:, 1:], earlier[:, :-1], out=here[:, 1:])
            xp.add(earlier[:, :-2], self.passing[:alive], out=passed)
            xp.logaddexp(here[:, 2:], passed, out=here[:, 2:])
            here += emitted[now:end]
        return before

    def behind(self, emitted: Any) -> Any:
        """Logarithm of the probability of all paths from each state at each row on, the row itself left out."""
        xp = self.xp
        behind = self._array("behind", emitted.dtype, len(emitted))
        work = self._array("work", emitted.dtype, self.layout.samples)
        alive = 0
        for step in range(len(self.ends) - 1, -1, -1):
            now, end = self.ends[step]
            here = behind[now:end]
            here[alive:] = self._is_last(alive, end - now)
            if alive:
                start, stop = self.ends[step + 1]
                going, later = here[:alive], work[:alive]
                xp.add(behind[start:stop], emitted[start:stop], out=later)
                going[...] = later
                xp.logaddexp(going[:, :-1], later[:, 1:], out=going[:, :-1])
                later[:, 2:] += self.passing[:alive]
                xp.logaddexp(going[:, :-2], later[:, 2:], out=going[:, :-2])
            alive = end - now
        return behind

    def _is_last(self, first: int, end: int) -> Any:
        """Logarithm of whether sequences first to end - 1 may end in each state: in the last label or the blank behind it."""
        left = 2 * self.labels[first:end, None] - self.xp.arange(self.classes.shape[1])
        return _log_of(self.xp, (left == 0) | (left == 1), self.passing.dtype)

    def likelihood(self, before: Any) -> Any:
        """Logarithm of the probability of each sequence's labels."""
        xp = self.xp
        lengths = self.layout.lengths[self.layout.order]  # type: ignore[index]
        at_end = before[xp.asarray(self.layout.offsets[lengths - 1] + np.arange(self.layout.samples))]
        return xp.logaddexp.reduce(at_end + self._is_last(0, self.layout.samples), axis=1)

    def subtract_visits(self, target: Any, before: Any, behind: Any, likelihood: Any) -> None:
        """Subtract from *target*, at each row and class, the probability that a path with these labels is there."""
        xp = self.xp
        before += behind
        before -= likelihood[self.sequences][:, None]
        xp.exp(before, out=before)
        target[:, self.blank] -= before[:, ::2].sum(axis=1)
        xp.subtract.at(target.reshape(-1), self.places[:, 1::2].reshape(-1), before[:, 1::2].reshape(-1))


def _log_of(xp: Any, condition: Any, dtype: Any) -> Any:
    """Logarithm of 1 where the condition holds, of 0 elsewhere."""
    return xp.where(condition, 0.0, -xp.inf).astype(dtype)


def _log_softmax(ctx: Context, x: Any, out: Any) -> None:
    xp = ctx.xp
    out[...] = x
    out -= out.max(axis=1, keepdims=True)
    powers = ctx.scratch("powers", out.shape, out.dtype)
    xp.exp(out, out=powers)
    out -= xp.log(powers.sum(axis=1, keepdims=True))


# ---- public functions ------------------------------------------------------------------------------


@operator(sample(Operand((2, 3), gradient=False), expected=lambda labels: labels))
def labels_to_graph(labels: TensorLike, name: str = "") -> Function:
    """Make the labels of sequences known to :func:`forward_backward`.

    Args:
        labels: a vector for each step: 2 at the place of the label where it begins, 1 there as long as it goes on, otherwise 0.
        name: name of the Function.

    Returns:
        the labels, with their shape and dynamic axes.  No gradient flows through it.

    >>> labels = C.sequence.input_variable(3)
    >>> C.labels_to_graph(labels).eval([np.array([[2, 0, 0], [1, 0, 0]], np.float32)])
    [array([[2., 0., 0.],
           [1., 0., 0.]], dtype=float32)]
    """
    return LabelsToGraph()(labels, name=name)


def _one_label(f: Any, features: Any) -> Any:
    """A sample's call: every sequence has label 1, which begins with the first step."""
    from .sequence_ends import is_first

    label = np.array([0, 1, 0], features.dtype)
    return f(is_first(features) * label + label, features, 2)


@operator(
    sample(Operand((3,), kind="sequence"), call=_one_label),
    sample(Operand(np.array([0.0, 1.0, 0.0]), gradient=False), Operand((3,)), blankTokenId=0),
    sample(Operand(np.array([[0.0, 1.0]]), kind="sequence", gradient=False), Operand((1, 2), kind="sequence"), blankTokenId=0),
)
def forward_backward(graph: TensorLike, features: TensorLike, blankTokenId: int, delayConstraint: int = -1, name: str = "") -> Function:
    r"""Criterion of connectionist temporal classification: :math:`-\log P(\text{labels} \mid \text{features})`, over all alignments.

    Every step emits a class, with probabilities ``softmax(features)``, or a blank; the labels are what is left of the classes when
    equal neighbours are made one and blanks are taken out.  Where the labels begin does not matter without a delay constraint.

    Args:
        graph: labels from :func:`labels_to_graph`.
        features: scores of the classes at each step, before any softmax; on the same sequence axis.
        blankTokenId: class of the blank.
        delayConstraint: a label must be over this many steps after the next one begins; -1 for no such constraint.
        name: name of the Function.

    Returns:
        a scalar without dynamic axes, summed over the sequences of the minibatch.  Labels that do not fit into the steps of their
        sequence cost 1e11 and give no gradient.

    Raises:
        ValueError: the shapes differ in size, the blank is not a class, or there is no dynamic axis.

    Source:
        Graves, Fernández, Gomez and Schmidhuber, *Connectionist temporal classification: labelling unsegmented sequence data with
        recurrent neural networks*, 2006.

    >>> features, labels = C.sequence.input_variable(2), C.sequence.input_variable(2)
    >>> cost = C.forward_backward(C.labels_to_graph(labels), features, blankTokenId=1)
    >>> float(cost.eval({labels: [np.array([[2, 0], [1, 0]], np.float32)], features: [np.zeros((2, 2), np.float32)]}))
    0.2876...
    """
    if blankTokenId < 0:
        raise ValueError(f"forward_backward: the blank label must be one of the classes, got {blankTokenId}")
    if delayConstraint < -1:
        raise ValueError(f"forward_backward: the delay must be a number of steps, or -1 for no constraint, got {delayConstraint}")
    return ForwardBackward(int(blankTokenId), int(delayConstraint))(graph, features, name=name)
