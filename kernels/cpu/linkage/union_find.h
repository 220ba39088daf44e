// Sets that are joined one after the other.
#pragma once

#include <numeric>
#include <vector>

#include "runtime/arrays.h"

namespace gpuens {

// Each element points towards the name of its set.
class Sets {
public:
    explicit Sets(i64 n) : parent(n) { std::iota(parent.begin(), parent.end(), (i64)0); }

    i64 name_of(i64 a) {
        while (parent[a] != a) a = parent[a] = parent[parent[a]];
        return a;
    }

    // Put the set named `other` into the set named `name`.
    void put(i64 other, i64 name) { parent[other] = name; }

private:
    std::vector<i64> parent;
};

}  // namespace gpuens
