"""Kernel sources of attention: the matrix of scores is computed tile by tile, and never lies in memory as a whole.

A block has a tile of rows of its own, queries or keys, and goes through the others tile by tile, in order.  Products go through shared
memory, ``TERMS`` terms at a time; a thread has a few rows of the tile, and a few columns.  The sums of exponentials are relative to the
greatest score so far; where a later tile has a greater one, what has been added up shrinks.  The way back computes the scores again: one
kernel has tiles of queries, and writes their gradients; the other has tiles of keys, and writes those of keys and values.  Each element is
added up by one thread, in an order that depends on the number of terms alone.

Source: M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018; T. Dao et al., "FlashAttention: fast and
memory-efficient exact attention with IO-awareness", NeurIPS 2022.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .prelude import REAL, prelude

THREADS, LANES = 256, 16
"""Threads of a block, and those that share a row of a tile."""

SIZES = {"float": (64, 64), "double": (32, 32)}
"""Rows of a block's own tile at most, and of the tiles that it goes through, for which shared memory is enough."""


class Form(NamedTuple):
    """What kernels of attention are written for.

    Attributes:
        dtype: element type of all matrices.
        depth, width: elements of a query, and of a value.
        rows: rows of a block's own tile.
        scale: what scores are multiplied by: ``'1'``, another number, or what is read from memory, as ``'*scale'`` or ``'1 / *scale'``.
        scales: how many such numbers there are in memory: none, or one for each head.
        biased: whether a bias is added to the scores.
        numbers: how many numbers replace scores where a mask is 0: none, or one for each head.
        in_sequences: whether rows belong to sequences, and are looked up.
        keeps_scores: whether the gradients of scores are written as well.
    """

    dtype: Any
    depth: int
    width: int
    rows: int
    scale: str
    scales: int = 0
    biased: bool = False
    numbers: int = 0
    in_sequences: bool = False
    keeps_scores: bool = False

    @property
    def others(self) -> int:
        """Rows of the tiles that a block goes through."""
        return SIZES[REAL[np.dtype(self.dtype).name]][1]

    @property
    def blocks_together(self) -> int:
        """Blocks that a multiprocessor has registers for: two of float32; other types take some more of them."""
        return 2 if np.dtype(self.dtype) == np.float32 else 1

    @property
    def panel(self) -> int:
        """Columns of a result that a block computes."""
        return min(self.others, max(LANES, 1 << (max(self.depth, self.width, 1) - 1).bit_length()))

    def panels(self, columns: int) -> int:
        """How many blocks share the columns of a result."""
        return max(1, -(-columns // self.panel))


MATRICES = {
    "attend": ("query", "key", "value", "bias", "mask", "result"),
    "attend_gradient_of_queries": ("query", "key", "value", "bias", "mask", "result", "result_grad", "query_grad", "score_grad"),
    "attend_gradient_of_keys": ("query", "key", "value", "bias", "mask", "result_grad", "key_grad", "value_grad"),
}
"""Matrices of each kernel."""

WRITTEN = {
    "attend": {"result"},
    "attend_gradient_of_queries": {"query_grad", "score_grad"},
    "attend_gradient_of_keys": {"key_grad", "value_grad"},
}
"""Those that it writes."""

TILES = """
#define EACH(i, count) _Pragma("unroll") for (unsigned i = 0; i < count; ++i)
#define ROW (threadIdx.x / LANES * ROWS)
#define COLUMN(count) (threadIdx.x % LANES * (count))
#define LEFT (OWN + 4)
#define RIGHT (OTHERS + 4)

template <unsigned COUNT>
struct alignas(COUNT % 4 == 0 ? 16 : COUNT * sizeof(real)) Some {
    real of[COUNT];
};

/* A matrix whose rows lie some elements apart, or where an array says. */
struct Matrix {
    stored *first;
    const long long *places;
    size step, element;
    unsigned rows;

    __device__ __forceinline__ size place(unsigned row, unsigned column) const {
        return (IN_SEQUENCES ? (size)places[row] : (size)row) * step + column * element;
    }
    __device__ __forceinline__ real at(unsigned row, unsigned column, unsigned columns) const {
        return row < rows && column < columns ? value_of(first[place(row, column)]) : (real)0;
    }
    __device__ __forceinline__ void write(unsigned row, unsigned column, unsigned columns, real x) const {
        if (row < rows && column < columns)
            store(first[place(row, column)], x);
    }
};

struct Tiles {
    alignas(16) real left[TERMS * LEFT];
    alignas(16) real right[TERMS * RIGHT];
    alignas(16) real weights[OTHERS * LEFT];
};

/* Brings some columns of rows; they are rows afterwards. */
template <unsigned COUNT>
__device__ __forceinline__ void bring_turned(real *tile, const Matrix &x, unsigned row, unsigned column, unsigned columns) {
#pragma unroll 4
    for (unsigned at = threadIdx.x; at < COUNT * TERMS; at += THREADS) {
        const unsigned i = at / 8 % COUNT, k = at % 8 + at / (8 * COUNT) * 8;
        tile[k * (COUNT + 4) + i] = x.at(row + i, column + k, columns);
    }
}

/* Brings some columns of rows as they are. */
__device__ __forceinline__ void bring(real *tile, const Matrix &x, unsigned row, unsigned column, unsigned columns) {
#pragma unroll 4
    for (unsigned at = threadIdx.x; at < TERMS * PANEL; at += THREADS)
        tile[at / PANEL * RIGHT + at % PANEL] = x.at(row + at / PANEL, column + at % PANEL, columns);
}

template <unsigned COUNT>
__device__ __forceinline__ void multiply(const real *left, const real *right, real (&sums)[ROWS][COUNT]) {
#pragma unroll 8
    for (unsigned k = 0; k < TERMS; ++k) {
        const Some<ROWS> x = *(const Some<ROWS> *)(left + k * LEFT + ROW);
        const Some<COUNT> y = *(const Some<COUNT> *)(right + k * RIGHT + COLUMN(COUNT));
        EACH(i, ROWS)
            EACH(j, COUNT)
                sums[i][j] = fma(x.of[i], y.of[j], sums[i][j]);
    }
}

/* The products of own rows with others. */
__device__ __forceinline__ void products_of_rows(
    Tiles &tiles, const Matrix &own, unsigned row, const Matrix &others, unsigned other, unsigned columns, real (&sums)[ROWS][SCORES]
) {
    EACH(i, ROWS)
        EACH(j, SCORES)
            sums[i][j] = 0;
    for (unsigned column = 0; column < columns; column += TERMS) {
        __syncthreads();
        bring_turned<OWN>(tiles.left, own, row, column, columns);
        bring_turned<OTHERS>(tiles.right, others, other, column, columns);
        __syncthreads();
        multiply<SCORES>(tiles.left, tiles.right, sums);
    }
}

/* Adds up other rows by the weights in the tile. */
__device__ __forceinline__ void add_weighted(
    Tiles &tiles, const Matrix &others, unsigned other, unsigned column, unsigned columns, real (&sums)[ROWS][COLUMNS]
) {
    for (unsigned k = 0; k < OTHERS && other + k < others.rows; k += TERMS) {
        __syncthreads();
        bring(tiles.right, others, other + k, column, columns);
        __syncthreads();
        multiply<COLUMNS>(tiles.weights + k * LEFT, tiles.right, sums);
    }
}

__device__ __forceinline__ real &weight_in(Tiles &tiles, unsigned i, unsigned j) {
    return tiles.weights[(COLUMN(SCORES) + j) * LEFT + ROW + i];
}

__device__ __forceinline__ real greatest_of_row(real x) {
    for (int bit = LANES / 2; bit; bit /= 2) {
        const real other = __shfl_xor_sync(ALL, x, bit);
        x = other > x ? other : x;
    }
    return x;
}

__device__ __forceinline__ real sum_of_row(real x) {
    for (int bit = LANES / 2; bit; bit /= 2)
        x += __shfl_xor_sync(ALL, x, bit);
    return x;
}
"""

BODIES = {
    "attend": """
    real sums[ROWS][COLUMNS] = {}, edge[ROWS], total[ROWS] = {};
    EACH(i, ROWS)
        edge[i] = -INFINITY;
    for (unsigned other = 0; other < key.rows; other += OTHERS) {
        real scores[ROWS][SCORES];
        products_of_rows(tiles, query, row, key, other, DEPTH, scores);
        EACH(i, ROWS) {
            const unsigned mine = row + ROW + i;
            const real before = edge[i];
            real most = before, added = 0;
            EACH(j, SCORES) {
                const unsigned its = other + COLUMN(SCORES) + j;
                scores[i][j] = its < key.rows ? SCORE(scores[i][j] * factor, mine, its) : -INFINITY;
                most = scores[i][j] > most ? scores[i][j] : most;
            }
            edge[i] = greatest_of_row(most);
            const real level = edge[i] > -INFINITY ? edge[i] : (real)0, shrink = power_of_e(before - level);
            EACH(j, SCORES) {
                const real power = power_of_e(scores[i][j] - level);
                weight_in(tiles, i, j) = power;
                added += power;
            }
            total[i] = total[i] * shrink + sum_of_row(added);
            EACH(j, COLUMNS)
                sums[i][j] *= shrink;
        }
        add_weighted(tiles, value, other, column, WIDTH, sums);
    }
    EACH(i, ROWS) {
        const unsigned mine = row + ROW + i;
        const real share = 1 / total[i];
        EACH(j, COLUMNS)
            result.write(mine, column + COLUMN(COLUMNS) + j, WIDTH, sums[i][j] * share);
        if (column == 0 && COLUMN(1) == 0 && mine < query.rows) {
            edges[mine] = edge[i];
            totals[mine] = total[i];
        }
    }
""",
    "attend_gradient_of_queries": """
    real sums[ROWS][COLUMNS] = {}, edge[ROWS], share[ROWS], mean[ROWS];
    EACH(i, ROWS) {
        const unsigned mine = row + ROW + i;
        real inner = 0;
        for (unsigned at = COLUMN(1); at < WIDTH; at += LANES)
            inner = fma(result.at(mine, at, WIDTH), result_grad.at(mine, at, WIDTH), inner);
        mean[i] = sum_of_row(inner);
        edge[i] = mine < query.rows ? edges[mine] : (real)0;
        share[i] = mine < query.rows ? 1 / totals[mine] : (real)0;
        if (column == 0 && COLUMN(1) == 0 && mine < query.rows)
            means[mine] = mean[i];
    }
    for (unsigned other = 0; other < key.rows; other += OTHERS) {
        real scores[ROWS][SCORES], grads[ROWS][SCORES];
        products_of_rows(tiles, query, row, key, other, DEPTH, scores);
        products_of_rows(tiles, result_grad, row, value, other, WIDTH, grads);
        EACH(i, ROWS)
            EACH(j, SCORES) {
                const unsigned mine = row + ROW + i, its = other + COLUMN(SCORES) + j;
                const bool is_there = mine < query.rows && its < key.rows;
                const real weight = is_there ? power_of_e(SCORE(scores[i][j] * factor, mine, its) - edge[i]) * share[i] : (real)0;
                const real grad = is_there && IS_OPEN(mine, its) ? (grads[i][j] - mean[i]) * weight : (real)0;
                weight_in(tiles, i, j) = grad;
                KEEP(mine, its, grad);
            }
        add_weighted(tiles, key, other, column, DEPTH, sums);
    }
    EACH(i, ROWS)
        EACH(j, COLUMNS)
            query_grad.write(row + ROW + i, column + COLUMN(COLUMNS) + j, DEPTH, sums[i][j] * factor);
""",
    "attend_gradient_of_keys": """
    real key_sums[ROWS][COLUMNS] = {}, value_sums[ROWS][COLUMNS] = {};
    for (unsigned other = 0; other < query.rows; other += OTHERS) {
        real scores[ROWS][SCORES], grads[ROWS][SCORES];
        products_of_rows(tiles, key, row, query, other, DEPTH, scores);
        products_of_rows(tiles, value, row, result_grad, other, WIDTH, grads);
        EACH(j, SCORES) {
            const unsigned its = other + COLUMN(SCORES) + j;
            const bool is_query = its < query.rows;
            const real edge = is_query ? edges[its] : (real)0, mean = is_query ? means[its] : (real)0;
            const real share = is_query ? 1 / totals[its] : (real)0;
            EACH(i, ROWS) {
                const unsigned mine = row + ROW + i;
                const bool is_there = is_query && mine < key.rows;
                const real weight = is_there ? power_of_e(SCORE(scores[i][j] * factor, its, mine) - edge) * share : (real)0;
                weight_in(tiles, i, j) = weight;
                scores[i][j] = is_there && IS_OPEN(its, mine) ? (grads[i][j] - mean) * weight : (real)0;
            }
        }
        add_weighted(tiles, result_grad, other, column, WIDTH, value_sums);
        __syncthreads();
        EACH(i, ROWS)
            EACH(j, SCORES)
                weight_in(tiles, i, j) = scores[i][j];
        add_weighted(tiles, query, other, column, DEPTH, key_sums);
    }
    EACH(i, ROWS)
        EACH(j, COLUMNS) {
            key_grad.write(row + ROW + i, column + COLUMN(COLUMNS) + j, DEPTH, key_sums[i][j] * factor);
            value_grad.write(row + ROW + i, column + COLUMN(COLUMNS) + j, WIDTH, value_sums[i][j]);
        }
""",
}
"""What each kernel does: *row* is the first of the block's own rows, *column* its first column."""

OF_KEYS = {"key", "value", "key_grad", "value_grad"}
"""Matrices with a row for each key; others have one for each query."""


def text(name: str, form: Form, index: str) -> str:
    """Return the source of a kernel.

    It takes the matrices, each with the elements between entries, heads, rows and columns; the greatest score of each query, the sum of
    exponentials and, for gradients, the mean of gradients; the scales and the numbers; how many heads, queries and keys there are; and
    for sequences entry and first row of each tile, and of queries and of keys where rows lie and where sequences start.
    """
    matrices = matrices_of(name, form)
    own = "key" if name == "attend_gradient_of_keys" else "query"
    arguments = [f"{_stored(name, one)} *{one}_first, {', '.join(f'size {one}_{step}' for step in STEPS)}" for one in matrices]
    arguments += [f"real *{one}" for one in vectors_of(name)]
    arguments += [f"const stored *scale_{head}" for head in range(form.scales)]
    arguments += [f"const stored *number_{head}" for head in range(form.numbers)]
    arguments += ["size heads", "unsigned queries", "unsigned keys"]
    if form.in_sequences:
        arguments += ["const long long *tile_table"]
        arguments += [f"const long long *{of}_{what}" for of in ("query", "key") for what in ("places", "starts")]
    factor = form.scale.replace("*scale", "value_of(*scale)")
    sizes = {
        "OWN": form.rows,
        "OTHERS": form.others,
        "PANEL": form.panel,
        "DEPTH": form.depth,
        "WIDTH": form.width,
        "THREADS": THREADS,
        "LANES": LANES,
        "TERMS": 32,
        "ROWS": form.rows * LANES // THREADS,
        "SCORES": form.others // LANES,
        "COLUMNS": form.panel // LANES,
        "PANELS": panels_of(name, form),
    }
    lines = [
        *_places(form, own),
        *_of_head("scale", form.scales),
        *_of_head("number", form.numbers),
        *(_matrix(name, one, form) for one in matrices),
        *(_vector(one) for one in vectors_of(name)),
    ]
    places = "\n    ".join(lines)
    return f"""{prelude(form.dtype, index)}
{"".join(f"#define {name} {value}u" + chr(10) for name, value in sizes.items())}
#define IN_SEQUENCES {int(form.in_sequences)}
#define IS_OPEN(of_query, of_key) {"(mask.at(of_query, of_key, keys_here) != 0)" if form.numbers else "true"}
#define SCORE(x, of_query, of_key) {_score(form)}
#define KEEP(of_query, of_key, x) {"if (column == 0) score_grad.write(of_query, of_key, keys_here, x)" if form.keeps_scores else "(void)0"}
{TILES}
extern "C" __global__ void __launch_bounds__({THREADS}, {form.blocks_together})
{name}({", ".join(arguments)}) {{
    __shared__ Tiles tiles;
    {places}
    const real factor = (real)({factor});
{BODIES[name].strip(chr(10))}
}}
"""


STEPS = ("entry", "head", "step", "element")
"""Names of the distances between entries, heads, rows and columns of a matrix."""


def matrices_of(name: str, form: Form) -> list[str]:
    """The matrices that a kernel takes."""
    absent = {one for one, there in (("bias", form.biased), ("mask", form.numbers), ("score_grad", form.keeps_scores)) if not there}
    return [one for one in MATRICES[name] if one not in absent]


def vectors_of(name: str) -> list[str]:
    """The arrays with a number for each query that it takes."""
    return ["edges", "totals"] if name == "attend" else ["edges", "totals", "means"]


def panels_of(name: str, form: Form) -> int:
    """How many blocks have the same rows."""
    columns = {"attend": form.width, "attend_gradient_of_queries": form.depth}
    return form.panels(columns.get(name, max(form.depth, form.width)))


def _stored(name: str, matrix: str) -> str:
    return "stored" if matrix in WRITTEN[name] else "const stored"


def _places(form: Form, own: str) -> list[str]:
    """Which rows and columns a block has, and how many queries and keys there are beside it."""
    lines = ["const unsigned head = blockIdx.y / PANELS, column = blockIdx.y % PANELS * PANEL;"]
    if not form.in_sequences:
        count = "queries" if own == "query" else "keys"
        return [
            *lines,
            f"const unsigned blocks = ({count} + OWN - 1) / OWN, entry = blockIdx.x / blocks, row = blockIdx.x % blocks * OWN;",
            "const unsigned queries_here = queries, keys_here = keys;",
            "const long long *const query_places = nullptr, *const key_places = nullptr;",
            "const size first_query = ((size)entry * heads + head) * queries;",
        ]
    return [
        *lines,
        "if (tile_table[2 * blockIdx.x] < 0)",
        "    return;",
        "const unsigned entry = tile_table[2 * blockIdx.x], row = tile_table[2 * blockIdx.x + 1];",
        "const size first_query = query_starts[entry], first_key = key_starts[entry];",
        "const unsigned queries_here = query_starts[entry + 1] - first_query, keys_here = key_starts[entry + 1] - first_key;",
        "query_places += first_query;",
        "key_places += first_key;",
    ]


def _matrix(name: str, matrix: str, form: Form) -> str:
    of = "key" if matrix in OF_KEYS else "query"
    count = "keys_here" if of == "key" else "queries_here"
    first = f"(stored *){matrix}_first + entry * {matrix}_entry + head * {matrix}_head"
    return f"const Matrix {matrix} = {{{first}, {of}_places, {matrix}_step, {matrix}_element, {count}}};"


def _score(form: Form) -> str:
    """The score that a scaled product gives."""
    if form.numbers:
        return "(IS_OPEN(of_query, of_key) ? (x) : value_of(*number))"
    return "((x) + bias.at(of_query, of_key, keys_here))" if form.biased else "(x)"


def _of_head(name: str, count: int) -> list[str]:
    """Which of the numbers is that of the block's head, if there are any."""
    choice = "".join(f"head == {head} ? {name}_{head} : " for head in range(count - 1))
    return [f"const stored *const {name} = {choice}{name}_{count - 1};"] if count else []


def _vector(vector: str) -> str:
    return f"{vector} += first_query;"
