"""Kinds of nodes: how their attributes are read and written, converted to those of the current format.

A row says by which number, and under which names, the current format has a node (see ``operators`` in the package above), so that this
package only tells the two formats apart and knows nothing of our operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ....core.graph.nodes import Primitive
from ....core.graph.variable import Constant, Parameter
from ..attributes import ALL, ALL_STATIC, BEHIND_ALL, DYNAMIC, static
from ..opcodes import FILTER
from ..wire import FileAxis, NDShape
from .kinds import AXES, AXIS, END, FLAG, INT, LENGTH, REDUCED, SIZES, TEXT, Kind
from .stream import Source

OLDEST, NEWEST = 8, 31
"""Versions of the format that are read; the newest is the one that CNTK 2.7 writes."""
NO_SEQUENCE, SEQUENCE = "__noSequenceAxis", "*"
"""Names of the axis of what has no sequence axis, and the default one."""

Attributes = dict[str, Any]


class Field(NamedTuple):
    """One attribute.

    Attributes:
        name: its name in the current format.
        kind: how it is read and written.
        default: what is written where the current format does not have it, and taken where an old file does not.
        since: the first version that has it.
    """

    name: str
    kind: Kind
    default: Any = None
    since: int = OLDEST


@dataclass
class Row:
    """One kind of node.

    Attributes:
        name: its name in files.
        number: the operator's number in the current format.
        fields: its attributes, as they follow.
        order: for each of the first operands in the file, its place in the current format.
        since: the first version in which the node is as it is here.
        written: whether CNTK 2.7 can read it; files that it writes have more.
    """

    name: str
    number: int
    fields: tuple[Field, ...] = ()
    order: tuple[int, ...] = ()
    since: int = OLDEST
    written: bool = True

    def read(self, source: Source) -> Attributes:
        """Attributes, by their names in the current format."""
        return self.taken({f.name: f.kind.read(source, f.name) if source.version >= f.since else f.default for f in self.fields})

    def write(self, attributes: Attributes, node: Primitive | None) -> bytes:
        """The bytes of attributes.

        Raises:
            ValueError: the format cannot express them.
        """
        given = self.given(attributes, node)
        return b"".join(field.kind.write(given.get(field.name, field.default)) for field in self.fields)

    def taken(self, found: Attributes) -> Attributes:
        """Attributes of the current format, of those in the file."""
        return found

    def given(self, attributes: Attributes, node: Primitive | None) -> Attributes:
        """What is to be written, of attributes of the current format; *node* is our own, where it is one here."""
        return attributes

    def reordered(self, operands: Sequence[Any], back: bool = False) -> list[Any]:
        """Operands in the file's order; in that of the current format where *back*."""
        if len(operands) < len(self.order):
            raise ValueError(f"expected {len(self.order)} operands of {self.name} at least, found {len(operands)}")
        places = [self.order.index(i) for i in range(len(self.order))] if back else self.order
        return [*(operands[place] for place in places), *operands[len(self.order) :]]


def axis_number(axis: FileAxis) -> int:
    """Number of a static axis, from 1 on."""
    if axis.number < 0 or axis.number >= ALL:
        raise ValueError(f"{axis.name} cannot be saved in this format, which has static axes of operands of known shape only")
    return axis.number + 1


# ---- rows of their own kind ----------------------------------------------------------------------


class SliceRow(Row):
    """Slices: begin and length along each axis, with strides in later versions."""

    def read(self, source: Source) -> Attributes:
        several, strided = source.version >= 22, source.version >= 27
        cuts = [self._cut(source, strided) for _ in range(source.count("i", "the number of slices", 20) if several else 1)]
        begins, ends, axes, strides = (list(values) for values in zip(*cuts, strict=True)) if cuts else ([], [], [], [])
        return {"axisVec": axes, "beginIndexVec": begins, "endIndexVec": ends, "sliceStridesVec": strides}

    def _cut(self, source: Source, strided: bool) -> tuple[int, int, FileAxis, int]:
        begin, length = LENGTH.read(source, "the begin of a slice"), LENGTH.read(source, "the length of a slice")
        axis = AXIS.read(source, "the axis of a slice") - 1
        return begin, begin + length, static(axis), INT.read(source, "the stride of a slice") if strided else 1

    def write(self, attributes: Attributes, node: Primitive | None) -> bytes:
        names = ("axis", "beginIndex", "endIndex", "sliceStrides")
        columns = [[attributes[name]] if name in attributes else attributes[f"{name}Vec"] for name in names]
        cuts = list(zip(*columns, strict=True))
        if any(cut[3] != 1 for cut in cuts):
            raise ValueError("CNTK 2.7 does not read the strides of a slice")
        return INT.write(len(cuts)) + b"".join(
            LENGTH.write(int(begin)) + LENGTH.write(int(end) - int(begin)) + INT.write(axis_number(axis)) + INT.write(stride)
            for axis, begin, end, stride in cuts
        )


_DEFAULT, _BATCH = "defaultDynamicAxis", "defaultBatchAxis"
_NUMBERED = {
    0: FileAxis(ALL_STATIC, "AllStaticAxes", False),
    -1: FileAxis(ALL, "AllAxes", False),
    -3: FileAxis(DYNAMIC, _BATCH, False),
}
"""Axes that are not static, and markers, by the numbers that reductions have for them."""


class ReductionRow(Row):
    """Reductions along axes, which have numbers."""

    def read(self, source: Source) -> Attributes:
        numbers = AXES.read(source, "axes") if source.version >= 27 else [REDUCED.read(source, "the axis of a reduction")]
        if -2 in numbers:
            raise ValueError("a reduction along sequences is not known")
        axes = [_NUMBERED.get(number) or static(number - 1) for number in numbers]
        found = {"reductionOpName": TEXT.read(source, "the name of a reduction")}
        found["reductionKeepDimensions"] = FLAG.read(source, "whether axes are kept") if source.version >= 24 else True
        return {**found, **({"axis": axes[0]} if len(axes) == 1 else {"axisVec": axes})}

    def write(self, attributes: Attributes, node: Primitive | None) -> bytes:
        axes = [attributes["axis"]] if "axis" in attributes else attributes["axisVec"]
        special = {axis: number for number, axis in _NUMBERED.items()}
        numbers = [special[axis] if axis in special else axis_number(axis) for axis in axes]
        keep = attributes["reductionKeepDimensions"] and numbers not in ([0], [-1])
        return AXES.write(numbers) + TEXT.write(attributes["reductionOpName"]) + FLAG.write(keep)


class ReshapeRow(Row):
    """Reshape: the axes from a begin to an end, 0 for all the rest."""

    def taken(self, found: Attributes) -> Attributes:
        begin, end = found["beginAxis"], found["endAxis"]
        new_shape = NDShape(dim or -1 for dim in found["newShape"])
        return {"newShape": new_shape, "beginAxis": static(begin - 1), "endAxis": static(end - 1 if end else BEHIND_ALL)}

    def given(self, attributes: Attributes, node: Primitive | None) -> Attributes:
        begin, end, new_shape = attributes["beginAxis"], attributes["endAxis"], attributes["newShape"]
        if begin.number < 0 or end.number < 0 or any(dim < -1 for dim in new_shape):
            raise ValueError(f"a reshape to {tuple(new_shape)} cannot be saved in this format while shapes are not known")
        last = 0 if end.number == BEHIND_ALL else end.number + 1
        return {"newShape": [max(dim, 0) for dim in new_shape], "beginAxis": begin.number + 1, "endAxis": last}


class SqueezeRow(Row):
    """Axes of length 1 left out: a reshape of them all."""

    def given(self, attributes: Attributes, node: Primitive | None) -> Attributes:
        return {"beginAxis": 1, "endAxis": 0, "newShape": known_shape(node)}


class TransposeRow(Row):
    """Two axes exchanged, or, after zeros, a permutation."""

    def read(self, source: Source) -> Attributes:
        one, other = (END.read(source, "an axis to exchange") for _ in range(2))
        if one and other:
            return {"axis1": static(one - 1), "axis2": static(other - 1)}
        return {"axisVec": [static(number) for number in SIZES.read(source, "axes")]}

    def write(self, attributes: Attributes, node: Primitive | None) -> bytes:
        return INT.write(axis_number(attributes["axis1"])) + INT.write(axis_number(attributes["axis2"]))


class WindowRow(Row):
    """Convolution and pooling, which slide over the operand."""

    def taken(self, found: Attributes) -> Attributes:
        if found.pop("flat", False):
            raise ValueError(f"{self.name} with filters as a matrix is not supported")
        pooling = {} if self.number == FILTER else {"poolingType": pooling_type(found["poolingType"])}
        return {**found, **pooling, "poolingWindowShape": found["kernelShape"], "unpoolingWindowShape": found["kernelShape"]}

    def given(self, attributes: Attributes, node: Primitive | None) -> Attributes:
        if attributes.get("groups", 1) != 1 or attributes.get("sequential"):
            raise ValueError("convolutions in groups or along sequences cannot be saved in this format")
        filters = known_shape(node, 0) if self.number == FILTER else ()
        window = attributes.get("kernelShape") or attributes.get("poolingWindowShape") or attributes["unpoolingWindowShape"]
        own, rank = len(window), len(window) if filters else len(known_shape(node, 0))
        maps = filters[: len(filters) - rank] or (1,)
        found: Attributes = {
            "kernelShape": _filled(window, own, rank),
            "mapCount": (*maps, *(1,) * (rank - len(maps))) if filters else (1,),
            "strides": _filled(attributes["strides"], own, rank),
            "autoPadding": _filled(attributes["autoPadding"][::-1], own, rank, False)[::-1],
            "sharing": [True] * rank,
            "lowerPad": (0,) * rank,
            "upperPad": (0,) * rank,
            "transpose": self.name == "MaxUnpooling",
        }
        pooling = {} if filters else {"poolingType": int(attributes["poolingType"]) + 1}
        kept = {name: attributes[name] for name in _WINDOW_ATTRIBUTES if name in attributes}
        return {**found, **kept, **pooling, **({"dilation": _filled(attributes["dilation"], own, rank)} if filters else {})}


def pooling_type(kind: int) -> int:
    """The number that the current format has for a kind of pooling."""
    if kind not in (1, 2):
        raise ValueError(f"expected 1 or 2 as the kind of pooling, found {kind}")
    return kind - 1


_WINDOW_ATTRIBUTES = ("transpose", "outputShape", "ceilOutDim", "includePad", "maxTempMemSizeInSamples")


def _filled(values: Sequence[Any], window: int, rank: int, rest: Any = 1) -> tuple[Any, ...]:
    """Values for all axes: a single one is for those of the window, *rest* for those in front of it."""
    values = tuple(values) * (window if len(values) == 1 else 1)
    return (*(rest,) * (rank - len(values)), *values)


def known_shape(node: Primitive | None, operand: int | None = None) -> tuple[int, ...]:
    """The shape of a node's result or operand.

    Raises:
        ValueError: it is not known, or has free dimensions.
    """
    variable = None if node is None else node.outputs[0] if operand is None else node.inputs[operand]
    dims = None if variable is None else variable.spec.shape
    if dims is None or any(dim < 0 for dim in dims):
        raise ValueError(f"the shape of {variable!r} must be known to save it in this format")
    return tuple(dims)


class WhereRow(Row):
    """Steps that a condition picks, on an axis that is named."""

    def taken(self, found: Attributes) -> Attributes:
        return {**found, "newDynamicAxes": dynamic_axes(found["sequenceAxis"])}

    def given(self, attributes: Attributes, node: Primitive | None) -> Attributes:
        return {"sequenceAxis": axis_name(attributes["newDynamicAxes"])}


def dynamic_axes(name: str) -> list[FileAxis]:
    """The axes of what is on the axis of this name."""
    batch = FileAxis(DYNAMIC, _BATCH, False)
    return [batch] if name == NO_SEQUENCE else [FileAxis(DYNAMIC, _DEFAULT if name in ("", SEQUENCE) else name, True), batch]


def axis_name(axes: Sequence[FileAxis]) -> str:
    """The name of the axis of what has these axes.

    Raises:
        ValueError: the format does not have such.
    """
    names = [axis.name for axis in axes]
    if names[-1:] != [_BATCH] or len(names) > 2:
        raise ValueError(
            f"only what is on the batch axis, or on a sequence axis as well, can be saved in this format; the axes are {names}"
        )
    return NO_SEQUENCE if len(names) == 1 else SEQUENCE if names[0] == _DEFAULT else names[0]


class DelayRow(Row):
    """PastValue and FutureValue, with the shape of a step."""

    def taken(self, found: Attributes) -> Attributes:
        return {"offset": found["offset"], "initial": found["initial"]}

    def given(self, attributes: Attributes, node: Primitive | None) -> Attributes:
        return {"offset": int(attributes["offset"]), "shape": known_shape(node)}


class DropoutRow(Row):
    """Dropout, whose rate files do not have."""

    def taken(self, found: Attributes) -> Attributes:
        return {**found, "dropoutRate": 0.0}


class SpliceRow(Row):
    """RowStack along an axis."""

    def taken(self, found: Attributes) -> Attributes:
        return {"axis": static(found["axis"] - 1)}

    def given(self, attributes: Attributes, node: Primitive | None) -> Attributes:
        return {"axis": axis_number(attributes["axis"])}


class NormalizationRow(Row):
    """BatchNormalization; version 19 is another, which cannot be told apart for sure."""

    def read(self, source: Source) -> Attributes:
        if source.version == 19:
            raise ValueError("BatchNormalization of version 19 is not known")
        return super().read(source)

    def taken(self, found: Attributes) -> Attributes:
        return {**found, "useCuDNNEngine": not found["useCntkEngine"], "disableRegularization": False}

    def given(self, attributes: Attributes, node: Primitive | None) -> Attributes:
        count = node.inputs[-1] if node is not None else None
        samples = max(int(count.value), 0) if isinstance(count, (Constant, Parameter)) else 0
        return {**attributes, "useCntkEngine": True, "samples": samples}


class PoolingKindRow(Row):
    """Pooling in regions of interest, of one kind or another."""

    def taken(self, found: Attributes) -> Attributes:
        return {**found, "poolingType": pooling_type(found["poolingType"])}

    def given(self, attributes: Attributes, node: Primitive | None) -> Attributes:
        return {**attributes, "poolingType": int(attributes["poolingType"]) + 1}


class CropRow(Row):
    """Crop at an offset, first along the last axis."""

    def taken(self, found: Attributes) -> Attributes:
        return {"offset": [np.uint64(found[name]) for name in ("x", "y")]}


class RecurrentRow(Row):
    """OptimizedRNNStack, with a flag as a number."""

    def read(self, source: Source) -> Attributes:
        found = super().read(source)
        if found["numLayers"] > len(source.data):
            raise ValueError(f"expected layers whose weights the file can hold, found {found['numLayers']}")
        return found

    def taken(self, found: Attributes) -> Attributes:
        return {**found, "bidirectional": bool(found["bidirectional"])}
