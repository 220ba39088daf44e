// Arrays of any type and number of dimensions in one function: nanobind's own casters are compiled for each of them.
#include "arguments.h"

namespace nanobind::detail {

namespace {

template <typename Array>
bool take(handle source, dlpack::dtype type, size_t n_dimensions, bool contiguous, TakenArray& taken, cleanup_list* cleanup) {
    make_caster<Array> caster;
    if (!caster.from_python(source, 0, cleanup)) return false;
    const Array& array = caster.value;
    if (!array.is_valid() || array.ndim() != n_dimensions || array.dtype() != type) return false;
    taken.data = (void*)array.data();
    gpuens::i64 expected = 1;
    bool is_empty = array.size() == 0;
    for (size_t i = n_dimensions; i-- > 0;) {
        taken.shape[i] = (gpuens::i64)array.shape(i);
        taken.strides[i] = array.stride(i);
        if (contiguous && !is_empty && taken.shape[i] != 1 && taken.strides[i] != expected) return false;
        expected *= taken.shape[i];
    }
    return true;
}

}  // namespace

bool take_array(handle source, dlpack::dtype type, size_t n_dimensions, bool writable, bool contiguous, TakenArray& array,
                cleanup_list* cleanup) {
    return writable ? take<ndarray<device::cpu>>(source, type, n_dimensions, contiguous, array, cleanup)
                    : take<ndarray<ro, device::cpu>>(source, type, n_dimensions, contiguous, array, cleanup);
}

}  // namespace nanobind::detail
