"""Cropping one image to the size of another, at given offsets or where the network's geometry puts them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import floor
from typing import Any, NamedTuple

from ...core.graph.arguments import TensorLike
from ...core.graph.block import Block
from ...core.graph.function import Function
from ...core.graph.inference import as_variable
from ...core.graph.nodes import Primitive
from ...core.graph.variable import Constant, Output, Parameter, Variable
from ...core.operators.elementwise import Elementwise
from ...core.operators.op import Op, Traits
from ...core.operators.samples import Operand, operator, sample
from ...core.types.context import Context
from ...core.types.spec import Spec

SAME_PLACE = ("BatchNormalization", "LocalResponseNormalization", "Dropout", "Splice")
"""Ops that, like the elementwise ones, leave every pixel where it is."""


class Crop(Op):
    """Cuts an image to the height and width of another."""

    op_name = "Crop"
    traits = Traits(recordable=True)
    gradient_inputs = (0,)
    offset: tuple[int, int]

    def infer(self, image: Spec, referent: Spec) -> Spec:
        if image.rank < 2 or image.rank != referent.rank:
            raise RuntimeError(f"both operands must have the same number of axes, at least 2; they have {image.rank} and {referent.rank}")
        for dim, start, size in zip(image.dims[-2:], self.offset[::-1], referent.dims[-2:], strict=True):
            if min(dim, size) >= 0 and start + size > dim:
                raise RuntimeError(f"{size} pixels from offset {start} on do not lie within {dim} pixels")
        return self.common(image, referent).but(shape=image.dims[:-2] + referent.dims[-2:])

    def forward(self, ctx: Context, out: Any, image: Any, referent: Any) -> None:
        ctx.xp.copyto(out, image[self._index(out)])

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, image: Any, referent: Any) -> None:
        grads[0].fill(0)
        part = grads[0][self._index(grad)]
        if part.shape == grad.shape:
            ctx.xp.copyto(part, grad)
        else:
            ctx.xp.sum(grad, axis=0, out=part)

    def _index(self, cropped: Any) -> tuple[Any, ...]:
        column, row = self.offset
        height, width = cropped.shape[-2:]
        return ..., slice(row, row + height), slice(column, column + width)


# ---- geometry ------------------------------------------------------------------------------------


class Place(NamedTuple):
    """Where pixel ``p`` of an image lies in another, along one axis: at ``scale * p + shift``."""

    scale: Fraction
    shift: Fraction

    def then(self, other: Place) -> Place:
        """This place, seen in an image beyond."""
        return Place(other.scale * self.scale, other.scale * self.shift + other.shift)

    def inverse(self) -> Place:
        """Where pixels of the other image lie in the first."""
        return Place(1 / self.scale, -self.shift / self.scale)


Places = tuple[Place, Place]
HERE = Place(Fraction(1), Fraction(0))


def ancestors(image: Variable) -> dict[Variable, Places]:
    """The images that *image* is computed from, nearest first, with where its rows and columns lie in them."""
    bound: dict[Variable, Variable] = {}
    found: dict[Variable, Places] = {}
    waiting = [(image, (HERE, HERE))]
    for variable, places in waiting:
        while variable in bound:
            variable = bound[variable]
        if variable in found or isinstance(variable, (Parameter, Constant)):
            continue
        found[variable] = places
        if not isinstance(variable, Output):
            continue
        node = variable.owner
        if isinstance(node, Block):
            bound.update(node.block_arguments_mapping)
            waiting.append((node.composite.outputs[variable.index], places))
            continue
        waiting.extend((operand, (places[0].then(rows), places[1].then(columns))) for operand, (rows, columns) in origins(node))
    return found


def origins(node: Primitive) -> Iterator[tuple[Variable, Places]]:
    """The operands whose pixels make up those of a node's result, and where in them."""
    op, inputs = node.op, node.inputs
    if isinstance(op, Elementwise) or op.op_name in SAME_PLACE:
        yield from ((operand, (HERE, HERE)) for operand in inputs)
    elif isinstance(op, Crop):
        column, row = op.offset
        yield inputs[0], (HERE._replace(shift=Fraction(row)), HERE._replace(shift=Fraction(column)))
    elif op.op_name == "Convolution":
        rows, columns = window_places(op, inputs[0].shape)
        yield inputs[1], ((rows.inverse(), columns.inverse()) if op.transpose else (rows, columns))
    elif op.op_name == "Pooling":
        yield inputs[0], window_places(op, op.pooling_window_shape)
    elif op.op_name == "Unpooling":
        rows, columns = window_places(op, op.unpooling_window_shape)
        yield inputs[0], (rows.inverse(), columns.inverse())


def window_places(op: Any, window: Sequence[int]) -> Places:
    """Where the middle of the window of each result pixel lies in the operand."""
    rows, columns = (
        Place(Fraction(stride), Fraction(0 if padded else (size - 1) // 2))
        for stride, padded, size in zip(_last_two(op.strides), _last_two(op.auto_padding), _last_two(window), strict=True)
    )
    return rows, columns


def _last_two(values: Sequence[Any]) -> tuple[Any, Any]:
    """What a list for all axes, whose first value also stands for those left out, says of the last two."""
    return values[-2 if len(values) > 1 else -1], values[-1]


def crop_offset(place: Place, referent: Place) -> int:
    """Pixel of the image at which the referent's first lies, both being placed in one ancestor.

    Raises:
        RuntimeError: their pixels differ in size, or the referent begins before the image.
    """
    if place.scale != referent.scale:
        raise RuntimeError(f"a pixel of the input spans {place.scale} pixels of the common ancestor, one of the referent {referent.scale}")
    offset = (referent.shift - place.shift) / place.scale
    if offset < 0:
        raise RuntimeError(f"the referent begins {-offset} pixels before the input, so there is nothing to crop")
    return floor(offset)


def _offsets(op: str, image: Places | None, referent: Places | None) -> tuple[int, int]:
    if image is None or referent is None:
        raise RuntimeError(f"{op}: no path of convolutions, poolings and elementwise ops leads to a common ancestor; use crop_manual")
    try:
        row, column = (crop_offset(*pair) for pair in zip(image, referent, strict=True))
    except RuntimeError as error:
        raise RuntimeError(f"{op}: {error}") from None
    return column, row


# ---- public functions ----------------------------------------------------------------------------


@operator(
    sample((2, 5, 4), Operand((1, 2, 3), gradient=False), call=lambda f, x, y: f(x, y, 1, 2), expected=lambda x, y: x[:, 2:4, 1:4]),
    sample((5, 4), Operand((2, 3), kind="parameter", gradient=False), call=lambda f, x, y: f(x, y, 0, 3), expected=lambda x, y: x[3:5, :3]),
)
def crop_manual(node_input: TensorLike, node_referent: TensorLike, offset_x: int, offset_y: int, name: str = "") -> Function:
    """Crop the last two axes to the size of another operand.

    Args:
        node_input: operand of static shape ``(*S, height, width)``.
        node_referent: operand of the same rank, whose last two dimensions are the size to crop to.  Its values do not matter.
        offset_x, offset_y: first column and first row to keep, in pixels.
        name: name of the function.

    Returns:
        Function of static shape ``(*S, *size)``.  The gradient flows to *node_input* only.

    Raises:
        RuntimeError: the ranks differ or are below 2, or the referent does not fit at the offsets.
        ValueError: an offset is negative.

    >>> x = np.arange(9, dtype=np.float32).reshape(3, 3)
    >>> C.crop_manual(x, np.zeros((2, 2), dtype=np.float32), 1, 0).eval()
    array([[1., 2.],
           [4., 5.]], dtype=float32)
    """
    if offset_x < 0 or offset_y < 0:
        raise ValueError(f"crop_manual: offsets must not be negative, got {offset_x} and {offset_y}")
    return Crop(offset=(int(offset_x), int(offset_y)))(node_input, node_referent, name=name)


@operator(
    sample(
        (1, 4, 5),
        call=lambda f, x: f(Crop(offset=(0, 0))(x + 1, x), x),
        expected=lambda x: x + 1,
    ),
)
def crop_automatic(node_input: TensorLike, node_referent: TensorLike, name: str = "") -> Function:
    """Crop an image to the size of another at the offsets where the two show the same pixels of a common ancestor.

    The offsets follow from the strides, windows and padding of the convolutions and poolings on the way to the ancestor.

    Args:
        node_input: function of static shape ``(*S, height, width)``.
        node_referent: function or variable whose last two dimensions are the size to crop to.
        name: name of the function.

    Returns:
        Function of static shape ``(*S, *size)``.  The gradient flows to *node_input* only.

    Raises:
        RuntimeError: there is no common ancestor, the two have pixels of different size, or the referent does not fit.

    Source: Long, Shelhamer and Darrell, "Fully Convolutional Networks for Semantic Segmentation", CVPR 2015.

    >>> x = C.input_variable((1, 6, 6))
    >>> smaller = C.pooling(x, C.AVG_POOLING, (2, 2), strides=(2, 2))
    >>> larger = C.convolution_transpose(C.parameter((1, 1, 6, 6), init=1), smaller, strides=(2, 2), auto_padding=[False])
    >>> larger.shape, C.crop_automatic(larger, x).shape
    ((1, 10, 10), (1, 6, 6))
    """
    image, referent = as_variable(node_input), as_variable(node_referent)
    of_image, of_referent = ancestors(image), ancestors(referent)
    common = next((variable for variable in of_image if variable in of_referent), None)
    places = (None, None) if common is None else (of_image[common], of_referent[common])
    return Crop(offset=_offsets("crop_automatic", *places))(image, referent, name=name)


@operator(
    sample(
        (1, 4, 5),
        Operand((1, 4, 5), gradient=False),
        call=lambda f, x, y: f(x + 1, y, x, y),
        expected=lambda x, y: x + 1,
    ),
)
def crop_automatic_with_ancestors(
    node_input: TensorLike, node_referent: TensorLike, ancestor_input: TensorLike, ancestor_referent: TensorLike, name: str = ""
) -> Function:
    """Crop as :func:`crop_automatic` does, for images that have no common ancestor but two ancestors that lie on one another.

    Args:
        node_input: function of static shape ``(*S, height, width)``.
        node_referent: function or variable whose last two dimensions are the size to crop to.
        ancestor_input, ancestor_referent: an ancestor of each, whose pixels are taken to be the same places.
        name: name of the function.

    Returns:
        Function of static shape ``(*S, *size)``.  The gradient flows to *node_input* only.

    Raises:
        RuntimeError: an ancestor is none, the two have pixels of different size, or the referent does not fit.

    >>> x, y = C.input_variable((1, 6, 6)), C.input_variable((1, 6, 6))
    >>> C.crop_automatic_with_ancestors(x + 1, y, x, y).shape
    (1, 6, 6)
    """
    image, referent = as_variable(node_input), as_variable(node_referent)
    places = ancestors(image).get(as_variable(ancestor_input)), ancestors(referent).get(as_variable(ancestor_referent))
    return Crop(offset=_offsets("crop_automatic_with_ancestors", *places))(image, referent, name=name)
