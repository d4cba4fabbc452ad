#define BERTH_ISA_LEVEL v4
#include "backends/cpu/isa/folds.h"
