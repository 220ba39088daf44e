// Rows in lexicographic order: as numbers that compare as they do, and found among others (kernels/rows.cu).
#include "runtime/lanes.h"
#include "runtime/parallel.h"
#include "labels/primitives.h"

#include <algorithm>

namespace gpuens {

constexpr int WORDS = VECTOR_BYTES / 8, AT_ONCE = 4 * WORDS;  // rows of a vector, and rows whose words registers hold
constexpr f64 PACKING_NS = 0.2;                               // a label

// The words of AT_ONCE rows, from row i on.
template <typename Code>
static void pack(Matrix<const Code> columns, Vector<const i64> word_of, Vector<const u64> radices, i64 i,
                 Matrix<u64> words) {
    using Digits = Native<Code, WORDS>;
    using Words = Native<u64, WORDS>;
    Words word[4] = {};
    for (i64 m = 0; m < columns.rows; ++m) {
        u64 radix = radices[m];
        Digits missing = Digits{} + (Code)std::min(radix - 1, (u64)MISSING(Code));
        for (int v = 0; v < 4; ++v) {
            Digits digits = loaded<Digits>(columns[m] + i + v * WORDS);
            word[v] = word[v] * radix + __builtin_convertvector(digits < missing ? digits : missing, Words);
        }
        if (m + 1 < columns.rows && word_of[m + 1] == word_of[m]) continue;
        std::memcpy(words[word_of[m]] + i, word, sizeof word);
        std::fill(word, word + 4, Words{});
    }
}

// Pack one row.
template <typename Code>
static void pack_one(Matrix<const Code> columns, Vector<const i64> word_of, Vector<const u64> radices, i64 i,
                     Matrix<u64> words) {
    for (i64 m = 0; m < columns.rows; ++m) {
        u64 &word = words[word_of[m]][i], radix = radices[m];
        word = std::min<u64>(columns[m][i], radix - 1) + (m > 0 && word_of[m] == word_of[m - 1] ? word * radix : 0);
    }
}

void pack_rows(Codes<Matrix> columns, Vector<const i64> word_of, Vector<const u64> radices, Matrix<u64> words) {
    std::visit([&](auto of) {
        over_ranges(words.columns, (f64)of.rows * PACKING_NS,
                    [&](i64 start, i64 stop) {
            i64 i = start;
            for (; i + AT_ONCE <= stop; i += AT_ONCE) pack(of, word_of, radices, i, words);
            for (; i < stop; ++i) pack_one(of, word_of, radices, i, words);
        });
    }, columns);
}

void find_rows(Codes<Matrix> rows, Codes<Matrix> sorted_rows, Vector<i64> places) {
    std::visit([&](auto of) {
        auto among = std::get<decltype(of)>(sorted_rows);
        over_ranges(of.rows, 64, [&](i64 start, i64 stop) {
            for (i64 i = start; i < stop; ++i)
                places[i] = place_among(of[i], 1, among.data, among.columns, 1, among.rows, of.columns);
        });
    }, rows);
}

}  // namespace gpuens
