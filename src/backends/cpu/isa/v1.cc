#define BERTH_ISA_LEVEL v1
#define BERTH_ISA_ENUM Isa::kV1
#include "backends/cpu/isa/table.h"
