#include "backends/cpu/loops.h"
#include "bench/hand/hand.h"

namespace berth::cpu {
namespace hand_v1 {
const berth_bench::HandLoops& hand_table();
}
#if defined(__x86_64__)
namespace hand_v3 {
const berth_bench::HandLoops& hand_table();
}
namespace hand_v4 {
const berth_bench::HandLoops& hand_table();
}
#endif
}  // namespace berth::cpu

namespace berth_bench {

const HandLoops& hand_loops() {
  namespace cpu = berth::cpu;
#if defined(__x86_64__)
  if (cpu::loops().isa == cpu::Isa::kV4) return cpu::hand_v4::hand_table();
  if (cpu::loops().isa == cpu::Isa::kV3) return cpu::hand_v3::hand_table();
#endif
  return cpu::hand_v1::hand_table();
}

}  // namespace berth_bench
