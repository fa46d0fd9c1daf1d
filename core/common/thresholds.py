"""The sizes from which on another implementation is faster: one table, which a file of the user's may change.

Implementations give the same results, except that NumPy and compiled loops round differently; the number of threads never changes a
bit.  Defaults were measured on a few processors; ``cntk tune`` measures this machine and writes the file.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..storage.cache_folder import user_cache
from .switches import Switch
from .user_frame import warn_user

VARIABLE = "CNTK_THRESHOLDS"
"""The environment variable that names another file, or is 0 to read none."""

NEVER = 2**62
"""A size larger than any."""

OFFERED = 32
"""From a 32nd of the size on from which threads share a call, those that look for work anyway help with it."""

_LARGEST_FILE = 1 << 20


class Threshold(NamedTuple):
    """An entry of the table.

    Attributes:
        name: its name.
        default: the default size.
        unit: the unit of sizes.
        decides: what is done from that size on.
    """

    name: str
    default: int
    unit: str
    decides: str


def _from(default: int, unit: str, decides: str) -> Any:
    return dataclasses.field(default=default, metadata={"unit": unit, "decides": decides})


@dataclass(slots=True)
class Thresholds:
    """The current sizes, as attributes; changes apply to whatever is compiled or called afterwards."""

    attention_apart: int = _from(129, "elements of a key or a value", "the operators of attention run one after another, not as one")
    attention_compiled: int = _from(2**8, "scores", "attention runs in compiled loops")
    attention_shared: int = _from(2**16, "scores", "threads share these loops")
    batch_normalization_compiled: int = _from(2**18, "values in a call", "batch normalisation in training runs in compiled loops")
    batch_normalization_places: int = _from(16, "values of a feature side by side", "these loops are used for such data")
    batch_normalization_shared: int = _from(2**19, "values in a call", "threads share these loops, for which they are woken twice")
    blocks_of_rows: int = _from(4 << 20, "bytes of an array", "operators that follow one another go through it in blocks of rows")
    chain_compiled: int = _from(2**17, "elements of all results and gradients", "a chain of operators runs as one compiled call")
    chain_group: int = _from(128, "elements of a group of rows", "a chain that goes through such groups may run as one compiled call")
    convolution_compiled: int = _from(2**12, "multiplications", "convolutions run in compiled loops")
    convolution_shared: int = _from(2**22, "multiplications", "threads share a convolution")
    cross_entropy_compiled: int = _from(2**14, "logits", "cross entropy with softmax runs in compiled loops")
    ctf_compiled: int = _from(32 << 20, "bytes of text", "text is read by a compiled loop")
    ctf_index_kept: int = _from(16 << 20, "bytes of text", "the index of a text is kept in a file")
    dropout_bits_shared: int = _from(2**16, "elements", "threads share the drawing of a mask")
    dropout_compiled: int = _from(2**14, "elements", "dropout in training runs in compiled loops")
    dropout_shared: int = _from(2**18, "elements", "threads share the gradient of dropout, which only goes through a mask")
    elements_shared: int = _from(2**14, "elements", "threads share loops without a threshold of their own")
    exponentials_shared: int = _from(2**16, "elements", "threads share loops that compute exponentials or logarithms")
    gather_compiled: int = _from(2**10, "elements of the result", "rows are gathered by a compiled loop")
    initial_values_compiled: int = _from(2**22, "elements", "a parameter's random initial values are drawn by compiled loops")
    learner_compiled: int = _from(2**17, "elements of all parameters", "learners update parameters in compiled loops")
    learner_shared: int = _from(2**19, "elements of all parameters", "threads share an update")
    pooling_compiled: int = _from(2**9, "elements of all windows", "pooling runs in compiled loops")
    pooling_shared: int = _from(2**18, "elements of all windows", "threads share pooling")
    product_compiled: int = _from(2**20, "multiplications", "products run in compiled loops, not the BLAS")
    product_considered: int = _from(2**20, "product of the operands' sizes", "products may run in compiled loops at all")
    product_cut: int = _from(2**17, "elements of a gradient", "a compiled loop sends it back through a rectifier, and sums it for the bias")
    product_gradient_direct: int = _from(64, "rows", "gradients of left operands are computed from the transposed matrix, not the rows")
    product_narrow: int = _from(10**6, "multiplications", "products with a packed matrix of fewer columns run in compiled loops")
    product_packed: int = _from(2**15, "multiplications", "products with a matrix that is packed once run in compiled loops, not the BLAS")
    product_row_compiled: int = _from(2**14, "multiplications", "the product of a single row runs in a compiled loop, not the BLAS")
    product_row_shared: int = _from(2**20, "multiplications", "threads share the product of a few rows that a compiled loop computes")
    product_shared: int = _from(2**20, "multiplications", "threads share products that the BLAS computes, and wait for one another")
    product_sides: int = _from(32, "rows, columns and terms", "products of that many may run in compiled loops")
    product_stack_compiled: int = _from(2**20, "multiplications in all products of a stack", "stacks of products run in compiled loops")
    recurrence_compiled: int = _from(2**14, "multiplications in products", "a recurrence runs as one compiled call")
    reduction_compiled: int = _from(2**15, "elements", "reductions run in compiled loops")
    reduction_shared: int = _from(2**18, "elements", "threads share reductions without exponentials")
    rows_shared: int = _from(2**20, "elements of scattered rows", "threads, which sleep by then, share loops over them")
    sequence_sum_compiled: int = _from(2**13, "elements of all steps", "steps of sequences are added up by a compiled loop")
    shuffle_compiled: int = _from(1 << 20, "sequences", "they are put in random order by a compiled loop")
    softmax_compiled: int = _from(2**14, "elements", "softmax and its logarithm run in compiled loops")
    sparse_product_compiled: int = _from(2**17, "elements of a parameter", "products with sparse data in training run in compiled loops")
    winograd_filters_shared: int = _from(2**14, "weights", "threads share what minimal filtering does for each weight")
    winograd_shared: int = _from(2**23, "multiplications without it", "threads share convolution by minimal filtering")


_DEFAULTS = Thresholds()

TABLE = {
    field.name: Threshold(field.name, getattr(_DEFAULTS, field.name), field.metadata["unit"], field.metadata["decides"])
    for field in dataclasses.fields(Thresholds)
}
"""The entries of the table by name."""


def is_offered(size: int, shared: int) -> bool:
    """Whether threads that look for work anyway help with a call of this size, where such calls are shared from another one on."""
    return size >= shared // OFFERED


def own_file(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The user's file, which need not exist; None if none is to be read, or the user has no folder for it."""
    given = environment.get(VARIABLE, "").strip()
    if given:
        return None if given == "0" else Path(given)
    folder = user_cache("opencntk")
    return folder / "thresholds.json" if folder else None


def read_file(path: Path) -> dict[str, int]:
    """The thresholds in a file: ``{"thresholds": {"softmax_compiled": 4096}}``.

    Nothing in it is run.  Invalid entries are ignored with a warning that names them, and so is a file that is damaged or that somebody
    else may have written.
    """
    import json

    from ..storage.trusted import Untrusted, open_trusted, warn_of

    try:
        with open_trusted(path) as file:
            held = json.loads(file.read(_LARGEST_FILE))
        entries = held["thresholds"].items()
    except Untrusted as error:
        warn_of(error.place, error.why, "Thresholds are what they are by default")
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        _warn(f"{path} holds no thresholds: {type(error).__name__}: {error}; write it again with: cntk tune")
        return {}
    return {name: value for name, value in entries if _is_entry(path, name, value)}


def _is_entry(path: Path, name: str, value: Any) -> bool:
    if name not in TABLE:
        _warn(f"{path}: there is no threshold '{name}'; cntk tune --help lists them")
    elif type(value) is not int or not 0 <= value <= NEVER:
        _warn(f"{path}: expected a whole number from 0 to 2**62 for '{name}', got {value!r:.80}")
    else:
        return True
    return False


def _warn(message: str) -> None:
    warn_user(message, RuntimeWarning)


def _in_force() -> Thresholds:
    """The defaults, overridden by the user's file."""
    path = own_file()
    if path is None or not (path.exists() or os.environ.get(VARIABLE, "").strip()):
        return Thresholds()
    return Thresholds(**read_file(path))


thresholds = _in_force()
"""The thresholds of this process."""


class _Table(Switch[Thresholds]):
    """All thresholds as one switch, which saves a copy: they are changed one by one, and their readers hold the table."""

    def get(self) -> Thresholds:
        return dataclasses.replace(self.value)

    def put_back(self, value: Thresholds) -> None:
        _set(dataclasses.asdict(value))


_Table("thresholds", thresholds)


@contextmanager
def overridden(**values: int) -> Iterator[None]:
    """Change thresholds inside a ``with`` block, in all threads.

    Args:
        values: sizes by name.

    Raises:
        ValueError: there is no such threshold.

    Example:
        >>> from cntk.core.common.thresholds import overridden, thresholds
        >>> with overridden(softmax_compiled=0):
        ...     thresholds.softmax_compiled
        0
    """
    unknown = sorted(set(values) - set(TABLE))
    if unknown:
        raise ValueError(f"there is no threshold {', '.join(unknown)}; there are {', '.join(TABLE)}")
    before = {name: getattr(thresholds, name) for name in values}
    _set(values)
    try:
        yield
    finally:
        _set(before)


def all_set_to(size: int) -> AbstractContextManager[None]:
    """Set all thresholds inside a ``with`` block: with 0 everything is treated as large, with :data:`NEVER` as small.

    Args:
        size: the size.

    Returns:
        a context manager.

    Example:
        >>> from cntk.core.common.thresholds import NEVER, all_set_to
        >>> with all_set_to(NEVER):
        ...     C.softmax([1., 1.]).eval()
        array([0.5, 0.5], dtype=float32)
    """
    return overridden(**dict.fromkeys(TABLE, size))


def _set(values: Mapping[str, int]) -> None:
    for name, value in values.items():
        setattr(thresholds, name, value)
