#include "backends/cpu/loops.h"

#include <fmt/format.h>

#include <string_view>

#include "base/environment.h"
#include "berth/errors.h"

namespace berth::cpu {

namespace v1 {
const Loops& table();
}
#if defined(__x86_64__)
namespace v3 {
const Loops& table();
}
namespace v4 {
const Loops& table();
}
#endif

namespace {

bool has(Isa isa) {
#if defined(__x86_64__)
  const bool v3 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") &&
                  __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") &&
                  __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (isa == Isa::kV3) return v3;
  if (isa == Isa::kV4) return v4;
#endif
  return isa == Isa::kV1;
}

}  // namespace

const char* isa_name(Isa isa) {
  return isa == Isa::kV1 ? "v1" : isa == Isa::kV3 ? "v3" : "v4";
}

const Loops* loops_for(Isa isa) {
  if (!has(isa)) return nullptr;
#if defined(__x86_64__)
  if (isa == Isa::kV4) return &v4::table();
  if (isa == Isa::kV3) return &v3::table();
#endif
  return &v1::table();
}

const Loops& select_loops(const char* forced) {
  if (forced == nullptr || *forced == '\0') {
    for (Isa isa : {Isa::kV4, Isa::kV3}) {
      if (const Loops* found = loops_for(isa)) return *found;
    }
    return *loops_for(Isa::kV1);
  }
  const std::string_view name = forced;
  Isa isa = Isa::kV1;
  if (name == "v3") {
    isa = Isa::kV3;
  } else if (name == "v4") {
    isa = Isa::kV4;
  } else if (name != "v1" && name != "v2") {
    throw errors::InvalidArgument(fmt::format(
        "BERTH_ISA is \"{}\"; expected v1, v2, v3 or v4 (x86-64 levels), or "
        "unset it to use the best this processor has",
        name));
  }
  if (const Loops* found = loops_for(isa)) return *found;
  throw errors::InvalidArgument(fmt::format(
      "BERTH_ISA is \"{}\" but this processor has only up to {}; choose that "
      "or unset it",
      name, has(Isa::kV3) ? "v3" : "v2"));
}

const Loops& loops() {
  static const Loops& chosen = select_loops(environment("BERTH_ISA").c_str());
  return chosen;
}

bool isa_is_forced() {
  static const bool forced = !environment("BERTH_ISA").empty();
  return forced;
}

void merge_moments(int64_t count_a, float* mean_a, float* square_sum_a,
                   int64_t count_b, const float* mean_b,
                   const float* square_sum_b, int64_t channels) {
  if (count_b == 0) return;
  const float total = static_cast<float>(count_a + count_b);
  const float share = static_cast<float>(count_b) / total;
  const float weight = static_cast<float>(count_a) * share;
  for (int64_t c = 0; c < channels; ++c) {
    const float delta = mean_b[c] - mean_a[c];
    // When the left side is empty, its values may be uninitialised.
    mean_a[c] = count_a == 0 ? mean_b[c] : mean_a[c] + delta * share;
    square_sum_a[c] = count_a == 0 ? square_sum_b[c]
                                   : square_sum_a[c] + square_sum_b[c] +
                                         delta * delta * weight;
  }
}

}  // namespace berth::cpu
