// CUDA's vocabulary for g++, and a device that is one processor.
//
// Blocks run one after the other. The threads of a block take turns: each thread runs until it waits at a barrier or
// for lanes of its warp. A waiting thread is a fiber and keeps its stack. Threads that never wait share a stack; so a
// kernel without barriers is a plain loop. Under ThreadSanitizer, each thread of a block is a thread of the system.
//
// The driver (__init__.py) compiles this file, then the text of the kernels, then their table `gpuens_kernels`.
// To add a function of CUDA's, write it at the end of this file.

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <type_traits>
#include <utility>

#ifdef __SANITIZE_THREAD__
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#define LOCAL static thread_local
#else
#define LOCAL static
#endif

#define __global__
#define __device__
#define __host__
#define __constant__
#define __restrict__ __restrict
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#ifndef __shared__  // templates cannot have a section of their own: see tests/gpu_stack
#define __shared__ static __attribute__((section("gpuens_shared")))
#endif

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

LOCAL uint3 threadIdx;
static uint3 blockIdx;
static dim3 blockDim, gridDim;
static constexpr int warpSize = 32;

extern "C" __attribute__((weak, visibility("hidden"))) char __start_gpuens_shared[], __stop_gpuens_shared[];

// for functions that run at every meeting of threads, because the sanitizers must watch only the kernels
#define UNWATCHED __attribute__((no_sanitize("address", "undefined")))

namespace emulated {

// --- float -----------------------------------------------------------------------------------------------------------

// The type that replaces float in kernels: the driver changes float, and float literals, in their text. CuPy compiles
// with -ftz=true: subnormal floats become 0 when they are read or computed. Subnormal doubles are kept.
struct Single {
    float value;
    Single() = default;
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
    Single(T x) : value(flushed(float(x))) {}
    operator float() const { return flushed(value); }
    static float flushed(float x) { return fpclassify(x) == FP_SUBNORMAL ? copysignf(0.0f, x) : x; }
};

template <class T>
using WithSingle = std::conditional_t<std::is_same_v<T, double>, double, Single>;
template <class T>
using IfNumber = std::enable_if_t<std::is_arithmetic_v<T>>;

#define OPERATOR(op)                                                                                                 \
    inline Single operator op(Single a, Single b) { return float(a) op float(b); }                                   \
    template <class T, class = IfNumber<T>>                                                                          \
    WithSingle<T> operator op(Single a, T b) { return float(a) op b; }                                               \
    template <class T, class = IfNumber<T>>                                                                          \
    WithSingle<T> operator op(T a, Single b) { return a op float(b); }                                               \
    template <class T>                                                                                               \
    Single& operator op##=(Single& a, T b) { return a = Single(a op b); }
OPERATOR(+)
OPERATOR(-)
OPERATOR(*)
OPERATOR(/)
#undef OPERATOR

template <class T>
constexpr bool is_real = std::is_floating_point_v<T> || std::is_same_v<T, Single>;

// --- the threads of a block, and how they meet -----------------------------------------------------------------------

struct Place {
    const char *what, *file;
    int line;
    bool operator==(const Place& other) const {
        auto same = [](const char* a, const char* b) { return a == b || !strcmp(a, b); };
        return line == other.line && same(what, other.what) && same(file, other.file);
    }
};

#define HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()  // the place of the call, as defaults

struct Thread;
using Answer = uint64_t (*)(const Thread* warp, const Thread& me);  // the value that a lane gets at a meeting

struct Thread {
    uint3 index;
    enum { ready, waiting, finished } state;
    unsigned fiber;
    Place place;    // where the thread waits
    unsigned mask;  // the lanes of its warp that the thread waits for; 0: the whole block
    uint64_t value, answer;
    unsigned source;
    Answer ask;
};

constexpr unsigned most_threads = 1024;
static Thread threads[most_threads];
static unsigned n_threads, n_waiting, n_finished;
static unsigned n_arrived;  // number of threads that have arrived at the block's barrier
static Place barrier;
static bool mixed;  // whether some threads have arrived at another barrier
static unsigned in_warp[most_threads / warpSize];  // lanes of each warp that wait for other lanes

static char* dynamic_shared;
static bool failed;
static char message[512];
LOCAL Thread* self;

struct Abandoned {};  // an exception that unwinds the stack of a thread after a failure

__attribute__((format(printf, 1, 2))) static void fail(const char* format, ...) {
    if (failed) return;
    failed = true;
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
}

static void wake(Thread& thread);

UNWATCHED static unsigned number(const Thread& thread) { return unsigned(&thread - threads); }
UNWATCHED static unsigned lane_of(const Thread& thread) { return number(thread) % warpSize; }
UNWATCHED static Thread* warp_of(const Thread& thread) { return &threads[number(thread) - lane_of(thread)]; }
UNWATCHED static bool exists(const Thread* thread) { return thread < threads + n_threads; }

UNWATCHED static void release(Thread& thread, uint64_t answer) {
    thread.answer = answer;
    thread.state = Thread::ready;
    --n_waiting;
    wake(thread);
}

// All threads that have not returned wait, and no thread can go on: report what the first waiting thread waits for.
static void explain() {
    const Thread* waits = threads;
    while (waits->state != Thread::waiting) ++waits;
    const Place& place = waits->place;
    if (waits->mask) {
        unsigned lane = 0;
        auto comes = [&](unsigned lane) {
            const Thread& other = warp_of(*waits)[lane];
            if (!exists(&other) || other.state != Thread::waiting) return false;
            return other.mask == waits->mask && other.place == place;
        };
        while (!(waits->mask >> lane & 1) || comes(lane)) ++lane;
        const Thread* other = warp_of(*waits) + lane;
        char why[160] = "is not in the block";
        if (exists(other) && other->state == Thread::finished)
            strcpy(why, "has returned");
        else if (exists(other))
            snprintf(why, sizeof why, "waits at %s, %s:%d", other->place.what, other->place.file, other->place.line);
        fail("%s at %s:%d names lanes 0x%08x, but lane %u of warp %u of block (%u, %u, %u) %s.", place.what, place.file,
             place.line, waits->mask, lane, number(*waits) / warpSize, blockIdx.x, blockIdx.y, blockIdx.z, why);
    } else {
        unsigned here = 0, elsewhere = 0;
        for (const Thread* other = threads; exists(other); ++other)
            if (other->state == Thread::waiting) ++(!other->mask && other->place == place ? here : elsewhere);
        fail("%s at %s:%d was reached by %u of the %u threads of block (%u, %u, %u), while %u returned and %u waited "
             "elsewhere.", place.what, place.file, place.line, here, n_threads, blockIdx.x, blockIdx.y, blockIdx.z,
             n_finished, elsewhere);
    }
}

UNWATCHED static void notice_standstill() {
    if (failed || !n_waiting || n_waiting + n_finished < n_threads) return;
#ifdef FORGIVE_RETURNS  // a device counts returned threads as arrived; gpuens's kernels must not rely on it
    if (n_arrived == n_waiting) {
        for (Thread* thread = threads; exists(thread); ++thread)
            if (thread->state == Thread::waiting) release(*thread, 0);
        n_arrived = 0;
        return;
    }
#endif
    explain();
    for (Thread* thread = threads; exists(thread); ++thread) wake(*thread);
}

UNWATCHED static void arrive_at_barrier(Thread& me) {
    if (!n_arrived++) barrier = me.place, mixed = false;
    if (!(me.place == barrier)) mixed = true;
    if (n_arrived < n_threads || mixed) return;
    uint64_t count = 0;
    for (Thread* thread = threads; exists(thread); ++thread) count += thread->value != 0;
    for (Thread* thread = threads; exists(thread); ++thread) release(*thread, count);
    n_arrived = 0;
}

UNWATCHED static void arrive_in_warp(Thread& me) {
    Thread* warp = warp_of(me);
    unsigned& waiting = in_warp[number(me) / warpSize];
    waiting |= 1u << lane_of(me);
    if (me.mask & ~waiting) return;
    for (unsigned lane = 0; lane < warpSize; ++lane)
        if (me.mask >> lane & 1 && (warp[lane].mask != me.mask || !(warp[lane].place == me.place))) return;
    waiting &= ~me.mask;
    uint64_t answers[warpSize];
    for (unsigned lane = 0; lane < warpSize; ++lane)
        if (me.mask >> lane & 1) answers[lane] = warp[lane].ask ? warp[lane].ask(warp, warp[lane]) : 0;
    for (unsigned lane = 0; lane < warpSize; ++lane)
        if (me.mask >> lane & 1) release(warp[lane], answers[lane]);
}

static void pause(Thread& me);  // returns when `me` is released
static void check_in(Thread& me, unsigned mask, Answer ask);  // called around accesses to shared data of the emulator
static void check_out();

// Wait at `place` for the lanes in `mask`, or for the whole block if `mask` is 0. Then return the result of `ask`.
UNWATCHED static uint64_t meet(Place place, unsigned mask, uint64_t value, unsigned source, Answer ask) {
    Thread& me = *self;
    check_in(me, mask, ask);
    me.place = place, me.mask = mask, me.value = value, me.source = source, me.ask = ask;
    me.state = Thread::waiting;
    ++n_waiting;
    if (mask)
        arrive_in_warp(me);
    else
        arrive_at_barrier(me);
    notice_standstill();
    pause(me);
    uint64_t answer = me.answer;
    check_out();
    return answer;
}

UNWATCHED static uint64_t meet_lanes(Place place, unsigned mask, uint64_t value, unsigned source, Answer ask) {
    unsigned lane = lane_of(*self), missing = !(mask >> lane & 1) ? lane : source;
    if (mask >> lane & mask >> source & 1) return meet(place, mask, value, source, ask);
    check_in(*self, mask, ask);
    fail("%s at %s:%d, called by lane %u, needs lane %u, which its mask 0x%08x does not name.", place.what, place.file,
         place.line, lane, missing, mask);
    check_out();
    return 0;
}

// --- kernels ---------------------------------------------------------------------------------------------------------

using Slots = const void* const*;  // the addresses of the arguments, as a driver gets them

struct Kernel {
    void (*run)(Slots);
    const char* (*signature)();  // "i8": a scalar; "*f8": a pointer; "&u1": a pointer to const
    unsigned most_threads;
};

static Kernel kernel;
static Slots slots;

template <class T>
void describe(char* text) {
    if constexpr (std::is_pointer_v<T>) {
        using Item = std::remove_pointer_t<T>;
        strcat(text, std::is_const_v<Item> ? "&" : "*");
        describe<std::conditional_t<std::is_void_v<Item>, uint3, std::remove_cv_t<Item>>>(text);
    } else {
        char kind = std::is_same_v<T, bool>         ? 'b'
                    : is_real<T>                    ? 'f'
                    : !std::is_integral_v<T>        ? 'V'
                    : std::is_signed_v<T>           ? 'i'
                                                    : 'u';
        sprintf(text + strlen(text), "%c%zu ", kind, sizeof(T));
    }
}

template <auto function>
struct Call;

template <class... T, void (*function)(T...)>
struct Call<function> {
    template <size_t... i>
    static void unpack(Slots slots, std::index_sequence<i...>) {
        function(*static_cast<const std::remove_cv_t<T>*>(slots[i])...);
    }
    static void run(Slots slots) { unpack(slots, std::index_sequence_for<T...>()); }
    static const char* signature() {
        static char text[24 * sizeof...(T) + 1];
        text[0] = 0;
        (describe<std::remove_cv_t<T>>(text), ...);
        return text;
    }
};

template <auto function>
constexpr Kernel entry(unsigned most = most_threads, ...) {  // takes the arguments of __launch_bounds__
    return {&Call<function>::run, &Call<function>::signature, most};
}

// --- taking turns ----------------------------------------------------------------------------------------------------

static unsigned order[most_threads];  // the order in which the threads of a block run
static unsigned n_started;

#ifdef __SANITIZE_THREAD__

// The sanitizer must see the order that the kernel requests, but not the emulator's own synchronization. Barriers and
// __syncwarp order memory accesses; shuffles and votes do not.

extern "C" {
void AnnotateIgnoreSyncBegin(const char*, int);
void AnnotateIgnoreSyncEnd(const char*, int);
void AnnotateIgnoreReadsBegin(const char*, int);
void AnnotateIgnoreReadsEnd(const char*, int);
void AnnotateIgnoreWritesBegin(const char*, int);
void AnnotateIgnoreWritesEnd(const char*, int);
void __tsan_acquire(void*);
void __tsan_release(void*);
}

static std::mutex mutex;
static std::condition_variable woken[most_threads];
static char block_tags[2], warp_tags[most_threads / warpSize][2];  // one meeting may begin as another ends
LOCAL unsigned n_barriers, n_warp_barriers;
LOCAL char* tag;

static void hide(bool yes) {
    (yes ? AnnotateIgnoreSyncBegin : AnnotateIgnoreSyncEnd)(__FILE__, __LINE__);
    (yes ? AnnotateIgnoreReadsBegin : AnnotateIgnoreReadsEnd)(__FILE__, __LINE__);
    (yes ? AnnotateIgnoreWritesBegin : AnnotateIgnoreWritesEnd)(__FILE__, __LINE__);
}

static void wake(Thread& thread) { woken[number(thread)].notify_one(); }

static void check_in(Thread& me, unsigned mask, Answer ask) {
    tag = !mask  ? &block_tags[n_barriers++ % 2]
          : !ask ? &warp_tags[number(me) / warpSize][n_warp_barriers++ % 2]
                 : nullptr;
    if (tag) __tsan_release(tag);
    hide(true);
    mutex.lock();
}

static void pause(Thread& me) {
    std::unique_lock<std::mutex> lock(mutex, std::adopt_lock);
    woken[number(me)].wait(lock, [&] { return failed || me.state == Thread::ready; });
    lock.release();
}

static void check_out() {
    mutex.unlock();
    bool abandon = failed;
    hide(false);
    if (abandon) throw Abandoned();
    if (tag) __tsan_acquire(tag);
}

static void run_thread(Thread& me) {
    self = &me;
    threadIdx = me.index;
    n_barriers = n_warp_barriers = 0;
    try {
        kernel.run(slots);
    } catch (Abandoned) {
    }
    hide(true);
    mutex.lock();
    me.state = Thread::finished;
    ++n_finished;
    notice_standstill();
    mutex.unlock();
    hide(false);
}

// Threads of the system start slowly under the sanitizer, so they are kept for the next launches.
struct Carriers {
    std::mutex mutex;
    std::condition_variable called[most_threads], returned;
    bool calls[most_threads] = {};
    unsigned n_started = 0, n_running = 0;
    void (*task)(unsigned);
    char begin, end;  // tags

    void run(unsigned n, void (*todo)(unsigned)) {
        __tsan_release(&begin);
        hide(true);
        std::unique_lock<std::mutex> lock(mutex);
        task = todo;
        n_running = n;
        while (n_started < n) std::thread(&Carriers::carry, this, n_started++).detach();
        for (unsigned i = 0; i < n; ++i) {
            calls[i] = true;
            called[i].notify_one();
        }
        returned.wait(lock, [&] { return !n_running; });
        lock.unlock();
        hide(false);
        __tsan_acquire(&end);
    }

    void carry(unsigned i) {
        hide(true);
        for (std::unique_lock<std::mutex> lock(mutex);;) {
            called[i].wait(lock, [&] { return calls[i]; });
            calls[i] = false;
            auto todo = task;
            lock.unlock();
            hide(false);
            __tsan_acquire(&begin);
            todo(i);
            __tsan_release(&end);
            hide(true);
            lock.lock();
            if (!--n_running) returned.notify_one();
        }
    }
};

static Carriers* carriers;

static void* find_carriers() { return new Carriers; }
static void take_carriers(void* found) { carriers = static_cast<Carriers*>(found); }

static void run_block() {
    carriers->run(n_threads, [](unsigned i) { run_thread(threads[order[i]]); });
}

#else

static void wake(Thread&) {}
static void check_in(Thread&, unsigned, Answer) {}

static void check_out() {
    if (failed) throw Abandoned();
}

constexpr size_t stack_size = 256 << 10, page = 4096;
static char* stacks;  // most_threads stacks, each above a page without access

#ifdef __x86_64__

struct Context {
    void* pointer;
};

extern "C" __attribute__((visibility("hidden"))) void gpuens_switch(void** from, void* to);
asm(R"(
.text
.type gpuens_switch, @function
gpuens_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size gpuens_switch, . - gpuens_switch
)");

static void jump(Context& from, Context& to) { gpuens_switch(&from.pointer, to.pointer); }

static void prepare(Context& context, char* stack, void (*function)()) {
    void** top = reinterpret_cast<void**>(stack + stack_size);
    *--top = nullptr;  // the return address of the function
    *--top = reinterpret_cast<void*>(function);
    for (int i = 0; i < 6; ++i) *--top = nullptr;
    context.pointer = top;
}

#else

#include <ucontext.h>

using Context = ucontext_t;

static void jump(Context& from, Context& to) { swapcontext(&from, &to); }

static void prepare(Context& context, char* stack, void (*function)()) {
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = stack_size;
    context.uc_link = nullptr;
    makecontext(&context, function, 0);
}

#endif

static Context home, contexts[most_threads];
static unsigned n_fibers, fiber;  // the number of fibers, and the running fiber

static void* find_carriers() {
    size_t bytes = most_threads * (stack_size + page);
    void* found = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) return nullptr;
    for (unsigned i = 0; i < most_threads; ++i)
        mprotect(static_cast<char*>(found) + i * (stack_size + page), page, PROT_NONE);
    return found;
}
static void take_carriers(void* found) { stacks = static_cast<char*>(found); }

static char* stack_of(unsigned fiber) { return stacks + fiber * (stack_size + page) + page; }

#ifdef __SANITIZE_ADDRESS__

extern "C" {
void __sanitizer_start_switch_fiber(void** fake, const void* bottom, size_t size);
void __sanitizer_finish_switch_fiber(void* fake, const void** bottom, size_t* size);
void __asan_unpoison_memory_region(const volatile void*, size_t);
}

static const void* home_stack;
static size_t home_size;

static void go_home(bool for_good) {
    void* fake;
    __sanitizer_start_switch_fiber(for_good ? nullptr : &fake, home_stack, home_size);
    jump(contexts[fiber], home);
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
}

static void resume(unsigned which) {
    void* fake;
    fiber = which;
    __sanitizer_start_switch_fiber(&fake, stack_of(which), stack_size);
    jump(home, contexts[which]);
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
}

static void fiber_begins() { __sanitizer_finish_switch_fiber(nullptr, &home_stack, &home_size); }
static void clean(char* stack) { __asan_unpoison_memory_region(stack, stack_size); }  // after its thread was abandoned

#else

static void go_home(bool) { jump(contexts[fiber], home); }

static void resume(unsigned which) {
    fiber = which;
    jump(home, contexts[which]);
}

static void fiber_begins() {}
static void clean(char*) {}

#endif

UNWATCHED static void pause(Thread& me) {
    me.fiber = fiber;
    go_home(false);
    self = &me;
    threadIdx = me.index;
}

static void run_thread(Thread& me) {
    self = &me;
    threadIdx = me.index;
    try {
        kernel.run(slots);
    } catch (Abandoned) {
    }
    me.state = Thread::finished;
    ++n_finished;
    notice_standstill();
}

static void run_fiber() {
    fiber_begins();
    while (n_started < n_threads && !failed) run_thread(threads[order[n_started++]]);
    go_home(true);
}

UNWATCHED static void run_block() {
    n_fibers = 0;
    while (n_started < n_threads && !failed) {
        prepare(contexts[n_fibers], stack_of(n_fibers), run_fiber);
        resume(n_fibers++);
    }
    while (n_finished < n_threads && !failed)
        for (unsigned i = 0; i < n_threads && !failed; ++i)
            if (threads[order[i]].state == Thread::ready) resume(threads[order[i]].fiber);
    for (unsigned i = 0; failed && i < n_fibers; ++i) clean(stack_of(i));
}

#endif

// --- launching -------------------------------------------------------------------------------------------------------

static uint64_t draws;

static unsigned below(unsigned n) {  // splitmix64
    uint64_t x = draws += 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return unsigned((x ^ x >> 31) % n);
}

// 0: forward; 1: reversed; from 2 on: shuffled, with a different order for each number.
static void arrange(unsigned* numbers, unsigned n, uint64_t how) {
    for (unsigned i = 0; i < n; ++i) numbers[i] = how == 1 ? n - 1 - i : i;
    if (how > 1)
        for (unsigned i = n; i > 1; --i) std::swap(numbers[i - 1], numbers[below(i)]);
}

// Fill shared memory with 0xFF before a block: values that no thread has written are then NaN, -1 or the largest label.
UNWATCHED static void spoil(char* from, char* to) {
#ifdef __SANITIZE_ADDRESS__
    for (volatile char* at = from; at < to; ++at) *at = char(0xFF);  // memset would hit the red zones between arrays
#else
    if (from < to) memset(from, 0xFF, size_t(to - from));
#endif
}

}  // namespace emulated

extern "C" {

extern __attribute__((visibility("hidden"))) const emulated::Kernel gpuens_kernels[];

const char* gpuens_signature(int which) { return gpuens_kernels[which].signature(); }
unsigned gpuens_most_threads(int which) { return gpuens_kernels[which].most_threads; }
size_t gpuens_static_shared() { return size_t(__stop_gpuens_shared - __start_gpuens_shared); }

// The stacks or system threads that carry the emulated threads, shared by all kernels of all libraries.
void* gpuens_carriers() { return emulated::find_carriers(); }

// Run a kernel; return null, or an error message. sizes: grid x, y, z and block x, y, z.
const char* gpuens_launch(int which, const void* const* slots, const unsigned* sizes, size_t shared, uint64_t how,
                          void* carriers) {
    using namespace emulated;
    kernel = gpuens_kernels[which];
    emulated::slots = slots;
    gridDim = dim3(sizes[0], sizes[1], sizes[2]);
    blockDim = dim3(sizes[3], sizes[4], sizes[5]);
    n_threads = blockDim.x * blockDim.y * blockDim.z;
    take_carriers(carriers);
    for (unsigned i = 0; i < n_threads; ++i)
        threads[i].index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
    dynamic_shared = static_cast<char*>(malloc(shared));
    failed = false;
    draws = how;
    uint64_t n_blocks = uint64_t(gridDim.x) * gridDim.y * gridDim.z;
    for (uint64_t i = 0; i < n_blocks && !failed; ++i) {
        uint64_t block = how == 1 ? n_blocks - 1 - i : i;
        blockIdx = {unsigned(block % gridDim.x), unsigned(block / gridDim.x % gridDim.y),
                    unsigned(block / gridDim.x / gridDim.y)};
        if (i == 0 || how > 1) arrange(order, n_threads, how);
        for (unsigned t = 0; t < n_threads; ++t) threads[t].state = Thread::ready;
        n_waiting = n_finished = n_arrived = n_started = 0;
        memset(in_warp, 0, sizeof in_warp);
        spoil(__start_gpuens_shared, __stop_gpuens_shared);
        spoil(dynamic_shared, dynamic_shared + shared);
        run_block();
    }
    free(dynamic_shared);
    return failed ? message : nullptr;
}
}

// --- CUDA's functions ------------------------------------------------------------------------------------------------

inline void __syncthreads(HERE) { emulated::meet({"__syncthreads", file, line}, 0, 0, 0, nullptr); }
inline int __syncthreads_count(int yes, HERE) {
    return int(emulated::meet({"__syncthreads_count", file, line}, 0, yes != 0, 0, nullptr));
}
inline int __syncthreads_or(int yes, HERE) {
    return emulated::meet({"__syncthreads_or", file, line}, 0, yes != 0, 0, nullptr) > 0;
}
inline int __syncthreads_and(int yes, HERE) {
    return emulated::meet({"__syncthreads_and", file, line}, 0, yes != 0, 0, nullptr) == emulated::n_threads;
}
inline void __threadfence() {}  // the emulator reorders no memory accesses
inline void __threadfence_block() {}
inline void __trap() {
    emulated::fail("__trap was called.");
    throw emulated::Abandoned();
}

// There is no __activemask, because a kernel must not depend on which lanes happen to run together.
namespace emulated {

inline void sync_lanes(Place place, unsigned mask) { meet_lanes(place, mask, 0, lane_of(*self), nullptr); }

inline unsigned vote(Place place, unsigned mask, bool yes) {
    return unsigned(meet_lanes(place, mask, yes, lane_of(*self), [](const Thread* warp, const Thread& me) {
        uint64_t votes = 0;
        for (unsigned lane = 0; lane < warpSize; ++lane)
            if (me.mask >> lane & 1) votes |= warp[lane].value << lane;
        return votes;
    }));
}

template <class T>
T shuffle(Place place, unsigned mask, T value, unsigned source) {
    static_assert(sizeof(T) <= 8 && (std::is_arithmetic_v<T> || is_real<T>), "shuffles move numbers");
    uint64_t word = 0;
    memcpy(&word, &value, sizeof value);
    word = meet_lanes(place, mask, word, source,
                      [](const Thread* warp, const Thread& me) { return warp[me.source].value; });
    memcpy(&value, &word, sizeof value);
    return value;
}

}  // namespace emulated

inline void __syncwarp(unsigned mask = ~0u, HERE) { emulated::sync_lanes({"__syncwarp", file, line}, mask); }
inline unsigned __ballot_sync(unsigned mask, int yes, HERE) {
    return emulated::vote({"__ballot_sync", file, line}, mask, yes);
}
inline int __any_sync(unsigned mask, int yes, HERE) {
    return emulated::vote({"__any_sync", file, line}, mask, yes) != 0;
}
inline int __all_sync(unsigned mask, int yes, HERE) {
    return emulated::vote({"__all_sync", file, line}, mask, yes) == mask;
}

template <class T>
T __shfl_sync(unsigned mask, T value, int from, int width = warpSize, HERE) {
    unsigned me = emulated::lane_of(*emulated::self), first = me & ~(width - 1u);
    return emulated::shuffle({"__shfl_sync", file, line}, mask, value, first | (from & (width - 1u)));
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = warpSize, HERE) {
    unsigned me = emulated::lane_of(*emulated::self), within = me & (width - 1u);
    return emulated::shuffle({"__shfl_up_sync", file, line}, mask, value, by > within ? me : me - by);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = warpSize, HERE) {
    unsigned me = emulated::lane_of(*emulated::self), within = me & (width - 1u);
    unsigned from = within + by >= unsigned(width) ? me : me + by;
    return emulated::shuffle({"__shfl_down_sync", file, line}, mask, value, from);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int by, int width = warpSize, HERE) {
    unsigned me = emulated::lane_of(*emulated::self), from = me ^ unsigned(by), end = (me | (width - 1u)) + 1;
    return emulated::shuffle({"__shfl_xor_sync", file, line}, mask, value, from >= end ? me : from);
}

// Atomics exist only for the types for which CUDA has them. They do not order other memory accesses.
namespace emulated {

template <class T, class F>
T atomically(T* at, F change) {
#ifdef __SANITIZE_THREAD__
    T old, now;
    __atomic_load(at, &old, __ATOMIC_RELAXED);
    do now = change(old);
    while (!__atomic_compare_exchange(at, &old, &now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
#else
    T old = *at;
    *at = change(old);
#endif
    return old;
}

}  // namespace emulated

#define ATOMIC(name, type, result)                                                  \
    inline type name(type* at, type value) {                                        \
        return emulated::atomically(at, [=](type old) -> type { return result; });  \
    }
#define ATOMICS(type)                                         \
    ATOMIC(atomicAdd, type, old + value)                      \
    ATOMIC(atomicMin, type, value < old ? value : old)        \
    ATOMIC(atomicMax, type, value > old ? value : old)        \
    ATOMIC(atomicExch, type, value)                           \
    ATOMIC(atomicAnd, type, old & value)                      \
    ATOMIC(atomicOr, type, old | value)                       \
    ATOMIC(atomicXor, type, old ^ value)                      \
    inline type atomicCAS(type* at, type expected, type value) { \
        return emulated::atomically(at, [=](type old) { return old == expected ? value : old; }); \
    }

ATOMICS(int)
ATOMICS(unsigned)
ATOMICS(unsigned long long)
ATOMIC(atomicSub, int, old - value)
ATOMIC(atomicSub, unsigned, old - value)
ATOMIC(atomicMin, long long, value < old ? value : old)
ATOMIC(atomicMax, long long, value > old ? value : old)
ATOMIC(atomicAdd, double, old + value)

// min and max of two different types do not compile, because CUDA would silently choose one of the types.
template <class T>
T min(T a, T b) {
    if constexpr (emulated::is_real<T>) return T(fmin(a, b));
    return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
    if constexpr (emulated::is_real<T>) return T(fmax(a, b));
    return a < b ? b : a;
}

template <class T>
T __ldg(const T* at) {
    return *at;
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((unsigned long long)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}

#define SAME_BITS(name, to, from)                              \
    inline to name(from x) {                                   \
        static_assert(sizeof(to) == sizeof(from), "as wide");  \
        to y;                                                  \
        memcpy(&y, &x, sizeof y);                              \
        return y;                                              \
    }
SAME_BITS(__float_as_int, int, float)
SAME_BITS(__int_as_float, float, int)
SAME_BITS(__float_as_uint, unsigned, float)
SAME_BITS(__uint_as_float, float, unsigned)
SAME_BITS(__double_as_longlong, long long, double)
SAME_BITS(__longlong_as_double, double, long long)

inline long long __double2ll_rn(double x) { return llrint(x); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }

// Comparisons of the four bytes of a word: for each byte where the comparison holds, __vcmp… gives 0xFF and __vset… 1.
#define BYTES(name, byte, result)                                                       \
    inline unsigned name(unsigned a, unsigned b) {                                      \
        unsigned word = 0;                                                              \
        for (int i = 0; i < 32; i += 8) {                                               \
            auto x = static_cast<byte>(a >> i), y = static_cast<byte>(b >> i);          \
            word |= unsigned((unsigned char)(result)) << i;                             \
        }                                                                               \
        return word;                                                                    \
    }
#define COMPARED(name, byte, holds)                   \
    BYTES(__vcmp##name, byte, (holds) ? 0xFF : 0)     \
    BYTES(__vset##name, byte, (holds) ? 1 : 0)
COMPARED(eq4, unsigned char, x == y)
COMPARED(ne4, unsigned char, x != y)
COMPARED(gtu4, unsigned char, x > y)
COMPARED(geu4, unsigned char, x >= y)
COMPARED(ltu4, unsigned char, x < y)
COMPARED(leu4, unsigned char, x <= y)
COMPARED(gts4, signed char, x > y)
COMPARED(lts4, signed char, x < y)
BYTES(__vminu4, unsigned char, x < y ? x : y)
BYTES(__vmaxu4, unsigned char, x > y ? x : y)
BYTES(__vadd4, unsigned char, x + y)
BYTES(__vsub4, unsigned char, x - y)

inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
    for (int i = 0; i < 32; i += 8) sum += (a >> i & 255) * (b >> i & 255);
    return sum;
}
inline int __dp4a(int a, int b, int sum) {
    for (int i = 0; i < 32; i += 8) sum += (signed char)(a >> i) * (signed char)(b >> i);
    return sum;
}

inline emulated::Single atomicAdd(emulated::Single* at, emulated::Single value) {
    return emulated::atomically(at, [=](emulated::Single old) { return old + value; });
}
inline emulated::Single atomicExch(emulated::Single* at, emulated::Single value) {
    return emulated::atomically(at, [=](emulated::Single) { return value; });
}

#define VECTORS(type, name, align2, align4)                                                   \
    struct __align__(align2) name##2 { type x, y; };                                          \
    struct __align__(align4) name##4 { type x, y, z, w; };                                    \
    inline name##2 make_##name##2(type x, type y) { return {x, y}; }                          \
    inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
VECTORS(unsigned char, uchar, 2, 4)
VECTORS(unsigned short, ushort, 4, 8)
VECTORS(int, int, 8, 16)
VECTORS(unsigned, uint, 8, 16)
VECTORS(emulated::Single, float, 8, 16)
VECTORS(long long, longlong, 16, 16)
VECTORS(unsigned long long, ulonglong, 16, 16)
VECTORS(double, double, 16, 16)

#undef HERE
#undef UNWATCHED
#undef LOCAL
#undef ATOMIC
#undef ATOMICS
#undef SAME_BITS
#undef BYTES
#undef COMPARED
#undef VECTORS
