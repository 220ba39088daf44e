// The text that both devices share (kernels/common), for the CPU.
#pragma once

namespace gpuens {

#include "../common/codes.h"
#include "../common/coupled.h"
#include "../common/distances.h"
#include "../common/histograms.h"
#include "../common/mapping.h"
#include "../common/order.h"
#include "../common/rows.h"

}  // namespace gpuens
