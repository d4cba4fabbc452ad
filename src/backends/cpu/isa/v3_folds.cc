#define BERTH_ISA_LEVEL v3
#include "backends/cpu/isa/folds.h"
