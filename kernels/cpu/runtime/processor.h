#pragma once

#include <string_view>

namespace gpuens {

// True if this processor and its system run code of a level: "v2", "v3" or "v4" of x86-64, or "" of other processors.
bool supported(std::string_view level);

}  // namespace gpuens
