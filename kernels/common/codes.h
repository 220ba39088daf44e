// The names of the types, and the code of a missing label. All of common/ is text for both devices: C++ includes it
// (cpu/common.h), and the loader of kernels puts it before each kernel, which has no #include
// (gpuens/runtime/kernels.py).
//
// All indices are i64: a product of two everyday sizes can exceed 2^31.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;
typedef float f32;
typedef double f64;

// BOTH marks a function that both devices call.
#ifdef __CUDACC__
#define BOTH __device__ inline
#else
#define BOTH inline
#endif

// The code of a missing label: the largest value of the codes' type.
#define MISSING(type) ((type) ~(type)0)
