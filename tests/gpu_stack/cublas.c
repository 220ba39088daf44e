// cuBLAS's products of matrices (column by column), as CuPy calls them for float32 and float64. All other
// functions that CuPy names return CUBLAS_STATUS_NOT_SUPPORTED (see build.py).
//
// Products of float32 are summed in float32, as cuBLAS may do: k is divided into slices, which are summed one after the
// other. The length of the slices depends on the shape of the result, because cuBLAS, too, chooses its kernel by the
// shape. So tests find code that relies on equal rounding for different shapes.

#include <stddef.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 15 };
enum { FLOAT32 = 0, FLOAT64 = 1 };  // cudaDataType_t

static int pointer_mode;
int cublasCreate_v2(void** handle) { return *handle = &pointer_mode, SUCCESS; }
int cublasDestroy_v2(void* handle) { return SUCCESS; }
int cublasSetStream_v2(void* handle, void* stream) { return SUCCESS; }
int cublasGetStream_v2(void* handle, void** stream) { return *stream = NULL, SUCCESS; }
int cublasSetMathMode(void* handle, int mode) { return SUCCESS; }
int cublasGetMathMode(void* handle, int* mode) { return *mode = 0, SUCCESS; }
int cublasSetPointerMode_v2(void* handle, int mode) { return pointer_mode = mode, SUCCESS; }
int cublasGetPointerMode_v2(void* handle, int* mode) { return *mode = pointer_mode, SUCCESS; }
int cublasGetVersion_v2(void* handle, int* version) { return *version = 130000, SUCCESS; }

static double at(const void* matrix, int type, size_t i) {
    return type == FLOAT64 ? ((const double*)matrix)[i] : ((const float*)matrix)[i];
}
static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

// Sum a[l step_a] b[l step_b] over l < k.
static float dot32(const float* a, size_t step_a, const float* b, size_t step_b, size_t k, size_t slice) {
    float sum = 0;
    for (size_t first = 0; first < k; first += slice) {
        float part = 0;
        for (size_t l = first; l < smaller(k, first + slice); ++l) part += a[l * step_a] * b[l * step_b];
        sum += part;
    }
    return sum;
}
static double dot64(const double* a, size_t step_a, const double* b, size_t step_b, size_t k) {
    double sum = 0;
    for (size_t l = 0; l < k; ++l) sum += a[l * step_a] * b[l * step_b];
    return sum;
}

// C = alpha op(A) op(B) + beta C, with op(A) (m, k) and op(B) (k, n)
static int gemm(int transposed_a, int transposed_b, int m, int n, int k, double alpha, const void* a, int lda,
                const void* b, int ldb, double beta, void* c, int ldc, int type) {
    if (type != FLOAT32 && type != FLOAT64) return NOT_SUPPORTED;
    size_t slice = 64 << (m + n) % 8;
    size_t step_a = transposed_a ? 1 : lda, step_b = transposed_b ? ldb : 1;
    for (size_t j = 0; j < (size_t)n; ++j)
        for (size_t i = 0; i < (size_t)m; ++i) {
            size_t at_a = transposed_a ? i * lda : i, at_b = transposed_b ? j : j * ldb, place = i + j * ldc;
            double sum = type == FLOAT64
                             ? dot64((const double*)a + at_a, step_a, (const double*)b + at_b, step_b, k)
                             : dot32((const float*)a + at_a, step_a, (const float*)b + at_b, step_b, k, slice);
            sum = alpha * sum + (beta ? beta * at(c, type, place) : 0);
            if (type == FLOAT64) ((double*)c)[place] = sum;
            else ((float*)c)[place] = (float)sum;
        }
    return SUCCESS;
}

int cublasDgemm_v2(void* handle, int ta, int tb, int m, int n, int k, const double* alpha, const double* a, int lda,
                   const double* b, int ldb, const double* beta, double* c, int ldc) {
    return gemm(ta, tb, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc, FLOAT64);
}
int cublasSgemm_v2(void* handle, int ta, int tb, int m, int n, int k, const float* alpha, const float* a, int lda,
                   const float* b, int ldb, const float* beta, float* c, int ldc) {
    return gemm(ta, tb, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc, FLOAT32);
}
int cublasSgemmEx(void* handle, int ta, int tb, int m, int n, int k, const float* alpha, const void* a, int type_a,
                  int lda, const void* b, int type_b, int ldb, const float* beta, void* c, int type_c, int ldc) {
    if (type_a != type_c || type_b != type_c) return NOT_SUPPORTED;
    return gemm(ta, tb, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc, type_c);
}
int cublasGemmStridedBatchedEx(void* handle, int ta, int tb, int m, int n, int k, const void* alpha, const void* a,
                               int type_a, int lda, long long step_a, const void* b, int type_b, int ldb,
                               long long step_b, const void* beta, void* c, int type_c, int ldc, long long step_c,
                               int batch, int compute, int algorithm) {
    size_t size = type_c == FLOAT64 ? 8 : 4;
    if (type_a != type_c || type_b != type_c) return NOT_SUPPORTED;
    for (int i = 0; i < batch; ++i) {
        int status = gemm(ta, tb, m, n, k, at(alpha, type_c, 0), (const char*)a + i * step_a * size, lda,
                          (const char*)b + i * step_b * size, ldb, at(beta, type_c, 0), (char*)c + i * step_c * size,
                          ldc, type_c);
        if (status) return status;
    }
    return SUCCESS;
}
int cublasDgemmBatched(void* handle, int ta, int tb, int m, int n, int k, const double* alpha, const double* const* a,
                       int lda, const double* const* b, int ldb, const double* beta, double* const* c, int ldc,
                       int batch) {
    for (int i = 0; i < batch; ++i) gemm(ta, tb, m, n, k, *alpha, a[i], lda, b[i], ldb, *beta, c[i], ldc, FLOAT64);
    return SUCCESS;
}
int cublasSgemmBatched(void* handle, int ta, int tb, int m, int n, int k, const float* alpha, const float* const* a,
                       int lda, const float* const* b, int ldb, const float* beta, float* const* c, int ldc,
                       int batch) {
    for (int i = 0; i < batch; ++i) gemm(ta, tb, m, n, k, *alpha, a[i], lda, b[i], ldb, *beta, c[i], ldc, FLOAT32);
    return SUCCESS;
}
int cublasGemmEx(void* handle, int ta, int tb, int m, int n, int k, const void* alpha, const void* a, int type_a,
                 int lda, const void* b, int type_b, int ldb, const void* beta, void* c, int type_c, int ldc,
                 int compute, int algorithm) {
    return cublasGemmStridedBatchedEx(handle, ta, tb, m, n, k, alpha, a, type_a, lda, 0, b, type_b, ldb, 0, beta, c,
                                      type_c, ldc, 0, 1, compute, algorithm);
}
int cublasDgemv_v2(void* handle, int transposed, int m, int n, const double* alpha, const double* a, int lda,
                   const double* x, int step_x, const double* beta, double* y, int step_y) {
    for (int i = 0; i < (transposed ? n : m); ++i) {
        double sum = 0, *to = y + (size_t)i * step_y;
        for (int l = 0; l < (transposed ? m : n); ++l)
            sum += (transposed ? a[l + (size_t)i * lda] : a[i + (size_t)l * lda]) * x[(size_t)l * step_x];
        *to = *alpha * sum + (*beta ? *beta * *to : 0);
    }
    return SUCCESS;
}
int cublasDdot_v2(void* handle, int n, const double* x, int step_x, const double* y, int step_y, double* result) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += x[(size_t)i * step_x] * y[(size_t)i * step_y];
    return *result = sum, SUCCESS;
}
