// The nearest objects so far of one object, nearest first; of equally near ones the smallest index comes first.
#pragma once

#include "runtime/common.h"

namespace gpuens {

struct NearestList {
    i64* ids;
    f64* squares;  // squared distances
    i64 room, listed = 0;

    bool full() const { return listed == room; }
    f64 farthest() const { return squares[room - 1]; }  // requires a full list

    // Insert an object; the last one of a full list leaves.
    void offer(i64 id, f64 square) {
        auto after = [&](i64 at) { return square < squares[at] || (square == squares[at] && id < ids[at]); };
        if (full() && !after(room - 1)) return;
        i64 at = full() ? room - 1 : listed++;
        for (; at > 0 && after(at - 1); --at) {
            ids[at] = ids[at - 1];
            squares[at] = squares[at - 1];
        }
        ids[at] = id;
        squares[at] = square;
    }
};

}  // namespace gpuens
