// A CUDA driver whose device is the processor. The image of a module is the path of a library that contains the
// emulator's shim.h. The driver checks launches as a device of compute capability 9.0 does. Built as libcuda.so.1.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_FOUND = 500, INVALID_IMAGE = 200, LAUNCH_FAILED = 719, UNSUPPORTED = 801 };
enum { MOST_THREADS = 0, STATIC_SHARED = 1, MOST_DYNAMIC_SHARED = 8 };  // attributes of functions
enum { SHARED_BYTES = 48 << 10, SHARED_BYTES_OPT_IN = 227 << 10 };

typedef struct {
    const char* (*launch)(int, const void* const*, const unsigned*, size_t, uint64_t, void*);
    int index;
    unsigned most_threads, static_shared, most_dynamic_shared;
    char name[200];
} Function;

long long gpu_stack_launches;
long long gpu_stack_busy_ns;  // processor time of kernels, which is not the host's on a GPU
static pthread_mutex_t one_launch = PTHREAD_MUTEX_INITIALIZER;
static __thread void* context = (void*)1;  // the number of the device plus one

int gpu_stack_device(void) { return context ? (int)(intptr_t)context - 1 : 0; }
void gpu_stack_set_device(int device) { context = (void*)(intptr_t)(device + 1); }

int cuGetErrorName(int error, const char** text) {
    *text = error == LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR";
    return SUCCESS;
}
int cuGetErrorString(int error, const char** text) { return cuGetErrorName(error, text); }

int cuCtxGetCurrent(void** found) { return *found = context, SUCCESS; }
int cuCtxSetCurrent(void* wanted) { return context = wanted, SUCCESS; }
int cuCtxGetDevice(int* device) { return *device = gpu_stack_device(), SUCCESS; }
int cuStreamGetCtx(void* stream, void** found) { return *found = context, SUCCESS; }
int cuDevicePrimaryCtxRelease_v2(int device) { return SUCCESS; }

int cuModuleLoadData(void** module, const void* image) {
    *module = dlopen(image, RTLD_NOW | RTLD_LOCAL);
    if (!*module) fprintf(stderr, "gpu_stack: %s\n", dlerror());
    return *module ? SUCCESS : INVALID_IMAGE;
}
int cuModuleLoad(void** module, const char* path) { return cuModuleLoadData(module, path); }
int cuModuleUnload(void* module) { return SUCCESS; }  // other code may still call functions of the module
int cuModuleGetGlobal_v2(void** place, size_t* size, void* module, const char* name) { return NOT_FOUND; }

int cuModuleGetFunction(Function** function, void* module, const char* name) {
    const char* const* names = dlsym(module, "gpuens_names");
    for (int i = 0; names[i]; ++i) {
        if (strcmp(names[i], name)) continue;
        Function* found = calloc(1, sizeof *found);
        found->launch = dlsym(module, "gpuens_launch");
        found->index = i;
        found->most_threads = ((unsigned (*)(int))dlsym(module, "gpuens_most_threads"))(i);
        found->static_shared = ((size_t(*)(void))dlsym(module, "gpuens_static_shared"))();
        found->most_dynamic_shared = SHARED_BYTES - found->static_shared;
        snprintf(found->name, sizeof found->name, "%s", name);
        *function = found;
        return SUCCESS;
    }
    return NOT_FOUND;
}

int cuFuncGetAttribute(int* value, int attribute, Function* function) {
    *value = attribute == MOST_THREADS         ? (int)function->most_threads
             : attribute == STATIC_SHARED      ? (int)function->static_shared
             : attribute == MOST_DYNAMIC_SHARED ? (int)function->most_dynamic_shared
                                                : 0;
    return SUCCESS;
}
int cuFuncSetAttribute(Function* function, int attribute, int value) {
    if (attribute != MOST_DYNAMIC_SHARED) return SUCCESS;
    if (value < 0 || (size_t)value + function->static_shared > SHARED_BYTES_OPT_IN) return INVALID_VALUE;
    function->most_dynamic_shared = (unsigned)value;
    return SUCCESS;
}

static int refused(const Function* function, const unsigned* sizes, unsigned shared) {
    unsigned threads = sizes[3] * sizes[4] * sizes[5];
    for (int i = 0; i < 6; ++i)
        if (!sizes[i]) return 1;
    if (sizes[0] > 0x7fffffff || sizes[1] > 65535 || sizes[2] > 65535 || sizes[5] > 64) return 1;
    return threads > function->most_threads || shared > function->most_dynamic_shared;
}

static long long nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

int cuLaunchKernel(Function* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void* stream, void** arguments, void** extra) {
    static void* carriers;  // stacks of the threads, shared by all libraries
    unsigned sizes[6] = {gx, gy, gz, bx, by, bz};
    if (extra) return UNSUPPORTED;
    if (refused(function, sizes, shared)) {
        fprintf(stderr, "gpu_stack: %s cannot have a grid of (%u, %u, %u), blocks of (%u, %u, %u) and %u bytes\n",
                function->name, gx, gy, gz, bx, by, bz, shared);
        return INVALID_VALUE;
    }
    pthread_mutex_lock(&one_launch);
    ++gpu_stack_launches;
    if (!carriers) {
        Dl_info home;
        dladdr((void*)function->launch, &home);
        void* library = dlopen(home.dli_fname, RTLD_NOW | RTLD_NOLOAD);
        carriers = ((void* (*)(void))dlsym(library, "gpuens_carriers"))();
    }
    long long start = nanoseconds();
    const char* fault = function->launch(function->index, (const void* const*)arguments, sizes, shared, 0, carriers);
    gpu_stack_busy_ns += nanoseconds() - start;
    pthread_mutex_unlock(&one_launch);
    if (fault) fprintf(stderr, "gpu_stack: %s: %s\n", function->name, fault);
    return fault ? LAUNCH_FAILED : SUCCESS;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads, size_t shared) {
    return *blocks = 2048 / threads, SUCCESS;
}
int cuOccupancyMaxPotentialBlockSize(int* grid, int* block, void* function, void* sizes, size_t shared, int limit) {
    return *grid = 132, *block = 256, SUCCESS;
}
