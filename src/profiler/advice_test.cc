// Slow programs get the advice that helps, with their line.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/fresh_process_testing.h"
#include "profiler/slow_programs_testing.h"

namespace berth::profiler {
namespace {

using fresh_process::check;

void gets_advice(const char* name) {
  for (const slow_programs::SlowProgram& program : slow_programs::all()) {
    if (std::string(program.name) != name) continue;
    slow_programs::use_devices(program);
    const Analysis a = analyze(program.run(false));
    const Advice* v = slow_programs::advice_of(a, program);
    check(v != nullptr, fmt::format("advice on {}", program.advice));
    check(v->gain_us > 0 && v->share > 0.03, "gain");
    const std::string line =
        program.line == 0
            ? "slow_programs_testing.h:"
            : fmt::format("slow_programs_testing.h:{}", program.line);
    check(v->line.find(line) != std::string::npos, v->line + " is " + line);
  }
}
TEST(Advice, OnSmallPrefetch) { IN_A_FRESH_PROCESS(gets_advice("prefetch")); }
TEST(Advice, OnAReductionElsewhere) {
  IN_A_FRESH_PROCESS(gets_advice("reduction"));
}
TEST(Advice, OnUnequalReplicas) { IN_A_FRESH_PROCESS(gets_advice("shares")); }
TEST(Advice, OnTinyOps) { IN_A_FRESH_PROCESS(gets_advice("tiny")); }

}  // namespace
}  // namespace berth::profiler
