#define BERTH_ISA_LEVEL hand_v3
#define BERTH_HAND_NAME "v3"
#include "bench/hand/loops.inc"
