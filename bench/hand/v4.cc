#define BERTH_ISA_LEVEL hand_v4
#define BERTH_HAND_NAME "v4"
#include "bench/hand/loops.inc"
