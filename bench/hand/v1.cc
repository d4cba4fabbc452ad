#define BERTH_ISA_LEVEL hand_v1
#define BERTH_HAND_NAME "v1"
#include "bench/hand/loops.inc"
