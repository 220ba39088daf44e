// Columns of words of 64 bits, which are label rows: the distinct ones, and their lexicographic order.
//
//   words (n_words, N) -> a hash table of those seen -> distinct ones (n_words, D) -> sorted, byte by byte
//
// Rows repeat by the thousand or hardly at all. A table finds repeated rows more quickly than sorting; where nearly all
// rows differ, the table would be as long as the words, and is given up early.
#include "runtime/parallel.h"
#include "labels/primitives.h"

#include <algorithm>
#include <utility>

namespace gpuens {

namespace {

constexpr i64 FIRST_SLOTS = 4096;   // slots of the first hash table, a power of two; each next table doubles them
constexpr f64 MOST_DISTINCT = 0.9;  // share of distinct rows above which the hash table is given up
constexpr f64 SEEN = 1.0 / 16;      // share of the rows hashed before that decision
constexpr i64 AT_ONCE = 256;        // rows hashed together
constexpr i64 FEW = 32;             // rows up to which insertion sorts
constexpr i64 BETWEEN_LOOKS = 4096; // rows

// A slot holds 1 + the number of a distinct row, 0 if none, below the highest bits of the row's hash.
constexpr u64 NUMBER = (1ull << 40) - 1;

// Hash n rows from `start` on.
void hash(Matrix<const u64> words, i64 start, i64 n, u64* keys) {
    std::fill(keys, keys + n, 0);
    for (i64 word = 0; word < words.rows; ++word) {
        const u64* of_rows = words[word] + start;
        for (i64 j = 0; j < n; ++j) {
            u64 key = (keys[j] ^ of_rows[j]) * 0x9E3779B97F4A7C15ull;
            keys[j] = key ^ (key >> 32);
        }
    }
    for (i64 j = 0; j < n; ++j) {
        u64 key = keys[j] * 0xBF58476D1CE4E5B9ull;
        keys[j] = key ^ (key >> 32);
    }
}

struct Distinct {
    Matrix<const u64> words;
    std::vector<u64> table = std::vector<u64>(FIRST_SLOTS);
    Grown<i64> places;  // place of the first row of each distinct one

    bool is_full() const { return 2 * places.size() == table.size(); }

    // The number of row i among the distinct rows; a new row is appended, for which there must be room.
    i64 enter(i64 i, u64 key) {
        u64 mask = table.size() - 1, tag = key & ~NUMBER;
        for (u64 slot = key & mask;; slot = (slot + 1) & mask) {
            u64 entry = table[slot];
            if (entry == 0) {
                places.push_back(i);
                table[slot] = tag | places.size();
                return (i64)places.size() - 1;
            }
            if ((entry & ~NUMBER) == tag && equal(i, places[(entry & NUMBER) - 1])) return (i64)(entry & NUMBER) - 1;
        }
    }

    void grow() {
        table.assign(2 * table.size(), 0);
        u64 mask = table.size() - 1, key;
        for (u64 number = 0; number < places.size(); ++number) {
            hash(words, places[number], 1, &key);
            u64 slot = key & mask;
            while (table[slot]) slot = (slot + 1) & mask;
            table[slot] = (key & ~NUMBER) | (number + 1);
        }
    }

    bool equal(i64 i, i64 j) const {
        for (i64 word = 0; word < words.rows; ++word)
            if (words[word][i] != words[word][j]) return false;
        return true;
    }
};

// True if row `one` comes after row `other` by their words from number `word` on.
bool comes_after(Matrix<const u64> words, i64 word, i64 one, i64 other) {
    while (word < words.rows && words[word][one] == words[word][other]) ++word;
    return word < words.rows && words[word][one] > words[word][other];
}

struct Sorter {
    Matrix<const u64> words;
    std::vector<u64> keys, spare_keys;
    std::vector<i64> spare;

    explicit Sorter(Matrix<const u64> of)
        : words(of), keys(of.columns), spare_keys(of.columns), spare(of.columns) {}

    // Sort keys start ... stop - 1, and `order` with them, by each byte in which they differ, the lowest first.
    void by_bytes(i64 start, i64 stop, i64* order) {
        u64 *from = keys.data(), *to = spare_keys.data(), all = from[start], any = from[start];
        i64* other = spare.data();
        for (i64 i = start + 1; i < stop; ++i) {
            all &= from[i];
            any |= from[i];
        }
        for (int shift = 0; shift < 64; shift += 8) {
            if (((all ^ any) >> shift & 255) == 0) continue;
            look();
            i64 ends[256] = {}, end = start;
            for (i64 i = start; i < stop; ++i) ++ends[from[i] >> shift & 255];
            for (i64& digit : ends) end += std::exchange(digit, end);
            for (i64 i = start; i < stop; ++i) {
                i64 place = ends[from[i] >> shift & 255]++;
                to[place] = from[i];
                other[place] = order[i];
            }
            std::swap(from, to);
            std::swap(order, other);
        }
        if (from == keys.data()) return;
        std::copy(from + start, from + stop, to + start);
        std::copy(order + start, order + stop, other + start);
    }

    // Sort few rows by insertion: compare them by word number `word`, then by the words after it.
    void by_insertion(i64 word, i64* order, i64 n) {
        for (i64 i = 1; i < n; ++i) {
            i64 row = order[i], j = i;
            for (; j > 0 && comes_after(words, word, order[j - 1], row); --j) order[j] = order[j - 1];
            order[j] = row;
        }
    }
};

struct Run {
    i64 start, stop, word;  // rows start ... stop - 1 of the order are left to sort by this word
};

}  // namespace

std::optional<Grown<i64>> distinct_rows(Matrix<const u64> words, Vector<i64> row_of) {
    Distinct distinct{words};
    u64 keys[AT_ONCE];
    for (i64 i = 0, hashed = 0; i < words.columns; ++i) {
        if (i == hashed) {
            if (i % BETWEEN_LOOKS == 0) look();
            i64 n = std::min(AT_ONCE, words.columns - i);
            hash(words, i, n, keys);
            hashed += n;
        }
        if (distinct.is_full()) {
            if ((f64)i >= SEEN * (f64)words.columns && (f64)distinct.places.size() >= MOST_DISTINCT * (f64)i)
                return std::nullopt;
            distinct.grow();
        }
        row_of[i] = distinct.enter(i, keys[i % AT_ONCE]);
    }
    return std::move(distinct.places);
}

void lexicographic(Matrix<const u64> words, Vector<i64> order, Vector<bool> first) {
    for (i64 i = 0; i < order.size; ++i) order[i] = i, first[i] = i == 0;
    if (order.size < 2) return;
    Sorter sorter(words);
    u64* keys = sorter.keys.data();
    std::vector<Run> left{{0, order.size, 0}};
    while (!left.empty()) {
        auto [start, stop, word] = left.back();
        left.pop_back();
        look();
        for (i64 i = start; i < stop; ++i) keys[i] = words[word][order[i]];
        sorter.by_bytes(start, stop, order.data);
        ++word;
        for (i64 begin = start, end; begin < stop; begin = end) {
            first[begin] = true;
            for (end = begin + 1; end < stop && keys[end] == keys[begin];) ++end;
            if (end - begin == 1 || word == words.rows) continue;
            if (end - begin > FEW) {
                left.push_back({begin, end, word});
                continue;
            }
            sorter.by_insertion(word, order.data + begin, end - begin);
            for (i64 i = begin + 1; i < end; ++i) first[i] = comes_after(words, word, order[i], order[i - 1]);
        }
    }
}

}  // namespace gpuens
