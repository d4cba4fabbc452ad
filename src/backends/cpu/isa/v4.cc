#define BERTH_ISA_LEVEL v4
#define BERTH_ISA_ENUM Isa::kV4
#include "backends/cpu/isa/table.h"
