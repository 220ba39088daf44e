// Threads that share ranges of work, and signals, which end it.
//
//   over_ranges(n, nanoseconds, [&](i64 start, i64 stop) { ... });
//
// calls the function on pieces of 0 ... n - 1 in the calling thread and in threads of one pool. It may write to its own
// range alone, so that results do not depend on the number of threads. Pieces are long enough to be worth handing over
// and short enough to stop after: a signal that Python answers by an exception, such as Ctrl-C, ends the work within
// pieces.
#pragma once

#include <chrono>
#include <functional>

#include "runtime/common.h"

namespace gpuens {

// An exception of a Python function, already set as Python's error.
struct PythonError {};

// Guard of each call from Python: other threads of Python run meanwhile. Threads are counted once, at its beginning.
class Running {
public:
    Running();
    ~Running();
    Running(const Running&) = delete;

private:
    i64 threads_before;
    void* python_thread;
};

// A scope of a thread that takes the GIL: a call of a Python function, or the return to Python. `end_calls` waits until
// all scopes are closed; a thread that would open one later sleeps for ever, without the GIL: Python before 3.14 ends a
// thread that waits for the GIL by unwinding its stack, at which C++ aborts the process. `has_gil`: the thread has the
// GIL already, but the Python function may hand it over to other threads, and wait for it.
class InPython {
public:
    explicit InPython(bool has_gil = false);
    ~InPython();
    InPython(const InPython&) = delete;
};

template <typename Function, typename... Given>
void call_python(const Function& function, const Given&... given) {
    InPython inside;
    function(given...);
}

// Name the Python function that returns the number of threads a call may use, and Python's main thread, the only one
// that answers signals.
void prepare(void* count_threads, u64 main_thread);

// Let no other thread take the GIL from now on: the calling thread is about to end the interpreter.
void end_calls();

struct Range {
    i64 start, stop;
    explicit operator bool() const { return start < stop; }
};

struct Job;

// The ranges that a thread takes, one after the other, until none is left.
class Ranges {
public:
    explicit Ranges(Job& of) : job(of) {}
    Range next();

private:
    Job& job;
};

// Call `work` once in each thread, so that scratch memory is allocated once for many ranges. `nanoseconds`: the time of
// an item of 0 ... n - 1. The calling thread rethrows an exception of any thread after all have ended.
void in_threads(i64 n, f64 nanoseconds, const std::function<void(Ranges&)>& work);

template <typename Work>
void over_ranges(i64 n, f64 nanoseconds, Work&& work) {
    in_threads(n, nanoseconds, [&](Ranges& ranges) {
        while (Range range = ranges.next()) work(range.start, range.stop);
    });
}

// Throw if the work is to end. Loops without ranges and loops of long items call it every 10 to 1,000 microseconds.
void look();

// A counter of short steps, such as comparisons of a sort, that looks every some thousand steps.
class Looks {
public:
    void operator()() {
        if (++n_steps % STEPS == 0) look();
    }

private:
    static constexpr i64 STEPS = 1 << 14;
    i64 n_steps = 0;
};

// Limit of the reports of progress to Python: ten a second.
class Pace {
public:
    // True at most once in a tenth of a second.
    bool due() {
        auto now = std::chrono::steady_clock::now();
        if (now - last < std::chrono::milliseconds(100)) return false;
        last = now;
        return true;
    }

private:
    std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

}  // namespace gpuens
