#define BERTH_ISA_LEVEL v3
#define BERTH_ISA_ENUM Isa::kV3
#include "backends/cpu/isa/table.h"
