// Labels become codes through a table for each clustering (gpuens/labels/tables.py). A slot is 1 + the label: the first is
// "missing", the last has all other labels.
//
// Labels are flat in the order of their memory, `steps` to the next clustering and to the next object.
#include "parallel.h"
#include "primitives.h"

#include <algorithm>

namespace gpuens {

namespace {

constexpr i64 NEAR = 256;            // objects whose labels the cache holds, where those of an object are side by side
constexpr u32 NO_CODE = 4294967295;  // cut to any type, its largest code

// Call `work(m, first, n)` on n objects of clustering m, from `first` on, in the order of the memory.
template <typename Work>
void in_memory_order(i64 start, i64 stop, i64 n_clusterings, bool by_objects, Work&& work) {
    i64 at_once = by_objects ? stop - start : NEAR;
    for (i64 first = start; first < stop; first += at_once) {
        look();
        for (i64 m = 0; m < n_clusterings; ++m) work(m, first, std::min(at_once, stop - first));
    }
}

// Of n labels of a clustering, `step` apart.
void mark(const i64* labels, i64 step, i64 n, u64 beyond, u32* slots) {
    for (i64 i = 0; i < n; ++i) slots[std::min((u64)labels[i * step] + 1, beyond)] = 1;
}

template <typename Code>
void write(const i64* labels, i64 step, i64 n, const u32* slots, Code* codes) {
    for (i64 i = 0; i < n; ++i) codes[i] = (Code)slots[(u64)labels[i * step] + 1];
}

}  // namespace

void mark_slots(Vector<const i64> labels, std::tuple<i64, i64> steps, Matrix<u32> table) {
    auto [by_clustering, by_object] = steps;
    u64 beyond = (u64)table.columns - 1;
    in_memory_order(0, labels.size / table.rows, table.rows, by_object == 1, [&](i64 m, i64 first, i64 n) {
        mark(labels.data + m * by_clustering + first * by_object, by_object, n, beyond, table[m]);
    });
}

void number_slots(Matrix<u32> table, Vector<i64> values, Vector<i64> n_values) {
    i64 n = 0;
    for (i64 m = 0; m < table.rows; ++m) {
        u32* slots = table[m];
        i64 first = n;
        slots[0] = NO_CODE;
        for (i64 slot = 1; slot < table.columns - 1; ++slot)
            if (slots[slot]) {
                slots[slot] = (u32)(n - first);
                values[n++] = slot - 1;
            }
        n_values[m] = n - first;
    }
}

void write_codes(Vector<const i64> labels, std::tuple<i64, i64> steps, Matrix<const u32> table,
                 Vector<const bool> is_odd, std::variant<Matrix<u8>, Matrix<u16>, Matrix<u32>> codes, i64 shift) {
    auto [by_clustering, by_object] = steps;
    std::visit([&, by_clustering = by_clustering, by_object = by_object]<typename Code>(Matrix<Code> into) {
        over_ranges(labels.size / table.rows, (f64)table.rows, [&](i64 start, i64 stop) {
            in_memory_order(start, stop, table.rows, by_object == 1, [&](i64 m, i64 first, i64 n) {
                const i64* own = labels.data + m * by_clustering + first * by_object;
                if (!is_odd[m]) write(own, by_object, n, table[m], into[m] + shift + first);
            });
        });
    }, codes);
}

}  // namespace gpuens
