// Advice against what following it gives: --model NAME, a slow program of
// profiler/slow_programs_testing.h. Simulated devices with a clock of their own
// make two of them exact.

#include "bench_common.h"
#include "profiler/slow_programs_testing.h"

using namespace berth;
using namespace berth_bench;

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  for (const auto& program : profiler::slow_programs::all()) {
    if (args.model != program.name) continue;
    profiler::slow_programs::use_devices(program);
    const profiler::Timeline slow = program.run(false);
    const profiler::Analysis before = profiler::analyze(slow);
    const profiler::Timeline followed = program.run(true);
    const profiler::Analysis after = profiler::analyze(followed);
    const auto* v = profiler::slow_programs::advice_of(before, program);
    const double gain = before.step_us - after.step_us;
    Line("advice", args.cores)
        .add("model", program.name)
        .add("step_us", before.step_us)
        .add("predicted_us", v == nullptr ? 0 : v->gain_us)
        .add("gain_us", gain)
        .add("times", v == nullptr ? 0 : v->gain_us / gain)
        .print();
  }
}
