"""Noise contrastive estimation: a softmax over many classes learned from a few of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.random import AUTO_SEED
from ...core.common.shape import Shape, format_shape
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.graph.inference import as_data
from ...core.graph.variable import Constant, Parameter, constant
from ...core.operators.op import Op, Traits
from ...core.operators.samples import Operand, operator, sample
from ...core.types.arguments import Seed
from ...core.types.context import Context
from ...core.types.sparse import RowSparse, SparseRows
from ...core.types.spec import Spec
from . import csr
from .dense_product import multiply
from .random_sampling import random_sample, random_sample_inclusion_frequency


class NoiseContrastiveEstimation(Op):
    """Cross entropies of telling the label of each row from sampled classes, which are the same for all rows.

    Operands are weights, biases, inputs, labels, the sampled classes; of each class the logarithm of the number of draws that would be
    its share and the factor on its terms; and the entropy of the noise.
    """

    op_name = "NCE"
    by_rows = False
    keep_inputs = (0, 2)
    gradient_inputs = (0, 1, 2)
    sparse_inputs = (3, 4)
    traits = Traits(uniform_inputs=(0, 1, 2, 3))

    def infer(self, *inputs: Spec) -> Spec:
        weights, biases = self.resolve(*inputs)[:2]
        _, _, x, labels, sampled, *_ = inputs
        if x.rank != 1:
            raise ValueError(f"inputs have the shape {format_shape(x.dims)}; expected a vector")
        classes = sampled.dims[-1]
        wanted = ((weights, (classes, x.dims[0])), (biases, (classes, 1)), (labels.dims, (classes,)))
        for what, (found, right) in zip(("weights", "biases", "labels"), wanted, strict=True):
            if len(found) != len(right) or any(a != b and min(a, b) >= 0 for a, b in zip(found, right, strict=True)):
                raise ValueError(
                    f"{what} have the shape {format_shape(found)}, but {classes} classes in the noise distribution and inputs of shape "
                    f"{format_shape(x.dims)} go with {format_shape(right)}"
                )
        if inputs[0].axes or inputs[1].axes:
            raise ValueError("weights and biases must have no dynamic axes: they are the same for all samples")
        return self.common(*inputs[:4])

    def resolve(self, *inputs: Spec) -> Sequence[Shape]:
        shapes = [spec.dims for spec in inputs]
        classes, features = shapes[4][-1], shapes[2][-1:]
        for i, wanted in ((0, (classes, *features)), (1, (classes, 1))):
            if len(shapes[i]) == len(wanted):
                shapes[i] = tuple(b if a < 0 else a for a, b in zip(shapes[i], wanted, strict=True))
        return shapes

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        xp = ctx.xp
        weights, biases, x, labels, sampled, log_counts, factors, entropy = inputs
        x = xp.broadcast_to(x.reshape(-1, x.shape[-1]), (out.size, x.shape[-1]))
        right, noise = _classes(ctx, labels, len(x)), sampled.indices.copy()
        ctx.state = right, noise
        log_counts, factors, entropy = (part.astype(x.dtype) for part in (log_counts, factors, entropy))
        shift = biases.reshape(-1) - log_counts
        label_logits = (x * weights[right]).sum(axis=1) + shift[right]
        noise_logits = x @ weights[noise].T + shift[noise]
        log_counts, factors = log_counts[noise], factors[noise]
        label_slope, noise_slope = _kept_slopes(ctx, len(x), len(noise), x.dtype)
        noise_loss, label_loss = xp.logaddexp(0, noise_logits), xp.logaddexp(0, -label_logits)
        xp.exp(noise_logits - noise_loss, out=noise_slope)
        xp.multiply(noise_slope, factors, out=noise_slope)
        xp.exp(-label_logits - label_loss, out=label_slope)
        xp.negative(label_slope, out=label_slope)
        xp.add(label_loss, (noise_loss + log_counts) @ factors + entropy, out=out.reshape(-1))

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        xp = ctx.xp
        weights, x = inputs[0], xp.broadcast_to(inputs[2].reshape(-1, inputs[2].shape[-1]), (grad.size, inputs[2].shape[-1]))
        dweights, dbiases, dx = grads[:3]
        right, noise = ctx.state
        at_label, at_noise = _kept_slopes(ctx, len(x), len(noise), x.dtype)
        dy = grad.reshape(-1, 1)
        at_label, at_noise = at_label[:, None] * dy, at_noise * dy
        classes = xp.concatenate((noise, right))
        if dweights is not None:
            of_noise = ctx.scratch("gradients of sampled weights", (len(noise), x.shape[1]), x.dtype)
            multiply(ctx, at_noise.T, x, of_noise)
            _add_up(ctx, classes, xp.concatenate((of_noise, at_label * x)), dweights)
        if dbiases is not None:
            sums = ctx.scratch("gradients of sampled biases", (len(noise),), x.dtype)
            ctx.sum_to(at_noise, sums)
            _add_up(ctx, classes, xp.concatenate((sums, at_label[:, 0]))[:, None], dbiases)
        if dx is not None:
            slope = at_noise @ weights[noise] + at_label * weights[right]
            ctx.sum_to(slope, dx if dx.ndim == 2 else dx.reshape(1, -1))

    def row_sparse(self, index: int, inputs: Sequence[Spec]) -> bool:
        return index in (0, 1)


def _kept_slopes(ctx: Context, rows: int, samples: int, dtype: Any) -> tuple[Any, Any]:
    """Derivatives of each row's loss by the logits of its label and of the sampled classes."""
    return ctx.keep("label", (rows,), dtype), ctx.keep("noise", (rows, samples), dtype)


def _classes(ctx: Context, labels: Any, rows: int) -> Any:
    """Number of the class that each row of labels names, spread over the rows of the inputs."""
    xp = ctx.xp
    if isinstance(labels, SparseRows):
        one_hot, classes = labels.is_one_hot and labels.is_of_ones, labels.indices
    else:
        flat = labels.reshape(-1, labels.shape[-1])
        one_hot = bool(((flat != 0).sum(axis=1) == 1).all()) and bool((flat.max(axis=1) == 1).all())
        classes = flat.argmax(axis=1)
    if not one_hot:
        raise ValueError("labels must be one-hot: a single 1 in each row, and zeros elsewhere")
    return xp.broadcast_to(classes, (rows,)).copy()


def _add_up(ctx: Context, classes: Any, values: Any, out: Any) -> None:
    """Write into rows of *out* the sums of the *values* of each class."""
    xp = ctx.xp
    ones, starts = xp.ones(len(classes), values.dtype), xp.arange(len(classes) + 1)
    present, transposed = csr.transpose(xp, (ones, classes, starts))
    sums = xp.empty((len(present), values.shape[1]), values.dtype)
    csr.multiply(xp, transposed, values, sums)
    if isinstance(out, RowSparse):
        out.set(present, sums)
    else:
        out[...] = 0
        out[present] = sums


def _sure(w: Any, b: Any, x: Any, y: Any) -> Any:
    """The loss where all 4 samples are of class 0."""
    label, noise = w @ x + b[:, 0], w[0] @ x + b[0, 0] - np.log(4)
    at_label = label - np.log([4, 4e-20, 4e-20])
    return np.logaddexp(0, -(y @ at_label)) + 4 * np.logaddexp(0, noise)


def _in_double(noise: Any) -> Any:
    """The numbers of a noise distribution, whose type a loss in float64 must not be less exact for."""
    noise = as_data("nce_loss", noise)
    if isinstance(noise, (Constant, Parameter)):
        noise = noise.value
    return constant(np.asarray(noise.eval() if isinstance(noise, Function) else noise, np.float64), dtype=np.float64)


_noise = np.array([1, 1e-20, 1e-20])
_classes_of_rows = Operand((3,), sparse=True, gradient=False)
_weights, _biases = Operand((3, 2), kind="parameter"), Operand((3, 1), kind="parameter")


def _certain(function: Any, *operands: Any) -> Any:
    return function(*operands, _noise, num_samples=4, seed=1)


@operator(
    sample(_weights, _biases, (2,), _classes_of_rows, call=_certain, expected=_sure),
    sample(_weights, _biases, (2,), Operand(np.array([0.0, 1.0, 0.0]), gradient=False), call=_certain, expected=_sure),
    sample(Operand((3, 2), kind="static"), _biases, Operand((2,), kind="parameter"), _classes_of_rows, call=_certain, expected=_sure),
)
def nce_loss(
    weights: TensorLike,
    biases: TensorLike,
    inputs: TensorLike,
    labels: TensorLike,
    noise_distribution: TensorLike,
    num_samples: int = 32,
    allow_duplicates: bool = True,
    seed: Seed = AUTO_SEED,
    name: str = "",
) -> Function:
    r"""Noise contrastive estimation: teaches a softmax over very many classes by comparing the right one with sampled ones.

    In every evaluation k classes n are drawn from the noise distribution p, the same for the whole minibatch.  With the logits
    :math:`s_c = w_c \cdot x + b_c`, the expected numbers :math:`\nu_c = k p_c` and the number :math:`\pi_c` of times that class c is to be
    expected in such a sample (:math:`\nu_c`, but for draws without duplicates), the loss of the label t is

    .. math:: -\log\frac{e^{s_t}}{e^{s_t} + \nu_t} + \sum_n \frac{\nu_n}{\pi_n} \log(e^{s_n} + \nu_n) - \sum_c \nu_c \log\nu_c

    that is noise contrastive estimation with the last sum, over all classes, in place of its estimate from the sample.  Only
    the logits of t and n are worked out, and the gradients of weights and biases have only their rows.  For predictions use
    ``C.times_transpose(x, weights)`` plus the biases.

    Args:
        weights: one row for each of C classes, of shape (C, dimension of the inputs); that dimension may be inferred.
        biases: biases of shape (C, 1).
        inputs: vector for each sample (or step).
        labels: one-hot vector of shape (C,), best given sparse.
        noise_distribution: C numbers, not negative, proportional to how often each class is to be drawn.  It is read once, here.
        num_samples: how many classes k are drawn.
        allow_duplicates: whether one may be drawn several times.
        seed: seed of the draws; by default one is chosen.
        name: name of the Function.

    Returns:
        the loss of each sample (or step) in nats, shape ().

    Raises:
        ValueError: shapes are incompatible, or a row of labels is not one-hot.

    Source: M. Gutmann, A. Hyvärinen, "Noise-contrastive estimation", AISTATS 2010; C. Dyer, "Notes on noise contrastive estimation and
    negative sampling", arXiv:1410.8251.

    >>> x, y = C.input_variable(2), C.input_variable(3, is_sparse=True)
    >>> weights, biases = C.parameter((3, C.InferredDimension), init=0.5), C.parameter((3, 1))
    >>> loss = C.nce_loss(weights, biases, x, y, [1, 0, 0], num_samples=2)
    >>> loss.eval({x: [[0, 0]], y: C.Value.one_hot([0], 3)}).round(4)
    array([1.9095], dtype=float32)
    """
    noise = _in_double(noise_distribution)
    repeats = (allow_duplicates, True)
    included, share = (np.ravel(random_sample_inclusion_frequency(noise, num_samples, again).eval()) for again in repeats)
    with np.errstate(divide="ignore"):
        log_share = np.log(share)
    possible = share > 0
    factors = np.divide(share, included, out=np.ones_like(share), where=possible)
    entropy = -(share[possible] @ log_share[possible])
    sampled = random_sample(noise_distribution, num_samples, allow_duplicates, seed)
    known = [constant(part, dtype=np.float64) for part in (log_share, factors, entropy)]
    return NoiseContrastiveEstimation()(weights, biases, inputs, labels, sampled, *known, name=name)
