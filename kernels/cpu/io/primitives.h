// Text tables, as Python calls it (bindings.cpp).
#pragma once

#include <tuple>

#include "runtime/arrays.h"

namespace gpuens {

// fields.cpp. The first row with a wrong number of fields: its line, its number of fields, the rows before it.
std::tuple<i64, i64, i64> find_irregular_row(Vector<const u8> text, u8 separator, i64 n_first, i64 n_fields);

}  // namespace gpuens
