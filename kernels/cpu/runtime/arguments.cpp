// Arrays of any type and number of dimensions in one function: nanobind's own casters are compiled for each of them.
#include "runtime/arguments.h"

#include <algorithm>
#include <cstring>

#include "runtime/bindings.h"

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

namespace {

std::vector<RecordClass*>& record_classes() {
    static std::vector<RecordClass*> classes;
    return classes;
}

}  // namespace

RecordClass::RecordClass(const char* name_, const char* const* fields_, size_t n_fields_)
    : name(name_), fields(fields_), n_fields(n_fields_) {
    record_classes().push_back(this);
}

bool read_record(handle source, const RecordClass& record, const FieldReader* fields, uint8_t flags, cleanup_list* cleanup) {
    for (size_t i = 0; i < record.n_fields; ++i) {
        PyObject* attribute = PyObject_GetAttr(source.ptr(), PyTuple_GetItem(record.names, (Py_ssize_t)i));
        if (!attribute) {
            PyErr_Clear();
            return false;
        }
        cleanup->append(attribute);  // arrays live until the call ends
        if (!fields[i].read(attribute, fields[i].field, flags, cleanup)) return false;
    }
    return true;
}

handle write_record(const RecordClass& record, const FieldWriter* fields, const capsule& owner) {
    object values = steal(PyTuple_New((Py_ssize_t)record.n_fields));
    for (size_t i = 0; i < record.n_fields; ++i)
        PyTuple_SetItem(values.ptr(), (Py_ssize_t)i, fields[i].write(fields[i].field, owner).release().ptr());
    return PyObject_CallObject(record.type, values.ptr());
}

}  // namespace nanobind::detail

void gpuens::add_records(nb::module_& m) {
    using nb::detail::RecordClass;
    std::vector<RecordClass*>& classes = nb::detail::record_classes();
    std::sort(classes.begin(), classes.end(),
              [](const RecordClass* a, const RecordClass* b) { return std::strcmp(a->name, b->name) < 0; });
    nb::object namedtuple = nb::module_::import_("collections").attr("namedtuple");
    for (RecordClass* record : classes) {
        if (!nb::hasattr(m, record->name)) {  // the types of a template share one class
            nb::list fields;
            for (size_t i = 0; i < record->n_fields; ++i) fields.append(record->fields[i]);
            m.attr(record->name) = namedtuple(record->name, fields, nb::arg("module") = m.attr("__name__"));
        }
        nb::object type = m.attr(record->name);
        record->names = nb::object(type.attr("_fields")).release().ptr();
        record->type = type.release().ptr();
    }
}
