#include "parallel.h"

#define Py_LIMITED_API 0x030B0000
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

constexpr f64 HANDED_OVER_NS = 65'536;  // to wake a thread and to hear from it
constexpr f64 LONGEST_NS = 2'000'000;   // a piece at most, as foreseen, which may be wrong by ten times
constexpr i64 PIECES_A_THREAD = 8;      // at least, to balance the load
constexpr auto BETWEEN_LOOKS = std::chrono::milliseconds(20);

// What several threads share while they work on it. The calling thread has it on its stack.
struct Job {
    const std::function<void(Ranges&)>& work;
    i64 n, pieces;
    i64 wanted;                    // threads of the pool that may still come
    i64 inside = 0;                // threads of the pool that have come and not left
    std::exception_ptr thrown;     // by a thread of the pool
    std::condition_variable left;  // by one of them
    std::atomic<i64> next{0};
    std::atomic<bool> stopped{false};
};

namespace {

struct Stopped {};  // thrown where the work is to end because another thread has thrown

thread_local Job* joined = nullptr;     // the work of a thread of the pool
thread_local bool shares = false;       // whether this thread is within `in_threads`
thread_local Clock::time_point looked;  // when the calling thread has last looked for signals

PyObject* counts_threads = nullptr;

i64 n_threads() {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject* counted = PyObject_CallObject(counts_threads, nullptr);
    i64 n = counted ? PyLong_AsLongLong(counted) : -1;
    Py_XDECREF(counted);
    PyGILState_Release(state);
    if (n < 0) throw PythonError{};
    return n;
}

void look_for_signals() {
    Clock::time_point now = Clock::now();
    if (now - looked < BETWEEN_LOOKS) return;
    looked = now;
    PyGILState_STATE state = PyGILState_Ensure();
    int raised = PyErr_CheckSignals();
    PyGILState_Release(state);
    if (raised) throw PythonError{};
}

// The threads that help, for as long as the process lives.
class Pool {
public:
    void help(Job& job) {
        std::lock_guard<std::mutex> lock(mutex);
        while (n_started < job.wanted && start()) ++n_started;
        jobs.push_back(&job);
        for (i64 i = 0; i < job.wanted; ++i) there_is_work.notify_one();
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
#ifndef _WIN32
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
        bool started = true;
        try {
            std::thread([this] { serve(); }).detach();
        } catch (const std::system_error&) {  // too many threads: those that there are do the work
            started = false;
        }
#ifndef _WIN32
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
#endif
        return started;
    }

    [[noreturn]] void serve() {
        shares = true;
        std::unique_lock<std::mutex> lock(mutex);
        while (true) {
            there_is_work.wait(lock, [&] { return !jobs.empty(); });
            Job& job = *jobs.front();
            if (--job.wanted == 0) jobs.pop_front();
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
    Pool* found = the_pool;
    if (found) return *found;
#ifndef _WIN32
    // a forked child inherits no threads, and locks as they were
    static const int at_fork = pthread_atfork(nullptr, nullptr, [] { the_pool = nullptr; });
    (void)at_fork;
#endif
    Pool* made = new Pool;
    if (the_pool.compare_exchange_strong(found, made)) return *made;
    delete made;
    return *found;
}

void work_alone(Job& job) {
    Ranges ranges(job);
    job.work(ranges);
}

}  // namespace

Running::Running() : held(PyEval_SaveThread()) { looked = Clock::now(); }
Running::~Running() { PyEval_RestoreThread(static_cast<PyThreadState*>(held)); }

void count_threads_by(void* function) {
    Py_XDECREF(counts_threads);
    counts_threads = static_cast<PyObject*>(function);
    Py_INCREF(counts_threads);
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
    f64 all = (f64)n * nanoseconds;
    i64 pieces = std::clamp((i64)std::ceil(all / LONGEST_NS), (i64)1, n);
    i64 worth = std::min((i64)(all / HANDED_OVER_NS), n);  // pieces that may be handed over
    i64 threads = shares || worth < 2 ? 1 : std::min(n_threads(), worth);
    if (threads > 1) pieces = std::max(pieces, std::min(PIECES_A_THREAD * threads, worth));
    Job job{work, n, pieces, threads - 1};
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
