// The text that both devices share (kernels/common), for the CPU.
#pragma once

#include <cmath>

namespace gpuens {

#include "../../common/codes.h"
#include "../../common/coupled.h"
#include "../../common/distances.h"
#include "../../common/exponentials.h"
#include "../../common/histograms.h"
#include "../../common/lists.h"
#include "../../common/mapping.h"
#include "../../common/mixture.h"
#include "../../common/order.h"
#include "../../common/potts.h"
#include "../../common/rows.h"
#include "../../common/shortlists.h"
#include "../../common/squares.h"
#include "../../common/tree.h"

}  // namespace gpuens
