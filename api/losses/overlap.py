"""The F-measure as a loss."""

from __future__ import annotations

from cntk import ops
from cntk.core.common.shape import format_shape
from cntk.core.graph.arguments import TensorLike
from cntk.core.graph.inference import as_variables
from cntk.core.types.arguments import checked
from cntk.ops.functions import Function


@checked
def fmeasure(output: TensorLike, target: TensorLike, beta: float = 1) -> Function:
    r"""One minus the F-measure :math:`(1 + \beta^2) P R / (\beta^2 P + R)` of precision P and recall R: the Dice coefficient for β = 1.

    With :math:`c = \sum o t` precision is :math:`c / \sum o` and recall :math:`c / \sum t`, so that nothing has to be counted and
    gradients flow.  It is worked out as :math:`(1 + \beta^2) c / (\beta^2 \sum t + \sum o)`, which is the same and holds where there is
    no overlap.  It suits classes of very different frequency, as in the segmentation of images.

    Args:
        output: chance of each place or class, in [0, 1].
        target: 0 or 1 for each, of the same rank.
        beta: above 1 recall counts for more, below 1 precision.

    Returns:
        a loss in [0, 1] for each sample: of operands of three axes, the first of which is the classes, one for each class, shape
        (classes, 1, 1); otherwise one, shape ().

    Raises:
        ValueError: the ranks differ.

    >>> C.fmeasure([1, 1, 0, 0], [1, 0, 1, 0]).eval()
    array(0.5, dtype=float32)
    """
    output, target = as_variables("fmeasure", (output, target))
    if len(output.shape) != len(target.shape):
        raise ValueError(f"fmeasure: output {format_shape(output.shape)} and target {format_shape(target.shape)} must have as many axes")
    axis = (1, 2) if len(output.shape) == 3 else None
    common = ops.reduce_sum(ops.element_times(output, target), axis)
    sizes = ops.plus(ops.element_times(beta**2, ops.reduce_sum(target, axis)), ops.reduce_sum(output, axis))
    return ops.minus(1, ops.element_divide(ops.element_times(1 + beta**2, common), sizes))
