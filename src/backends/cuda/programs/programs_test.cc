// Every program of the kernels compiles for NVIDIA's cards, without warnings,
// and what came of it keeps the rules: products and sums are not fused but
// where the text says so, denormal numbers stay, no register is spilled.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "backends/cuda/nvrtc.h"
#include "backends/cuda/programs/collected.h"

namespace berth::cuda {
namespace {

// "" when a program keeps the rules, else what it breaks.
class Rules {
 public:
  Rules(const Nvrtc& nvrtc, int architecture)
      : nvrtc_(nvrtc), architecture_(architecture) {}

  std::string broken(const std::string& text,
                     const CollectedProgram& program) const {
    const std::string key = key_of(text, program);
    if (cache_.find(key)) return "";
    const Compiled c = nvrtc_.compile(text, architecture_, options());
    std::string why = of_compiled(c, program);
    if (why.empty()) why = of_fused(text);
    if (why.empty()) cache_.keep(key, "good");
    return why;
  }

 private:
  static std::vector<std::string> options() {
    return {"--ptxas-options=--warn-on-spills"};
  }

  std::string key_of(const std::string& text,
                     const CollectedProgram& program) const {
    // The rules' own version comes first.
    std::string key =
        fmt::format("rules 1 {} {}", nvrtc_.description(), architecture_);
    for (const std::string& k : program.kernels) key += " " + k;
    return key + "\n" + text;
  }

  static std::string of_compiled(const Compiled& c,
                                 const CollectedProgram& program) {
    if (!c.good || !c.log.empty()) return c.log;
    if (c.ptx.find(".ftz") != std::string::npos) return "denormals: .ftz";
    for (const std::string& k : program.kernels) {
      if (c.ptx.find(".entry " + k + "(") == std::string::npos) {
        return "there is no kernel " + k;
      }
    }
    return "";
  }

  // Where what says MADD does not fuse, nothing is fused. Functions of the
  // compiler's own do so inside; a program that calls some is left alone.
  std::string of_fused(const std::string& text) const {
    static const std::regex madd(
        "#define (F32_MADD|F64_MADD)\\(a, b, c\\) __fmaf?_rn\\(a, b, c\\)");
    const std::string apart =
        std::regex_replace(text, madd, "#define $1(a, b, c) ((a) * (b) + (c))");
    if (apart == text) return "the dialect has no F32_MADD that is known here";
    const Compiled c = nvrtc_.compile(apart, architecture_);
    const size_t at = c.ptx.find("fma.rn");
    if (!c.good) return c.log;
    if (at == std::string::npos || calls_functions(text)) return "";
    return "fused where it does not say F32_MADD: " + c.ptx.substr(at, 60);
  }

  static bool calls_functions(const std::string& text) {
    static const std::regex calls(
        "\\b(lgamma|tgamma|digamma|erf|erfc|erfinv|erfcinv|exp|exp2|expm1|log|"
        "log2|log1p|log10|sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|"
        "asinh|acosh|atanh|pow|fmod|remainder|hypot|cbrt)f?\\(");
    return std::regex_search(text, calls);
  }

  const Nvrtc& nvrtc_;
  const int architecture_;
  const CubinCache cache_{CubinCache::default_folder()};
};

class Programs : public testing::TestWithParam<int> {};

TEST(ProgramsOfAllKernels, ArePrepared) {
  for (const std::string& failure : preparation_failures()) {
    ADD_FAILURE() << failure;
  }
  size_t kernels = 0;
  for (const auto& [text, program] : collected_programs()) {
    kernels += program.kernels.size();
  }
  fmt::print("{} programs, {} kernels\n", collected_programs().size(), kernels);
}

TEST_P(Programs, CompileAndKeepTheRules) {
  std::string reason;
  const Nvrtc* nvrtc = Nvrtc::find(&reason);
  if (nvrtc == nullptr) GTEST_SKIP() << reason;
  const Rules rules(*nvrtc, GetParam());
  for (const auto& [text, program] : collected_programs()) {
    const std::string why = rules.broken(text, program);
    EXPECT_EQ(why, "") << program.first;
  }
}

INSTANTIATE_TEST_SUITE_P(Sm80, Programs, testing::Values(80));
INSTANTIATE_TEST_SUITE_P(Sm90, Programs, testing::Values(90));
INSTANTIATE_TEST_SUITE_P(Sm100, Programs, testing::Values(100));

}  // namespace
}  // namespace berth::cuda
