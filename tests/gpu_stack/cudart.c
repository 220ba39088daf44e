// A CUDA runtime whose devices' memory is the host's; linked into CuPy's module cupy_backends.cuda.api.runtime in place
// of NVIDIA's. Functions that CuPy names but this file does not define return cudaErrorNotSupported (see build.py).
//
// GPU_STACK_DEVICES: number of devices (default 1). GPU_STACK_MEMORY: bytes of each device (default 80 GB).

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int gpu_stack_device(void);  // in libcuda.c
void gpu_stack_set_device(int device);

// counters of requests, which gpu_stack.counts reads
long long gpu_stack_synchronizations;  // times that the host has waited for the device
long long gpu_stack_to_host, gpu_stack_to_device, gpu_stack_on_device;  // copies
long long gpu_stack_to_host_bytes, gpu_stack_to_device_bytes, gpu_stack_on_device_bytes;
long long gpu_stack_allocations, gpu_stack_memory_queries;

#define OK return cudaSuccess
typedef cudaError_t Error;

// --- memory ----------------------------------------------------------------------------------------------------------

enum { MOST_DEVICES = 8, UNIT = 512 };

typedef struct Block {  // facts about an allocation, stored in front of it
    struct Block* next;
    size_t size;
    int device;
} Block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Block* blocks;
static size_t held[MOST_DEVICES];

static long long setting(const char* name, long long otherwise) {
    const char* text = getenv(name);
    return text ? atoll(text) : otherwise;
}
static int n_devices(void) { return (int)setting("GPU_STACK_DEVICES", 1); }
static size_t total(void) { return (size_t)setting("GPU_STACK_MEMORY", 80000000000); }

Error cudaMalloc(void** place, size_t size) {
    int device = gpu_stack_device();
    size = (size + UNIT - 1) / UNIT * UNIT;
    pthread_mutex_lock(&lock);
    ++gpu_stack_allocations;
    Block* block = held[device] + size > total() ? NULL : aligned_alloc(UNIT, UNIT + size);
    if (block) {
        *block = (Block){blocks, size, device};
        blocks = block;
        held[device] += size;
        *place = (char*)block + UNIT;
        memset(*place, 0xFF, size);  // NaN, -1 or the largest label, so that reading before writing shows
    }
    pthread_mutex_unlock(&lock);
    return block ? cudaSuccess : cudaErrorMemoryAllocation;
}
Error cudaFree(void* place) {
    pthread_mutex_lock(&lock);
    Block** at = &blocks;
    while (*at && (char*)*at + UNIT != (char*)place) at = &(*at)->next;
    Block* found = *at;
    if (found) {
        *at = found->next;
        held[found->device] -= found->size;
        free(found);
    }
    pthread_mutex_unlock(&lock);
    return found || !place ? cudaSuccess : cudaErrorInvalidValue;
}
Error cudaMallocAsync(void** place, size_t size, cudaStream_t stream) { return cudaMalloc(place, size); }
Error cudaFreeAsync(void* place, cudaStream_t stream) { return cudaFree(place); }
Error cudaMallocManaged(void** place, size_t size, unsigned flags) { return cudaMalloc(place, size); }
Error cudaHostAlloc(void** place, size_t size, unsigned flags) { return *place = malloc(size), cudaSuccess; }
Error cudaFreeHost(void* place) { free(place); OK; }
Error cudaMemGetInfo(size_t* free, size_t* all) {
    ++gpu_stack_memory_queries;
    *all = total(), *free = *all - held[gpu_stack_device()];
    OK;
}
Error cudaPointerGetAttributes(struct cudaPointerAttributes* found, const void* place) {
    memset(found, 0, sizeof *found);
    found->device = -1;
    pthread_mutex_lock(&lock);
    for (Block* block = blocks; block; block = block->next) {
        char* start = (char*)block + UNIT;
        if ((char*)place < start || (char*)place >= start + block->size) continue;
        found->type = cudaMemoryTypeDevice, found->device = block->device, found->devicePointer = (void*)place;
    }
    pthread_mutex_unlock(&lock);
    OK;
}

// --- copies ----------------------------------------------------------------------------------------------------------

static void count(size_t size, enum cudaMemcpyKind kind, int waits) {
    int to_host = kind == cudaMemcpyDeviceToHost, to_device = kind == cudaMemcpyHostToDevice;
    ++*(to_host ? &gpu_stack_to_host : to_device ? &gpu_stack_to_device : &gpu_stack_on_device);
    *(to_host ? &gpu_stack_to_host_bytes : to_device ? &gpu_stack_to_device_bytes : &gpu_stack_on_device_bytes) += size;
    gpu_stack_synchronizations += waits;
}
Error cudaMemcpyAsync(void* to, const void* from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream) {
    count(size, kind, 0);
    memmove(to, from, size);
    OK;
}
Error cudaMemcpy(void* to, const void* from, size_t size, enum cudaMemcpyKind kind) {
    count(size, kind, kind != cudaMemcpyDeviceToDevice);
    memmove(to, from, size);
    OK;
}
Error cudaMemcpyPeerAsync(void* to, int there, const void* from, int here, size_t size, cudaStream_t stream) {
    return cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream);
}
Error cudaMemcpyPeer(void* to, int there, const void* from, int here, size_t size) {
    return cudaMemcpy(to, from, size, cudaMemcpyDeviceToDevice);
}
Error cudaMemcpy2DAsync(void* to, size_t pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                        enum cudaMemcpyKind kind, cudaStream_t stream) {
    count(width * height, kind, 0);
    for (size_t i = 0; i < height; ++i) memmove((char*)to + i * pitch, (char*)from + i * from_pitch, width);
    OK;
}
Error cudaMemcpy2D(void* to, size_t pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                   enum cudaMemcpyKind kind) {
    gpu_stack_synchronizations += kind != cudaMemcpyDeviceToDevice;
    return cudaMemcpy2DAsync(to, pitch, from, from_pitch, width, height, kind, NULL);
}
Error cudaMemsetAsync(void* place, int value, size_t size, cudaStream_t stream) { memset(place, value, size); OK; }
Error cudaMemset(void* place, int value, size_t size) { return cudaMemsetAsync(place, value, size, NULL); }

// --- devices ---------------------------------------------------------------------------------------------------------

const char* cudaGetErrorName(Error error) {
    return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
           : error == cudaErrorInvalidDevice  ? "cudaErrorInvalidDevice"
                                              : "cudaError";
}
const char* cudaGetErrorString(Error error) {
    return error == cudaErrorMemoryAllocation ? "out of memory"
           : error == cudaErrorInvalidDevice  ? "invalid device ordinal"
                                              : "refused by the stand-in for a GPU";
}
Error cudaGetLastError(void) { OK; }  // the function that failed has already returned its error
Error cudaDriverGetVersion(int* version) { *version = CUDART_VERSION; OK; }
Error cudaRuntimeGetVersion(int* version) { *version = CUDART_VERSION; OK; }
Error cudaGetDeviceCount(int* n) {
    *n = n_devices();
    return *n ? cudaSuccess : cudaErrorNoDevice;
}
Error cudaGetDevice(int* device) { *device = gpu_stack_device(); OK; }
Error cudaSetDevice(int device) {
    if (device < 0 || device >= n_devices()) return cudaErrorInvalidDevice;
    gpu_stack_set_device(device);
    OK;
}
Error cudaDeviceSynchronize(void) { ++gpu_stack_synchronizations; OK; }
Error cudaDeviceCanAccessPeer(int* can, int device, int peer) { *can = 0; OK; }
Error cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attribute, int device) {
    *value = attribute == cudaDevAttrComputeCapabilityMajor        ? 9
             : attribute == cudaDevAttrMultiProcessorCount         ? 132
             : attribute == cudaDevAttrMaxThreadsPerBlock          ? 1024
             : attribute == cudaDevAttrClockRate                   ? 1980000  // kHz
             : attribute == cudaDevAttrWarpSize                    ? 32
             : attribute == cudaDevAttrMaxSharedMemoryPerBlock      ? 48 << 10
             : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? 227 << 10
                                                                    : 0;
    OK;
}
Error cudaGetDeviceProperties(struct cudaDeviceProp* found, int device) {
    memset(found, 0, sizeof *found);
    strcpy(found->name, "a processor in place of a GPU");
    found->major = 9, found->totalGlobalMem = total(), found->warpSize = 32, found->multiProcessorCount = 132;
    found->maxThreadsPerBlock = 1024, found->sharedMemPerBlock = 48 << 10, found->l2CacheSize = 50 << 20;
    OK;
}

// --- streams and events: every call does its work at once ------------------------------------------------------------

static void* const STREAM = (void*)16;

Error cudaStreamCreate(cudaStream_t* stream) { *stream = STREAM; OK; }
Error cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) { *stream = STREAM; OK; }
Error cudaStreamDestroy(cudaStream_t stream) { OK; }
Error cudaStreamSynchronize(cudaStream_t stream) { ++gpu_stack_synchronizations; OK; }
Error cudaStreamQuery(cudaStream_t stream) { OK; }
Error cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) { OK; }
Error cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* found) {
    *found = cudaStreamCaptureStatusNone;
    OK;
}

Error cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
    *event = calloc(1, sizeof(struct timespec));
    OK;
}
Error cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
Error cudaEventDestroy(cudaEvent_t event) { free(event); OK; }
Error cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    clock_gettime(CLOCK_MONOTONIC, (struct timespec*)event);
    OK;
}
Error cudaEventQuery(cudaEvent_t event) { OK; }
Error cudaEventSynchronize(cudaEvent_t event) { ++gpu_stack_synchronizations; OK; }
Error cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
    struct timespec *from = (void*)start, *to = (void*)stop;
    *milliseconds = (float)((to->tv_sec - from->tv_sec) * 1e3 + (to->tv_nsec - from->tv_nsec) * 1e-6);
    OK;
}
