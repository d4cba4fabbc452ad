#define BERTH_ISA_LEVEL v1
#include "backends/cpu/isa/folds.h"
