// Labels become codes through a table for each clustering (gpuens/labels/encoding.py). A slot is 1 + the label: the first is
// "missing", the last has all other labels.
#include "runtime/parallel.h"
#include "labels/primitives.h"

#include <algorithm>
#include <type_traits>

namespace gpuens {

namespace {

constexpr i64 NEAR = 1 << 14;        // bytes of labels that the smallest cache holds, where those of an object are side by side
constexpr u32 NO_CODE = 4294967295;  // cut to any type, its largest code

// Call `work(m, first, own, n)` for n objects of clustering m, from `first` on, in the order of the memory; `own(i)` is the
// label of one.
template <typename Label, typename Work>
void in_memory_order(const Strided<Label>& labels, Work&& work) {
    i64 step = labels.column_step;
    over_ranges(labels.columns, (f64)labels.rows, [&](i64 start, i64 stop) {
        i64 at_once = step == 1 ? stop - start : std::max<i64>(NEAR / (labels.rows * sizeof(Label)), 16);
        for (i64 first = start; first < stop; first += at_once) {
            look();
            i64 n = std::min(at_once, stop - first);
            for (i64 m = 0; m < labels.rows; ++m) {
                const Label* column = labels[m] + first * step;
                if (step == 1)
                    work(m, first, [=](i64 i) { return column[i]; }, n);
                else
                    work(m, first, [=](i64 i) { return column[i * step]; }, n);
            }
        }
    });
}

// NaN is missing; numbers that are not whole have no slot of their own.
template <typename Label>
u64 slot_of(Label label, u64 beyond) {
    if constexpr (std::is_floating_point_v<Label>) {
        if (!(label >= -1 && label < (Label)beyond)) return label == label ? beyond : 0;
        i64 integer = (i64)label;
        return (Label)integer == label ? (u64)integer + 1 : beyond;
    } else if constexpr (std::is_signed_v<Label>) {
        return std::min((u64)(i64)label + 1, beyond);
    } else {
        return label < beyond ? (u64)label + 1 : beyond;
    }
}

// Several threads mark a slot, which a processor reads much faster than it writes what another one reads.
void mark(u32& slot) {
    if (!__atomic_load_n(&slot, __ATOMIC_RELAXED)) __atomic_store_n(&slot, 1, __ATOMIC_RELAXED);
}

}  // namespace

void mark_slots(const Labels& labels, Matrix<u32> table) {
    std::visit([&](auto of) {
        u64 beyond = (u64)table.columns - 1;
        in_memory_order(of, [&](i64 m, i64, auto label, i64 n) {
            u32* slots = table[m];
#pragma GCC unroll 8
            for (i64 i = 0; i < n; ++i) mark(slots[slot_of(label(i), beyond)]);
        });
    }, labels);
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

void write_codes(const Labels& labels, Matrix<const u32> table, Vector<const bool> is_odd,
                 std::variant<Matrix<u8>, Matrix<u16>, Matrix<u32>> codes) {
    std::visit([&]<typename Code>(auto of, Matrix<Code> into) {
        constexpr u64 beyond = ~0ull;  // all labels have slots
        in_memory_order(of, [&](i64 m, i64 first, auto label, i64 n) {
            if (is_odd[m]) return;
            const u32* slots = table[m];
            Code* column = into[m] + first;
#pragma GCC unroll 8
            for (i64 i = 0; i < n; ++i) column[i] = (Code)slots[slot_of(label(i), beyond)];
        });
    }, labels, codes);
}

}  // namespace gpuens
