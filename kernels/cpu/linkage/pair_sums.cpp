#include "linkage/pair_sums.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace gpuens {

PairSums::PairSums(Matrix<u16> units_, f64 slack, const std::vector<i64>& size)
    : units(units_), loss(slack), first(size.size(), -1), second(size.size(), -1), worth(units.columns),
      follows(size.size(), -1), last(size.size()), n_members(size.size(), 1) {
    std::copy(size.begin(), size.end(), worth.begin());
    std::iota(last.begin(), last.end(), 0);
}

// The sum of a union and a column; of an initial region, the mean over its objects.
f64 PairSums::at(i64 p, i64 column) const {
    if (!is_union(p)) return (f64)units[p][column];
    return (f64)(column < half() ? wide(first[p])[column] : wide(second[p])[column - half()]);
}

f64 PairSums::upper(i64 p, i64 q, i64 size_p, i64 size_q) const {
    if (n_members[p] > n_members[q]) {
        std::swap(p, q);
        std::swap(size_p, size_q);
    }
    f64 total = 0.0;
    for (i64 column = p; column >= 0; column = follows[column]) total += (f64)worth[column] * at(q, column);
    if (is_union(q)) total /= (f64)size_q;
    return total / (f64)size_p * (1.0 + EPS * terms(p, q));
}

PairSums::Columns PairSums::columns_of(const std::vector<i64>& places, const std::vector<i64>& size) const {
    Columns of;
    of.per_object.assign(units.columns, 0.0f);
    for (std::size_t i = 0; i < places.size(); ++i) {
        i64 p = places[i];
        of.per_object[p] = (f32)((1.0 + EPS * (f64)n_members[p]) / (f64)size[i]);
        if (n_members[p] == 1) continue;
        for (i64 column = p; column >= 0; column = follows[column]) of.columns.push_back((u32)column);
        of.unions.push_back(p);
        of.ends.push_back((i64)of.columns.size());
    }
    return of;
}

// Functions in place of a template: a template argument would lose the attribute that Wide may alias other types.

static void weigh(const u16* sums, const f32* worth, i64 n, f32* uppers) {
#pragma GCC ivdep
    for (i64 q = 0; q < n; ++q) uppers[q] = worth[q] * (f32)sums[q];
}

static void weigh(const PairSums::Wide* sums, const f32* worth, i64 n, f32* uppers) {
#pragma GCC ivdep
    for (i64 q = 0; q < n; ++q) uppers[q] = worth[q] * sums[q];
}

static void add(const PairSums::Wide* sums, i64 n, PairSums::Wide* to) {
#pragma GCC ivdep
    for (i64 c = 0; c < n; ++c) to[c] += sums[c];
}

static void add_weighed(const u16* sums, f32 worth, i64 n, PairSums::Wide* to) {
#pragma GCC ivdep
    for (i64 c = 0; c < n; ++c) to[c] += worth * (f32)sums[c];
}

void PairSums::bound_all(i64 p, i64 size, const Columns& with, f32* uppers) const {
    f64 factor = 1.0 + EPS * (f64)(n_members[p] + OTHERS);
    if (is_union(p)) {
        factor /= (f64)size;
        weigh(wide(first[p]), worth.data(), half(), uppers);
        weigh(wide(second[p]), worth.data() + half(), half(), uppers + half());
    } else {
        weigh(units[p], worth.data(), units.columns, uppers);
    }
    const u32* column = with.columns.data();
    for (std::size_t i = 0; i < with.unions.size(); ++i) {
        const u32* end = with.columns.data() + with.ends[i];
        f32 total = 0.0f, other = 0.0f;  // two sums, so that consecutive additions are independent
        for (; column + 1 < end; column += 2) {
            total += uppers[column[0]];
            other += uppers[column[1]];
        }
        if (column < end) total += uppers[*column++];
        uppers[with.unions[i]] = total + other;  // a union's own column is the first of its columns
    }
    const f32* per_object = with.per_object.data();
    f32 each = (f32)factor;
#pragma GCC ivdep
    for (i64 q = 0; q < units.columns; ++q) uppers[q] *= per_object[q] * each;
    uppers[p] = 0.0f;
}

void PairSums::unite(i64 p, i64 q) {
    i64 n = half();
    if (!is_union(p) && !is_union(q)) {
        std::vector<f32> sum_row(units.columns);
        add_weighed(units[p], worth[p], units.columns, sum_row.data());
        add_weighed(units[q], worth[q], units.columns, sum_row.data());
        first[p] = p;
        second[p] = q;
        std::memcpy(units[p], sum_row.data(), n * sizeof(f32));
        std::memcpy(units[q], sum_row.data() + n, n * sizeof(f32));
    } else if (!is_union(p) || !is_union(q)) {
        i64 alone = is_union(p) ? q : p, with = is_union(p) ? p : q;
        for (auto [row, of] : {std::pair(first[with], units[alone]), std::pair(second[with], units[alone] + n)})
            add_weighed(of, worth[alone], n, wide(row));
        first[p] = first[with];
        second[p] = second[with];
    } else {
        add(wide(first[q]), n, wide(first[p]));
        add(wide(second[q]), n, wide(second[p]));
    }
    follows[last[p]] = q;
    last[p] = last[q];
    n_members[p] += n_members[q];
}

}  // namespace gpuens
