"""The layout of a minibatch: the positions of samples and steps in the rows of an array.

Without a sequence axis a row is a sample, in the user's order.  With one, rows are *packed time-major*: sequences are
sorted by length, longest first, and step t of every sequence that is still alive lies in one contiguous run of rows::

    lengths [2, 3, 1]    order [1, 0, 2]
    row   0    1    2    3    4    5
          b0   a0   c0   b1   a1   b2
          '-- step 0 --' '- 1 -' 2

No padding is stored.  All values on the same dynamic axes of a minibatch share one Layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..common.cached_property import cached_property
from ..common.shape import Shape

Index = np.ndarray[Any, np.dtype[np.intp]]


class Layout:
    """Positions of samples and steps in rows, the first axis of an array ``(rows, *static)``.

    Attributes:
        samples: number of samples (sequences) in the minibatch.
        rows: number of rows: samples, or steps summed over sequences.
        lengths: steps of each sequence in the user's order; None without a sequence axis.
        source: where steps were picked out of others, the row of the operand that each row is.
        continues: for each sequence the one of the previous minibatch that it continues, -1 if it is new; None without flags.

    >>> from cntk.extend import Layout
    >>> layout = Layout(3, [2, 3, 1])
    >>> layout.rows, layout.order, layout.step_of_row
    (6, array([1, 0, 2]), array([0, 0, 0, 1, 1, 2]))
    >>> np.array(['b0', 'a0', 'c0', 'b1', 'a1', 'b2'])[layout.unpack_index]
    array(['a0', 'a1', 'b0', 'b1', 'b2', 'c0'], dtype='<U2')
    """

    __slots__ = ("__dict__", "continues", "lengths", "rows", "samples", "source")

    def __init__(self, samples: int, lengths: Sequence[int] | Index | None = None, source: Index | None = None) -> None:
        self.samples = samples
        self.lengths = None if lengths is None else np.asarray(lengths, dtype=np.intp)
        self.rows = samples if self.lengths is None else int(self.lengths.sum())
        self.source = source
        self.continues: Index | None = None

    def resize(self, count: int, ones: Index) -> None:
        """Become the layout of *count* sequences of one step, in place: what the steps of a recurrence share.

        Args:
            count: number of sequences.
            ones: as many ones, or more.
        """
        self.samples = self.rows = count
        self.lengths = ones[:count]
        self.__dict__.clear()

    @property
    def is_sequence(self) -> bool:
        """Whether rows are steps of sequences."""
        return self.lengths is not None

    @cached_property
    def batch(self) -> Layout:
        """Layout of values that have the batch axis alone."""
        return self if self.lengths is None else Layout(self.samples)

    @cached_property
    def order(self) -> Index:
        """User's index of each sequence in packed order: longest first, ties in the user's order."""
        return np.argsort(-self._known_lengths, kind="stable")

    @cached_property
    def alive(self) -> Index:
        """How many sequences are still alive at each step."""
        longest = int(self._known_lengths.max())
        ended = np.bincount(self._known_lengths, minlength=longest + 1)
        return self.samples - np.cumsum(ended)[:longest]

    @cached_property
    def offsets(self) -> Index:
        """First row of each step, and the number of rows at the end."""
        return np.concatenate([[0], np.cumsum(self.alive)]).astype(np.intp)

    @cached_property
    def first_rows(self) -> Index:
        """How many steps there are, the first row of each, and then the number of rows until there are ``rows + 2`` numbers."""
        found = np.full(self.rows + 2, self.rows, np.intp)
        found[0] = len(self.alive)
        found[1 : len(self.offsets) + 1] = self.offsets
        return found

    @cached_property
    def sequence_of_row(self) -> Index:
        """User's index of the sequence that each row belongs to."""
        place = np.arange(self.rows) - np.repeat(self.offsets[:-1], self.alive)
        return self.order[place]

    @cached_property
    def step_of_row(self) -> Index:
        """Step within its sequence of each row."""
        return np.repeat(np.arange(len(self.alive)), self.alive)

    @cached_property
    def starts(self) -> Index:
        """Where each of the user's sequences begins when these are laid end to end, and where the last one ends."""
        return np.concatenate([[0], np.cumsum(self._known_lengths)]).astype(np.intp)

    @cached_property
    def pack_index(self) -> Index:
        """Step of each row when the user's sequences are laid end to end: ``concatenated[pack_index]`` is the rows."""
        return self.starts[self.sequence_of_row] + self.step_of_row

    @cached_property
    def unpack_index(self) -> Index:
        """Inverse of :attr:`pack_index`: ``rows[unpack_index]`` is the sequences laid end to end."""
        index = np.empty(self.rows, dtype=np.intp)
        index[self.pack_index] = np.arange(self.rows)
        return index

    @cached_property
    def rank(self) -> Index:
        """Place of each of the user's sequences in packed order: the inverse of :attr:`order`."""
        rank = np.empty(self.samples, dtype=np.intp)
        rank[self.order] = np.arange(self.samples)
        return rank

    def rows_at(self, step: Index) -> Index:
        """Row of the given step of each of the user's sequences."""
        return self.offsets[step] + self.rank

    @cached_property
    def splits(self) -> Index:
        """Where to cut the end-to-end sequences apart."""
        return np.cumsum(self._known_lengths)[:-1]

    @property
    def _known_lengths(self) -> Index:
        assert self.lengths is not None
        return self.lengths

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout):
            return NotImplemented
        if self.lengths is None or other.lengths is None:
            return self.lengths is other.lengths and self.samples == other.samples
        return np.array_equal(self.lengths, other.lengths)

    __hash__ = object.__hash__

    @property
    def shapes(self) -> Sequence[Shape] | None:
        """Static shapes of the results that decided the layout; None where it was decided otherwise."""
        return None

    def __str__(self) -> str:
        return f"{self.samples} samples" if self.lengths is None else f"sequences of {', '.join(map(str, self.lengths))} steps"

    def __repr__(self) -> str:
        return f"Layout({self.samples})" if self.lengths is None else f"Layout({self.samples}, lengths={self.lengths.tolist()})"


class ComputedLayout(Layout):
    """A layout that depends on computed results.

    Attributes:
        results: the computed results, for the operator to use.
    """

    def __init__(self, layout: Layout, shapes: Sequence[Shape], results: Any) -> None:
        super().__init__(layout.samples, layout.lengths)
        self._shapes, self.results = tuple(shapes), results

    @property
    def shapes(self) -> Sequence[Shape]:
        return self._shapes
