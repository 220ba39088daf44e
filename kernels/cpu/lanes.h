// What a processor does with several numbers at once. The only file that asks which processor it is compiled for.
#pragma once

#include "common.h"

namespace gpuens {

// Write how many bits each of four arrays of n words shares with `own`.
void count_common(const u64* own, const u64* const others[4], i64 n, i64 counts[4]);

}  // namespace gpuens
