#pragma once

namespace gpuens {

// Whether this processor, and its system, run code of a level: "v2", "v3" or "v4" of x86-64.
bool supported(const char* level);

}  // namespace gpuens
