#include "runtime/parallel.h"

#include <pyconfig.h>
#ifndef Py_GIL_DISABLED  // Python without the GIL has no limited API before 3.15
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#ifndef _WIN32
#include <pthread.h>
#include <signal.h>
#endif

namespace gpuens {

using Clock = std::chrono::steady_clock;

constexpr f64 WAKE_NS = 65'536;         // time to wake a thread and to collect its result
constexpr f64 LONGEST_NS = 2'000'000;   // longest foreseen time of a piece; forecasts may be wrong by ten times
constexpr i64 PIECES_A_THREAD = 8;      // fewest pieces a thread, to balance the load
constexpr auto BETWEEN_LOOKS = std::chrono::milliseconds(20);
constexpr auto MOST_BETWEEN_LOOKS = std::chrono::milliseconds(100);
// shortest time between two looks for signals, in multiples of the last wait for the GIL
constexpr i64 WORK_PER_WAIT = 10;

// Work that several threads share, on the stack of the calling thread.
struct Job {
    const std::function<void(Ranges&)>& work;
    i64 n, pieces;
    i64 n_expected;                    // threads of the pool that may still come
    u64 caller;                    // the calling thread
    i64 inside = 0;                // threads of the pool that have come and not left
    std::exception_ptr thrown;     // exception of a thread of the pool
    std::condition_variable left;  // signals that a thread of the pool has left
    std::atomic<i64> next{0};
    std::atomic<bool> stopped{false};
};

namespace {

struct Stopped {};  // thrown where the work is to end because another thread has thrown

thread_local Job* joined = nullptr;     // job that this thread of the pool works on
thread_local bool shares = false;       // true within `in_threads`
thread_local Clock::time_point next_look;  // time of the calling thread's next look for signals

thread_local i64 most_threads = 1;      // threads that the current call from Python may use
thread_local i64 python_depth = 0;      // Python functions that this thread is calling, one within the other

PyObject* count_threads = nullptr;       // Python function that returns the number of threads
std::atomic<u64> main_thread{0};         // id of Python's main thread
std::atomic<u64> ending_thread{0};       // the thread that ends the interpreter; 0 before
std::atomic<i64> n_in_python{0};         // threads within an `InPython`

u64 this_thread() { return PyThread_get_thread_ident(); }

// True for a thread that may still run Python while the interpreter ends.
bool may_run_python() {
    u64 ending = ending_thread;
    return !ending || ending == this_thread() || python_depth || (joined && joined->caller == ending);
}

i64 n_threads() {
    PyObject* number = PyObject_CallObject(count_threads, nullptr);
    i64 n = number ? PyLong_AsLongLong(number) : -1;
    Py_XDECREF(number);
    if (n < 0) throw PythonError{};
    return n;
}

void look_for_signals() {
    Clock::time_point begin = Clock::now();
    if (begin < next_look) return;
    int raised = 0;
    if (main_thread == this_thread()) {
        InPython inside;
        PyGILState_STATE state = PyGILState_Ensure();
        raised = PyErr_CheckSignals();
        PyGILState_Release(state);
    }
    // beside a thread of Python that computes, the wait for the GIL is to take little of the time
    Clock::time_point end = Clock::now();
    next_look = end + std::clamp<Clock::duration>(WORK_PER_WAIT * (end - begin), BETWEEN_LOOKS, MOST_BETWEEN_LOOKS);
    if (raised) throw PythonError{};
}

// A scope in which this thread, and threads started from it, receive no signals.
class SignalsBlocked {
public:
#ifndef _WIN32
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }

private:
    sigset_t before;
#else
    SignalsBlocked() {}
#endif
};

// The threads that help, for as long as the process lives.
class Pool {
public:
    void help(Job& job) {
        std::lock_guard<std::mutex> lock(mutex);
        while (n_started < job.n_expected && start()) ++n_started;
        jobs.push_back(&job);
        for (i64 i = 0; i < job.n_expected; ++i) there_is_work.notify_one();
    }

    // Return once no thread works on the job. A signal that comes meanwhile stops it, and is the last to be thrown.
    void wait_for(Job& job) {
        std::unique_lock<std::mutex> lock(mutex);
        jobs.erase(std::remove(jobs.begin(), jobs.end(), &job), jobs.end());
        while (!job.left.wait_for(lock, BETWEEN_LOOKS, [&] { return job.inside == 0; })) {
            std::exception_ptr thrown;
            lock.unlock();
            try {
                look_for_signals();
            } catch (...) {
                job.stopped = true;
                thrown = std::current_exception();
            }
            lock.lock();
            if (thrown) job.thrown = thrown;
        }
    }

private:
    // Start a thread that signals do not reach: they would be answered late while Python's main thread sleeps.
    bool start() {
        SignalsBlocked blocked;
        try {
            std::thread([this] { serve(); }).detach();
        } catch (const std::system_error&) {  // too many threads: those that there are do the work
            return false;
        }
        return true;
    }

    [[noreturn]] void serve() {
        shares = true;
        std::unique_lock<std::mutex> lock(mutex);
        while (true) {
            there_is_work.wait(lock, [&] { return !jobs.empty(); });
            Job& job = *jobs.front();
            if (--job.n_expected == 0) jobs.pop_front();
            ++job.inside;
            lock.unlock();
            std::exception_ptr thrown = work_on(job);
            lock.lock();
            if (thrown && !job.thrown) job.thrown = thrown;
            if (--job.inside == 0) job.left.notify_one();
        }
    }

    static std::exception_ptr work_on(Job& job) {
        joined = &job;
        std::exception_ptr thrown;
        try {
            Ranges ranges(job);
            job.work(ranges);
        } catch (const Stopped&) {
        } catch (...) {
            thrown = std::current_exception();
            job.stopped = true;
        }
        joined = nullptr;
        return thrown;
    }

    std::mutex mutex;
    std::condition_variable there_is_work;
    std::deque<Job*> jobs;
    i64 n_started = 0;
};

// Never destroyed: its threads may outlive everything else.
std::atomic<Pool*> the_pool{nullptr};

Pool& pool() {
    Pool* current = the_pool;
    if (current) return *current;
    Pool* created = new Pool;
    if (the_pool.compare_exchange_strong(current, created)) return *created;
    delete created;
    return *current;
}

void work_alone(Job& job) {
    Ranges ranges(job);
    job.work(ranges);
}

}  // namespace

Running::Running() : threads_before(most_threads) {
    {
        InPython inside(true);
        most_threads = n_threads();
    }
    next_look = Clock::now() + BETWEEN_LOOKS;
    python_thread = PyEval_SaveThread();
}

Running::~Running() {
    InPython inside;
    PyEval_RestoreThread(static_cast<PyThreadState*>(python_thread));
    most_threads = threads_before;
}

InPython::InPython(bool has_gil) {
    ++n_in_python;
    if (!may_run_python()) {
        --n_in_python;
        if (has_gil) PyEval_SaveThread();
        while (true) std::this_thread::sleep_for(std::chrono::hours(1));
    }
    ++python_depth;
}

InPython::~InPython() {
    --python_depth;
    --n_in_python;
}

void prepare(void* count_threads_, u64 main_thread_) {
    Py_XDECREF(count_threads);
    count_threads = static_cast<PyObject*>(count_threads_);
    Py_INCREF(count_threads);
    main_thread = main_thread_;
#ifndef _WIN32
    // a forked child inherits no threads but the one that forks, and locks as they were
    static const int at_fork = pthread_atfork(nullptr, nullptr, [] {
        the_pool = nullptr;
        main_thread = this_thread();
        n_in_python = python_depth;
    });
    (void)at_fork;
#endif
}

void end_calls() {
    ending_thread = this_thread();
    PyThreadState* thread = PyEval_SaveThread();
    while (n_in_python > python_depth) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    PyEval_RestoreThread(thread);
}

void look() {
    if (!joined)
        look_for_signals();
    else if (joined->stopped)
        throw Stopped{};
}

Range Ranges::next() {
    look();
    i64 piece = job.stopped ? job.pieces : job.next++;
    if (piece >= job.pieces) return {0, 0};
    auto bound = [&](i64 i) { return i * (job.n / job.pieces) + std::min(i, job.n % job.pieces); };
    return {bound(piece), bound(piece + 1)};
}

void in_threads(i64 n, f64 nanoseconds, const std::function<void(Ranges&)>& work) {
    if (n <= 0) return;
    f64 total_ns = (f64)n * nanoseconds;
    i64 pieces = std::clamp((i64)std::ceil(total_ns / LONGEST_NS), (i64)1, n);
    i64 worth = std::min((i64)(total_ns / WAKE_NS), n);  // pieces that may be handed over
    i64 threads = shares || worth < 2 ? 1 : std::min(most_threads, worth);
    if (threads > 1) pieces = std::max(pieces, std::min(PIECES_A_THREAD * threads, worth));
    Job job{work, n, pieces, threads - 1, this_thread()};
    if (threads == 1) return work_alone(job);
    std::exception_ptr thrown;
    pool().help(job);
    shares = true;
    try {
        work_alone(job);
    } catch (...) {
        thrown = std::current_exception();
        job.stopped = true;
    }
    shares = false;
    pool().wait_for(job);
    if (thrown) std::rethrow_exception(thrown);
    if (job.thrown) std::rethrow_exception(job.thrown);
}

}  // namespace gpuens
