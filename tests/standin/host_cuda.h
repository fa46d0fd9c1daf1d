/* What CUDA C++ has and C++ has not, so that a kernel's text runs on the host.

The threads of a block are fibres: one runs until it waits for others, then the next.  Blocks run one after another, or, if they wait for
each other, in turns: a thread that sleeps (__nanosleep) lets the next block run.  Shared memory holds NaN (-1 where integers lie) when a
block begins; indices of arrays are checked, and so is what lies behind dynamic shared memory.  What
would hang or corrupt a device is a message instead. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __constant__ static const
#define __shared__ static __attribute__((section("host_cuda_shared")))

namespace host_cuda {

struct Dim {
    unsigned x, y, z;
};

enum State { READY, AT_BARRIER, AT_WARP, SLEEPING, ENDED };

const int WARP = 32, STACK = 1 << 17, MOST_THREADS = 1024, MOST_BLOCKS = 132;
const size_t BEHIND = 4096, MOST_SHARED = 232448;

struct Fibre {
    ucontext_t context;
    Dim index;
    State state;
    int line;
    unsigned phase;
    char *stack;
};

struct Failure {};

/* Two sets of slots: a lane that is ahead writes to the one while others still read the other. */
struct Warp {
    unsigned long long slots[2][WARP];
    int arrived;
};

struct Block {
    Dim index;
    Fibre fibres[MOST_THREADS];
    Warp warps[MOST_THREADS / WARP];
    unsigned char *shared;
};

static Block first_block;
static Fibre *fibres = first_block.fibres;
static Warp *warps = first_block.warps;
static Fibre *current = first_block.fibres;
static ucontext_t scheduler;
static Dim grid, block, block_index;
alignas(16) static unsigned char dynamic[MOST_SHARED + BEHIND];
static char message[256];
static void (*body)(void **);
static void **arguments;

__attribute__((used, section("host_cuda_shared"))) static unsigned char first_byte[16];
extern "C" unsigned char __start_host_cuda_shared[] __attribute__((visibility("hidden")));
extern "C" unsigned char __stop_host_cuda_shared[] __attribute__((visibility("hidden")));

[[noreturn]] static inline void fail(const char *what) {
    if (!message[0])
        snprintf(message, sizeof message, "%s; block (%u, %u, %u), thread (%u, %u, %u)", what, block_index.x, block_index.y, block_index.z,
                 current->index.x, current->index.y, current->index.z);
    throw Failure();
}

static inline void wait(State state, int line) {
    current->state = state;
    current->line = line;
    swapcontext(&current->context, &scheduler);
    if (message[0])
        throw Failure();
}

static inline unsigned number() { return current - fibres; }

template <class T> T exchange(unsigned mask, T value, int from, int line) {
    if (mask != 0xffffffffu)
        fail("a warp operation is not for all lanes");
    if (from < 0 || from >= WARP)
        fail("a warp operation reads a lane that there is not");
    Warp &warp = warps[number() / WARP];
    unsigned long long *slots = warp.slots[current->phase++ & 1];
    memcpy(&slots[number() % WARP], &value, sizeof value);
    if (++warp.arrived == WARP) {
        warp.arrived = 0;
        Fibre *lanes = fibres + number() / WARP * WARP;
        for (int i = 0; i < WARP; ++i)
            if (lanes + i != current) {
                if (lanes[i].line != line)
                    fail("lanes of a warp wait at different operations");
                lanes[i].state = READY;
            }
    } else {
        wait(AT_WARP, line);
    }
    T found;
    memcpy(&found, &slots[from], sizeof found);
    return found;
}

static inline unsigned ballot(unsigned mask, bool mine, int line) {
    unsigned found = 0;
    exchange(mask, (int)mine, 0, line);
    unsigned long long *slots = warps[number() / WARP].slots[current->phase + 1 & 1];
    for (int i = 0; i < WARP; ++i)
        found |= (unsigned)((int)slots[i] != 0) << i;
    return found;
}

static inline int lane() { return number() % WARP; }

static void run_thread() {
    try {
        body(arguments);
    } catch (Failure) {
    }
    current->state = ENDED;
    swapcontext(&current->context, &scheduler);
}

static inline bool release(int threads) {
    int line = 0;
    bool any = false;
    for (int i = 0; i < threads; ++i)
        if (fibres[i].state == SLEEPING)
            return false;
    for (int i = 0; i < threads; ++i) {
        if (fibres[i].state == AT_WARP) {
            snprintf(message, sizeof message, "a warp operation waits for lanes that have ended or wait at a barrier; block (%u, %u, %u)",
                     block_index.x, block_index.y, block_index.z);
            return true;
        }
        if (fibres[i].state == AT_BARRIER) {
            if (any && fibres[i].line != line)
                snprintf(message, sizeof message, "threads of a block wait at different barriers; block (%u, %u, %u)", block_index.x,
                         block_index.y, block_index.z);
            line = fibres[i].line;
            fibres[i].state = READY;
            any = true;
        }
    }
    return any;
}

static void begin_block(int threads) {
    memset(warps, 0xff, sizeof first_block.warps);
    for (int i = 0; i < MOST_THREADS / WARP; ++i)
        warps[i].arrived = 0;
    for (int i = 0; i < threads; ++i) {
        Fibre &fibre = fibres[i];
        if (!fibre.stack)
            fibre.stack = (char *)malloc(STACK);
        fibre.state = READY;
        fibre.phase = 0;
        fibre.index = {i % block.x, i / block.x % block.y, i / block.x / block.y};
        getcontext(&fibre.context);
        fibre.context.uc_stack.ss_sp = fibre.stack;
        fibre.context.uc_stack.ss_size = STACK;
        fibre.context.uc_link = 0;
        makecontext(&fibre.context, run_thread, 0);
    }
}

/* Runs the threads of a block until all of them have ended or sleep; returns whether any did anything else. */
static bool run_fibres(int threads) {
    bool any = false;
    do {
        bool progress = true;
        while (progress) {
            progress = false;
            for (int i = 0; i < threads; ++i)
                if (fibres[i].state == READY) {
                    current = fibres + i;
                    swapcontext(&scheduler, &current->context);
                    progress = true;
                    any = any || current->state != SLEEPING;
                    if (message[0])
                        return any;
                }
        }
    } while (release(threads) && !message[0]);
    return any;
}

static void run_block_of_fibres(int threads) {
    begin_block(threads);
    run_fibres(threads);
}

static void run_block_in_order(int threads) {
    current = fibres;
    for (int i = 0; i < threads && !message[0]; ++i) {
        fibres[0].index = {i % block.x, i / block.x % block.y, i / block.x / block.y};
        try {
            body(arguments);
        } catch (Failure) {
        }
    }
}

static void clear_shared(unsigned shared) {
    memset(__start_host_cuda_shared, 0xff, __stop_host_cuda_shared - __start_host_cuda_shared);
    memset(dynamic, 0xff, shared + BEHIND);
}

static void check_shared(unsigned shared) {
    for (size_t i = shared; i < shared + BEHIND && !message[0]; ++i)
        if (dynamic[i] != 0xff)
            snprintf(message, sizeof message, "written behind %u bytes of dynamic shared memory, at byte %zu; block (%u, %u, %u)", shared, i,
                     block_index.x, block_index.y, block_index.z);
}

/* Runs all blocks in turns, forth and back; each has its own shared memory, which is put in place for its turn. */
static void run_blocks_together(int threads, unsigned shared) {
    static Block *blocks[MOST_BLOCKS];
    const unsigned count = grid.x * grid.y * grid.z;
    if (count > MOST_BLOCKS) {
        snprintf(message, sizeof message, "%u blocks that wait for each other: more than a GPU has room for", count);
        return;
    }
    const size_t fixed = __stop_host_cuda_shared - __start_host_cuda_shared;
    for (unsigned n = 0; n < count; ++n) {
        if (!blocks[n])
            blocks[n] = (Block *)calloc(1, sizeof(Block));
        Block &mine = *blocks[n];
        mine.index = {n % grid.x, n / grid.x % grid.y, n / grid.x / grid.y};
        mine.shared = (unsigned char *)realloc(mine.shared, fixed + shared + BEHIND);
        memset(mine.shared, 0xff, fixed + shared + BEHIND);
        fibres = mine.fibres;
        warps = mine.warps;
        begin_block(threads);
    }
    bool all_ended = false;
    for (unsigned turn = 0; !all_ended && !message[0]; ++turn) {
        bool progress = false;
        all_ended = true;
        for (unsigned n = 0; n < count && !message[0]; ++n) {
            Block &mine = *blocks[turn % 2 ? n : count - 1 - n];
            block_index = mine.index;
            fibres = mine.fibres;
            warps = mine.warps;
            memcpy(__start_host_cuda_shared, mine.shared, fixed);
            memcpy(dynamic, mine.shared + fixed, shared + BEHIND);
            for (int i = 0; i < threads; ++i)
                if (fibres[i].state == SLEEPING)
                    fibres[i].state = READY;
            progress = run_fibres(threads) || progress;
            check_shared(shared);
            memcpy(mine.shared, __start_host_cuda_shared, fixed);
            memcpy(mine.shared + fixed, dynamic, shared + BEHIND);
            for (int i = 0; i < threads; ++i)
                all_ended = all_ended && fibres[i].state == ENDED;
        }
        if (!progress && !all_ended && !message[0])
            snprintf(message, sizeof message, "blocks wait for each other for ever");
    }
    fibres = first_block.fibres;
    warps = first_block.warps;
    current = fibres;
}

/* Runs a kernel; returns what went wrong, empty for nothing.  *sizes* has those of the grid and of a block;
   *waits* says whether threads may wait for others, *together* whether blocks may. */
static const char *run(void (*kernel)(void **), void **given, const unsigned *sizes, unsigned shared, bool waits, bool together) {
    message[0] = 0;
    body = kernel;
    arguments = given;
    grid = {sizes[0], sizes[1], sizes[2]};
    block = {sizes[3], sizes[4], sizes[5]};
    int threads = block.x * block.y * block.z;
    if (together) {
        run_blocks_together(threads, shared);
        return message;
    }
    for (unsigned z = 0; z < grid.z; ++z)
        for (unsigned y = 0; y < grid.y; ++y)
            for (unsigned x = 0; x < grid.x; ++x) {
                block_index = {x, y, z};
                clear_shared(shared);
                waits ? run_block_of_fibres(threads) : run_block_in_order(threads);
                check_shared(shared);
                if (message[0])
                    return message;
            }
    return message;
}

template <class T> struct Plain {
    typedef T type;
};
template <class T> struct Plain<const T> {
    typedef T type;
};

template <int... I> struct Places {};
template <int N, int... I> struct Counted : Counted<N - 1, N - 1, I...> {};
template <int... I> struct Counted<0, I...> {
    typedef Places<I...> type;
};

template <class... A, int... I> void call(void (*kernel)(A...), void **given, Places<I...>) {
    kernel(*static_cast<typename Plain<A>::type *>(given[I])...);
}

template <class... A> void call(void (*kernel)(A...), void **given) { call(kernel, given, typename Counted<sizeof...(A)>::type()); }

template <class... A> int sizes_of(void (*)(A...), int *found) {
    const int sizes[] = {(int)sizeof(A)..., 0};
    memcpy(found, sizes, sizeof...(A) * sizeof(int));
    return sizeof...(A);
}

} // namespace host_cuda

/* Called by g++'s checks of indices. */
extern "C" __attribute__((visibility("hidden"))) void __ubsan_handle_out_of_bounds(void *, void *) {
    host_cuda::fail("an index is outside of its array");
}

#define threadIdx (host_cuda::current->index)
#define blockIdx host_cuda::block_index
#define blockDim host_cuda::block
#define gridDim host_cuda::grid
#define __syncthreads() host_cuda::wait(host_cuda::AT_BARRIER, __LINE__)
#define __syncwarp() ((void)host_cuda::exchange(0xffffffffu, 0, 0, __LINE__))
#define __threadfence() ((void)0)
#define __nanosleep(time) host_cuda::wait(host_cuda::SLEEPING, __LINE__)
#define __shfl_sync(mask, value, from) host_cuda::exchange(mask, value, (from) & 31, __LINE__)
#define __shfl_xor_sync(mask, value, bits) host_cuda::exchange(mask, value, host_cuda::lane() ^ (bits), __LINE__)
#define __shfl_down_sync(mask, value, count) \
    host_cuda::exchange(mask, value, host_cuda::lane() + (count) < 32 ? host_cuda::lane() + (count) : host_cuda::lane(), __LINE__)
#define __shfl_up_sync(mask, value, count) \
    host_cuda::exchange(mask, value, host_cuda::lane() - (count) >= 0 ? host_cuda::lane() - (count) : host_cuda::lane(), __LINE__)
#define __ballot_sync(mask, mine) host_cuda::ballot(mask, mine, __LINE__)
#define __any_sync(mask, mine) (host_cuda::ballot(mask, mine, __LINE__) != 0)
#define __all_sync(mask, mine) (host_cuda::ballot(mask, mine, __LINE__) == 0xffffffffu)

static inline unsigned atomicAdd(unsigned *place, unsigned x) {
    *place += x;
    return *place - x;
}
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) { return (unsigned __int128)x * y >> 64; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
