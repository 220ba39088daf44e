// The names of the types, and the missing label. Like all of common/, text for both devices: C++ includes it
// (cpu/common.h), and a kernel has it put before it, without #include (gpuens/runtime/kernels.py).
//
// Indices are i64 throughout: a product of two sizes passes 2^31 at everyday sizes.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;
typedef float f32;
typedef double f64;

// Marks a function for both devices.
#ifdef __CUDACC__
#define BOTH __device__ inline
#else
#define BOTH inline
#endif

// A missing label is the largest value of the codes' type.
#define MISSING(type) ((type) ~(type)0)
