"""The part of a recurrence's source that multiplies a step's rows by a matrix.

A block holds its columns of the matrix in shared memory from the first step to the last, if they fit, so that a step reads only rows from
the L2 cache; otherwise it brings the columns in every step.  Four columns lie side by side, term after term.  Rows come by chunks of
:data:`CHUNK_BYTES`, two chunks ahead of those that are multiplied.

The terms of a chunk are divided over teams of threads.  A thread adds the terms of its team in order, for some rows and four columns, and
adds up its sums of chunks; the sums of teams are added in a tree.  How terms are divided depends on their number and type alone, so a sum
does not depend on how many rows or columns a thread or a block has.
"""

from __future__ import annotations

from .compiler import THREADS

BUFFERS = 3
"""Chunks in shared memory: one that is multiplied, and those that are on their way."""

CHUNK_BYTES = 1024
"""Size of the terms of a row that are brought at a time."""

MOST_TEAMS, LEAST_TERMS = 16, 16
"""Maximum number of teams, and terms of a product for each of them at least."""


def chunk_of(size: int) -> int:
    """Return the number of terms in a chunk of elements that are computed in so many bytes."""
    return CHUNK_BYTES // size


def rows_of_threads(rows: int, fours: int, depth: int, size: int) -> int:
    """Return how many rows a thread has at a time: those with which it reads the least from shared memory.

    Args:
        rows: number of rows.
        fours: how many times four columns there are.
        depth: number of terms.
        size: bytes of an element in registers, of which there are too few for many rows.
    """
    return min((each for each in (8, 4, 2, 1) if each <= min(rows, 32 // size)), key=lambda each: reads(rows, fours, depth, each))


def reads(rows: int, fours: int, depth: int, each: int) -> int:
    """Return how many times a thread that has so many rows at a time reads four elements of shared memory."""
    teams = teams_of(depth)
    items, lanes = -(-rows // each) * fours, THREADS // teams
    return -(-items // lanes) * -(-depth // (4 * teams)) * (each + 4)


def teams_of(depth: int) -> int:
    """Return the number of teams that the terms of a product are divided over, a power of 2."""
    return min(MOST_TEAMS, 1 << max(depth // LEAST_TERMS, 1).bit_length() - 1)


def pitch_of(terms: int) -> int:
    """Return how far apart four columns are from the next: odd, so that threads read them from different banks."""
    return -(-terms // 4) * 4 + 1


def text(size: int, sums: int, holds: bool) -> str:
    """Return the source.

    Args:
        size: bytes of an element in registers.
        sums: room for sums of teams, four in a row.
        holds: whether blocks hold their columns of all matrices.
    """
    return f"""
#define BUFFERS {BUFFERS}u
#define CHUNK {chunk_of(size)}u
#define SUMS {sums}u
#define HOLDS {int(holds)}
{TEXT}"""


TEXT = """
struct alignas(16) Four {
    real of[4];
};

struct alignas(4 * sizeof(stored)) FourStored {
    stored of[4];
};

#define FOURS (CHUNK / 4)
#define PITCH (FOURS + 1)
#define ALIGNMENT (sizeof(stored) < 4 ? 8u : 16u)

/* Copies to shared memory, which go on while a thread does other things if elements need no conversion. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ __forceinline__ unsigned shared_address(void *place) { return (unsigned)__cvta_generic_to_shared(place); }
__device__ __forceinline__ void bring(real &to, const real &from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(&to)), "l"(&from), "n"(sizeof(real)) : "memory");
}
__device__ __forceinline__ void bring(Four &to, const real *from) {
#pragma unroll
    for (unsigned part = 0; part < 4; part += 16 / sizeof(real))
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to.of + part)), "l"(from + part) : "memory");
}
__device__ __forceinline__ void end_of_chunk() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ __forceinline__ void wait_for_chunk() { asm volatile("cp.async.wait_group %0;" ::"n"(BUFFERS - 2) : "memory"); }
#else
__device__ __forceinline__ void bring(real &to, const real &from) { to = from; }
__device__ __forceinline__ void bring(Four &to, const real *from) { to = *(const Four *)from; }
__device__ __forceinline__ void end_of_chunk() {}
__device__ __forceinline__ void wait_for_chunk() {}
#endif
template <class T> __device__ __forceinline__ void bring(real &to, const T &from) { to = value_of(from); }
template <class T> __device__ __forceinline__ void bring(Four &to, const T *from) {
    const FourStored x = *(const FourStored *)from;
#pragma unroll
    for (unsigned j = 0; j < 4; ++j)
        to.of[j] = value_of(x.of[j]);
}

/* Shared memory: chunks of tiles of rows, sums of teams, and columns of matrices. */
struct Space {
    const unsigned rows, width;
    Four *const chunks, *const sums, *free;
    __device__ __forceinline__ Space(Four *shared, unsigned rows, unsigned width)
        : rows(rows), width(width), chunks(shared), sums(chunks + BUFFERS * rows * PITCH), free(sums + SUMS) {}
};

/* A product of rows, LEFT elements apart, with a matrix; WIDTH columns in units of UNITS, and sums of DEPTH terms, which are divided over
   TEAMS.  A thread has EACH rows. */
template <
    unsigned DEPTH, unsigned WIDTH, unsigned UNITS, unsigned LEFT, unsigned TARGET, unsigned BY_TERM, unsigned BY_COLUMN, unsigned TEAMS,
    unsigned EACH>
struct Product {
    static constexpr unsigned CHUNKS = (DEPTH + CHUNK - 1) / CHUNK, LANES = THREADS / TEAMS;
    static constexpr unsigned APART = (HOLDS ? (DEPTH + 3) / 4 * 4 : CHUNK) + 1;

    const Share share;
    const unsigned columns, fours;
    const stored *const matrix;
    Four *const held;

    __device__ __forceinline__ Product(const stored *matrix, Space &space)
        : share(UNITS), columns(share.count * (WIDTH / UNITS)), fours((columns + 3) / 4), matrix(matrix), held(space.free) {
        if (HOLDS) {
            bring_columns(held, 0, fours, 0, DEPTH);
            space.free += (share.most * (WIDTH / UNITS) + 3) / 4 * APART;
        }
    }

    /* The column of the result that is the block's column *mine*. */
    __device__ __forceinline__ unsigned column_of(unsigned mine) const {
        return mine / share.count * UNITS + share.begin + mine % share.count;
    }

    __device__ __forceinline__ static unsigned terms_of(unsigned chunk) {
        return chunk + 1 < CHUNKS ? CHUNK : DEPTH - (CHUNKS - 1) * CHUNK;
    }

    /* Brings terms of some of the block's columns; neighbouring threads read neighbouring elements. */
    __device__ __forceinline__ void bring_columns(Four *to, unsigned first, unsigned count, unsigned term, unsigned terms) const {
        const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = THREADS / 32, end = (terms + 3) / 4 * 4;
        for (unsigned place = BY_TERM == 1 ? warp : lane; place < 4 * count; place += BY_TERM == 1 ? warps : 32) {
            const unsigned mine = 4 * first + place;
            const bool is_column = mine < columns;
            const stored *const from = matrix + (size)(is_column ? column_of(mine) : 0) * BY_COLUMN + (size)term * BY_TERM;
            for (unsigned k = BY_TERM == 1 ? lane : warp; k < end; k += BY_TERM == 1 ? 32 : warps) {
                real &one = to[place / 4 * APART + k].of[place % 4];
                if (is_column && k < terms)
                    bring(one, from[(size)k * BY_TERM]);
                else
                    one = 0;
            }
        }
    }

    /* Brings terms of *count* rows. */
    __device__ __forceinline__ static void bring_rows(Four *to, const stored *left, unsigned count, unsigned term, unsigned terms) {
        const bool is_aligned = DEPTH % 4 == 0 && LEFT % 4 == 0 && (size)left % ALIGNMENT == 0;
        const unsigned four = threadIdx.x % FOURS;
        if (4 * four >= terms)
            return;
        for (unsigned i = threadIdx.x / FOURS; i < count; i += THREADS / FOURS) {
            const stored *const from = left + (size)i * LEFT + term + 4 * four;
            Four &one = to[i * PITCH + four];
            if (is_aligned) {
                bring(one, from);
            } else {
#pragma unroll
                for (unsigned j = 0; j < 4; ++j)
                    if (4 * four + j < terms)
                        bring(one.of[j], from[j]);
                    else
                        one.of[j] = 0;
            }
        }
    }

    /* Brings a chunk of rows, and of some columns if they are not held. */
    __device__ __forceinline__ void bring_chunk(
        const stored *left, unsigned count, unsigned chunk, unsigned first, unsigned width, const Space &space) const {
        if (chunk < CHUNKS) {
            const unsigned buffer = chunk % BUFFERS, term = chunk * CHUNK, terms = terms_of(chunk);
            bring_rows(space.chunks + buffer * space.rows * PITCH, left, count, term, terms);
            if (!HOLDS)
                bring_columns(space.free + buffer * space.width * APART, first, width, term, terms);
        }
        end_of_chunk();
    }

    /* Adds a team's terms of a chunk to the sums of some rows, *apart* from each other, and four columns. */
    __device__ __forceinline__ static void
    add_terms(real (&total)[EACH][4], const Four *rows, unsigned apart, const Four *matrix, unsigned terms) {
        const unsigned part = (terms + 4 * TEAMS - 1) / (4 * TEAMS), begin = threadIdx.x / LANES * part;
        const unsigned end = least(begin + part, (terms + 3) / 4);
        real piece[EACH][4] = {};
#pragma unroll (EACH > 2 ? 2 : 4)
        for (unsigned four = begin; four < end; ++four) {
            Four x[EACH];
#pragma unroll
            for (unsigned i = 0; i < EACH; ++i)
                x[i] = rows[i * apart + four];
#pragma unroll
            for (unsigned k = 0; k < 4; ++k) {
                const Four y = matrix[4 * four + k];
#pragma unroll
                for (unsigned i = 0; i < EACH; ++i)
#pragma unroll
                    for (unsigned j = 0; j < 4; ++j)
                        piece[i][j] = fma(x[i].of[k], y.of[j], piece[i][j]);
            }
        }
#pragma unroll
        for (unsigned i = 0; i < EACH; ++i)
#pragma unroll
            for (unsigned j = 0; j < 4; ++j)
                total[i][j] += piece[i][j];
    }

    /* The sum of what the teams have found for a row and column, added in a tree. */
    __device__ __forceinline__ static real sum_of_teams(const Four *sums, unsigned column) {
        real found[TEAMS];
#pragma unroll
        for (unsigned team = 0; team < TEAMS; ++team)
            found[team] = sums[team * LANES].of[column];
#pragma unroll
        for (unsigned half = TEAMS / 2; half; half /= 2)
#pragma unroll
            for (unsigned team = 0; team < half; ++team)
                found[team] += found[team + half];
        return found[0];
    }

    /* Multiplies a tile of *count* rows; a thread has EACH rows and four columns at a time. */
    __device__ __forceinline__ void multiply_tile(const stored *left, stored *target, unsigned count, const Space &space) const {
        const unsigned apart = (count + EACH - 1) / EACH, most = HOLDS ? fours : space.width;
        for (unsigned first = 0; first < fours; first += most) {
            const unsigned width = least(most, fours - first), items = apart * width;
            for (unsigned pass = 0; pass < items; pass += LANES) {
                const unsigned item = pass + threadIdx.x % LANES, four = item % width, row = item / width;
                const bool brings = pass == 0 || CHUNKS > BUFFERS;
                real total[EACH][4] = {};
                for (unsigned chunk = 0; brings && chunk < BUFFERS - 1; ++chunk)
                    bring_chunk(left, count, chunk, first, width, space);
                for (unsigned chunk = 0; chunk < CHUNKS; ++chunk) {
                    wait_for_chunk();
                    __syncthreads();
                    if (brings)
                        bring_chunk(left, count, chunk + BUFFERS - 1, first, width, space);
                    const unsigned buffer = chunk % BUFFERS;
                    const Four *const rows = space.chunks + buffer * space.rows * PITCH + row * PITCH;
                    const Four *const right = (HOLDS ? held + chunk * CHUNK : space.free + buffer * space.width * APART) + four * APART;
                    if (item < items)
                        add_terms(total, rows, apart * PITCH, right, terms_of(chunk));
                }
#pragma unroll
                for (unsigned i = 0; i < EACH; ++i)
#pragma unroll
                    for (unsigned j = 0; j < 4; ++j)
                        space.sums[i * THREADS + threadIdx.x].of[j] = total[i][j];
                __syncthreads();
                for (unsigned at = threadIdx.x; at < LANES * EACH * 4; at += THREADS) {
                    const unsigned lane = at / 4 % LANES, nth = at / (4 * LANES), other = pass + lane;
                    const unsigned i = other / width + nth * apart, mine = 4 * (first + other % width) + at % 4;
                    if (other < items && i < count && mine < columns)
                        store(target[(size)i * TARGET + column_of(mine)], sum_of_teams(space.sums + nth * THREADS + lane, at % 4));
                }
            }
        }
    }

    __device__ __forceinline__ void multiply(const stored *left, stored *target, unsigned all, const Space &space) const {
        for (unsigned tile = blockIdx.y * space.rows; tile < all; tile += gridDim.y * space.rows)
            multiply_tile(left + (size)tile * LEFT, target + (size)tile * TARGET, least(space.rows, all - tile), space);
    }
};
"""
