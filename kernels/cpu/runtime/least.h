// The least of many numbers, computed vector by vector, and its first place.
//
// Where the last vector would end behind the last number, it begins earlier, and has some numbers twice.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "runtime/lanes.h"

namespace gpuens {

template <int WIDE>
class Least {
    using Pack = Native<f64, WIDE>;
    using Places = Native<i64, WIDE>;

public:
    static i64 n_vectors(i64 n) { return (n + WIDE - 1) / WIDE; }
    static i64 begin(i64 vector, i64 n) { return std::min(vector * WIDE, n - WIDE); }

    [[gnu::always_inline]] inline void add(Pack numbers, i64 begin) {
        Places is_smaller = numbers < smallest;
        smallest = is_smaller ? numbers : smallest;
        place = is_smaller ? lanes() + begin : place;
    }

    void write(f64& number, i64& at) const {
        std::array<f64, WIDE> numbers;
        std::array<i64, WIDE> places;
        std::memcpy(numbers.data(), &smallest, sizeof smallest);
        std::memcpy(places.data(), &place, sizeof place);
        for (int half = WIDE / 2; half > 0; half /= 2)
            for (int lane = 0; lane < half; ++lane) {
                f64 number_a = numbers[lane], number_b = numbers[lane + half];
                bool is_smaller = number_b < number_a || (number_b == number_a && places[lane + half] < places[lane]);
                numbers[lane] = is_smaller ? number_b : number_a;
                places[lane] = is_smaller ? places[lane + half] : places[lane];
            }
        number = numbers[0], at = places[0];
    }

private:
    static Places lanes() {
        Places numbers = {};
        for (int lane = 0; lane < WIDE; ++lane) numbers[lane] = lane;
        return numbers;
    }

    Pack smallest = Pack{} + std::numeric_limits<f64>::infinity();
    Places place = lanes();
};

// Call `work.template operator()<N>(first)` for vectors first ... first + N - 1, as many as stay in registers together.
template <typename Work>
[[gnu::always_inline]] inline void in_groups(i64 n_vectors, Work&& work) {
    constexpr int AT_ONCE = 4;
    i64 v = 0;
    for (; v + AT_ONCE <= n_vectors; v += AT_ONCE) work.template operator()<AT_ONCE>(v);
    if (i64 left = n_vectors - v; left == 3) work.template operator()<3>(v);
    else if (left == 2) work.template operator()<2>(v);
    else if (left == 1) work.template operator()<1>(v);
}

// Call `work.template operator()<WIDE>()` for the widest vectors that n numbers fill.
template <typename Work>
void by_width(i64 n, Work&& work) {
    constexpr int WIDEST = VECTOR_BYTES / sizeof(f64);
    if constexpr (WIDEST >= 8)
        if (n >= 8) return work.template operator()<8>();
    if constexpr (WIDEST >= 4)
        if (n >= 4) return work.template operator()<4>();
    if (n >= 2) return work.template operator()<2>();
    work.template operator()<1>();
}

}  // namespace gpuens
