// cuSOLVER's eigenvectors of a symmetric matrix of float64, as cupy.linalg.eigh calls them; NumPy computes them (see
// __init__.py). All other functions return CUSOLVER_STATUS_NOT_SUPPORTED (see build.py).

#include <stddef.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 9 };
enum { FLOAT64 = 1 };  // cudaDataType_t

// write the eigenvectors into a (n, n), in place of the matrix, and the eigenvalues into w
void (*gpu_stack_eigh)(long long n, double* a, double* w);

int cusolverDnCreate(void** handle) { return *handle = handle, SUCCESS; }
int cusolverDnDestroy(void* handle) { return SUCCESS; }
int cusolverDnSetStream(void* handle, void* stream) { return SUCCESS; }
int cusolverDnGetStream(void* handle, void** stream) { return *stream = NULL, SUCCESS; }
int cusolverDnCreateParams(void** params) { return *params = params, SUCCESS; }
int cusolverDnDestroyParams(void* params) { return SUCCESS; }

int cusolverDnXsyevd_bufferSize(void* handle, void* params, int vectors, int triangle, long long n, int type,
                                const void* a, long long lda, int type_w, const void* w, int type_compute,
                                size_t* on_device, size_t* on_host) {
    *on_device = 2 * n * n * sizeof(double), *on_host = 0;
    return SUCCESS;
}
int cusolverDnXsyevd(void* handle, void* params, int vectors, int triangle, long long n, int type, void* a,
                     long long lda, int type_w, void* w, int type_compute, void* work, size_t size, void* host,
                     size_t host_size, int* info) {
    if (type != FLOAT64 || lda != n) return NOT_SUPPORTED;
    gpu_stack_eigh(n, a, w);
    return *info = 0, SUCCESS;
}
