// Rows in lexicographic order: as numbers that compare as they do, and found among others (kernels/rows.cu).
#include "parallel.h"
#include "primitives.h"

#include <algorithm>

namespace gpuens {

constexpr i64 AT_ONCE = 1024;    // rows that are packed: a cache holds their words until the last digit
constexpr f64 PACKING_NS = 0.2;  // a label

template <typename Code>
static void pack(i64 start, i64 stop, Matrix<const Code> columns, Vector<const i64> word_of, Vector<const u64> radices,
                 Matrix<u64> words) {
    for (i64 first = start; first < stop; first += AT_ONCE) {
        i64 n = std::min(stop - first, AT_ONCE);
        for (i64 m = 0; m < columns.rows; ++m) {
            const Code* column = columns[m] + first;
            u64 *word = words[word_of[m]] + first, radix = radices[m];
            Code missing = (Code)std::min(radix - 1, (u64)MISSING(Code));
            if (m == 0 || word_of[m] != word_of[m - 1])
                for (i64 i = 0; i < n; ++i) word[i] = std::min(column[i], missing);
            else
                for (i64 i = 0; i < n; ++i) word[i] = word[i] * radix + std::min(column[i], missing);
        }
    }
}

void pack_rows(Codes<Matrix> columns, Vector<const i64> word_of, Vector<const u64> radices, Matrix<u64> words) {
    std::visit([&](auto of) {
        over_ranges(words.columns, (f64)of.rows * PACKING_NS,
                    [&](i64 start, i64 stop) { pack(start, stop, of, word_of, radices, words); });
    }, columns);
}

void find_rows(Codes<Matrix> rows, Codes<Matrix> others, Vector<i64> places) {
    std::visit([&](auto of) {
        auto among = std::get<decltype(of)>(others);
        over_ranges(of.rows, 64, [&](i64 start, i64 stop) {
            for (i64 i = start; i < stop; ++i)
                places[i] = place_among(of[i], 1, among.data, among.columns, 1, among.rows, of.columns);
        });
    }, rows);
}

}  // namespace gpuens
