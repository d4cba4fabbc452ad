// Every program of the kernels compiles for NVIDIA's cards, without warnings,
// and what came of it keeps the rules: products and sums are not fused but
// where the text says so, denormal numbers are numbers, registers suffice.
//
// Half of the programs for one of three architectures, by BERTH_SEED, or all
// with BERTH_WHOLE; arithmetic, which is of the text, once.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <sstream>

#include "backends/cuda/nvrtc.h"
#include "conformance/gpu_programs/collected.h"

namespace berth::conformance {
namespace {

using cuda::Compiled;
using cuda::CubinCache;
using cuda::Nvrtc;

// What a thread of a group of 256 may use.
constexpr int kMostRegisters = 255;
// The one whose arithmetic is looked at.
constexpr int kArithmeticOf = 90;

// What ptxas says of a kernel that has too few registers; "": none has.
std::string too_few_registers(const std::string& log) {
  static const std::regex function("Function properties for (\\w+)");
  static const std::regex spills("([1-9][0-9]*) bytes spill stores");
  static const std::regex used("Used ([0-9]+) registers");
  std::string name, spilled;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    std::smatch m;
    if (std::regex_search(line, m, function)) {
      name = m[1], spilled.clear();
    } else if (std::regex_search(line, m, spills)) {
      spilled = m[1];
    } else if (std::regex_search(line, m, used)) {
      // With registers left it is for calls, as of the division of whole
      // numbers.
      if (spilled.empty() || std::stoi(m[1]) < kMostRegisters - 8) continue;
      return fmt::format("{} spills {} bytes", name, spilled);
    }
  }
  return "";
}

// The log without what ptxas tells of every kernel.
std::string warnings_of(const std::string& log) {
  std::istringstream lines(log);
  std::string warnings;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("ptxas info") || line.starts_with("ptxas   "))
      continue;
    warnings += line + "\n";
  }
  return warnings;
}

// Functions of the compiler's own, which fuse inside.
constexpr const char* kFunctions[] = {
    "lgamma", "tgamma", "erf",   "erfc",  "erfinv", "erfcinv", "exp",  "exp2",
    "exp10",  "expm1",  "log",   "log2",  "log1p",  "log10",   "sin",  "cos",
    "tan",    "sincos", "asin",  "acos",  "atan",   "atan2",   "sinh", "cosh",
    "tanh",   "asinh",  "acosh", "atanh", "pow",    "fmod",    "cbrt", "hypot"};

// The program without those, in which MADD does not fuse.
std::string unfused(const std::string& text) {
  static const std::regex madd(
      "#define (F32_MADD|F64_MADD)\\(a, b, c\\) __fmaf?_rn\\(a, b, c\\)");
  std::string words;
  for (const std::string f : kFunctions) {
    words += fmt::format(
        "#define {0}(...) ((0, __VA_ARGS__))\n"
        "#define {0}f(...) ((0, __VA_ARGS__))\n",
        f);
  }
  return words + std::regex_replace(text, madd,
                                    "#define $1(a, b, c) ((a) * (b) + (c))");
}

class Rules {
 public:
  Rules(const Nvrtc& nvrtc, int architecture)
      : nvrtc_(nvrtc), architecture_(architecture) {}

  // What a program breaks; "": nothing.
  std::string broken(const std::string& text,
                     const CollectedProgram& program) const {
    const std::string key = key_of(text, program);
    if (cache_.find(key)) return "";
    std::string why = of_code(text, program);
    if (why.empty() && architecture_ == kArithmeticOf) {
      why = of_arithmetic(text);
    }
    if (why.empty()) cache_.keep(key, "good");
    return why;
  }

 private:
  std::string key_of(const std::string& text,
                     const CollectedProgram& program) const {
    // The rules' own version comes first.
    std::string key = "rules 4";
    for (const std::string& k : program.kernels) key += " " + k;
    return key + "\n" + nvrtc_.key_of(text, architecture_);
  }

  std::string of_code(const std::string& text,
                      const CollectedProgram& program) const {
    const Compiled c =
        nvrtc_.compile(text, architecture_, {"--ptxas-options=-v"});
    if (!c.good) return c.log;
    std::string why = warnings_of(c.log);
    if (why.empty()) why = too_few_registers(c.log);
    for (const std::string& k : program.kernels) {
      if (c.ptx.find(".entry " + k + "(") == std::string::npos) {
        why += "\nthere is no kernel " + k;
      }
    }
    return why;
  }

  std::string of_arithmetic(const std::string& text) const {
    const Compiled c = nvrtc_.ptx(unfused(text), architecture_);
    if (!c.good) return c.log;
    size_t at = c.ptx.find("fma.rn");
    if (at != std::string::npos) {
      return "fused where it does not say F32_MADD: " + c.ptx.substr(at, 60);
    }
    at = c.ptx.find(".ftz");
    if (at == std::string::npos) return "";
    return "denormal numbers count as 0: " + c.ptx.substr(at - 20, 60);
  }

  const Nvrtc& nvrtc_;
  const int architecture_;
  const CubinCache cache_{CubinCache::default_folder()};
};

// The op whose case asked for a program first.
std::string kind_of(const CollectedProgram& program) {
  return program.first.substr(0, program.first.find('/'));
}

// What is compiled as one: programs that may be joined
// (gpu::KernelSource::joins) with others of the same beginning, as a card does
// it, since half of their time is the beginning's; each other program alone.
std::vector<std::pair<std::string, CollectedProgram>> compiled_as_one() {
  constexpr size_t kMostKernels = 16;
  static const std::regex joins("KERNEL\\(\\w+, \\w+_[0-9a-f]{16}_");
  std::vector<std::pair<std::string, CollectedProgram>> all;
  std::map<std::string, size_t> open;  // beginning -> its last in `all`
  for (const auto& [text, program] : collected_programs()) {
    const size_t at = text.rfind("\nKERNEL(");
    if (at == std::string::npos || program.kernels.size() != 1 ||
        !std::regex_search(text.begin() + static_cast<ptrdiff_t>(at) + 1,
                           text.end(), joins,
                           std::regex_constants::match_continuous)) {
      all.emplace_back(text, program);
      continue;
    }
    const auto [found, made] = open.emplace(text.substr(0, at), all.size());
    if (!made && all[found->second].second.kernels.size() == kMostKernels) {
      found->second = all.size();
    }
    if (found->second == all.size()) {
      all.emplace_back(text, program);
      continue;
    }
    auto& [joined, joined_program] = all[found->second];
    joined += text.substr(at);
    joined_program.kernels.merge(std::set(program.kernels));
    joined_program.first += ", " + program.first;
  }
  return all;
}

// A part of the programs.
struct Part {
  int architecture;
  size_t first = 0, step = 1;  // each so many from there on
};

class Programs : public testing::TestWithParam<Part> {};

TEST(ProgramsOfAllKernels, ArePrepared) {
  for (const std::string& failure : preparation_failures()) {
    ADD_FAILURE() << failure;
  }
  size_t kernels = 0;
  std::set<std::string> kinds;
  for (const auto& [text, program] : collected_programs()) {
    kernels += program.kernels.size();
    kinds.insert(kind_of(program));
  }
  EXPECT_GT(kernels, 0u);
  fmt::print("{} programs of {} kinds, {} kernels\n",
             collected_programs().size(), kinds.size(), kernels);
}

// Programs of elementwise kernels may be joined (gpu::KernelSource::joins): the
// hash in a kernel's name belongs to one text.
TEST(ProgramsOfAllKernels, ThatMayBeJoinedHaveKernelsOfDifferentNames) {
  static const std::regex hashed("_[0-9a-f]{16}_");
  std::map<std::string, std::string> text_with;
  for (const auto& [text, program] : collected_programs()) {
    for (const std::string& kernel : program.kernels) {
      if (!std::regex_search(kernel, hashed)) continue;
      EXPECT_TRUE(text_with.emplace(kernel, text).second) << kernel;
    }
  }
  EXPECT_GT(text_with.size(), 300u);
  fmt::print("{} kernels\n", text_with.size());
}

TEST(ProgramsOfAllKernels, AreAllInWhatIsCompiled) {
  std::map<std::string, size_t> left, found;
  for (const auto& [text, program] : collected_programs()) {
    for (const std::string& kernel : program.kernels) ++left[kernel];
  }
  const auto all = compiled_as_one();
  for (const auto& [text, program] : all) {
    for (const std::string& kernel : program.kernels) ++found[kernel];
  }
  EXPECT_EQ(left, found);
  EXPECT_LT(all.size(), collected_programs().size());
  fmt::print("{} programs as {}\n", collected_programs().size(), all.size());
}

// Whether a part is among those of this run.
bool has_its_turn(const Part& part) {
  if (std::getenv("BERTH_WHOLE") != nullptr) return true;
  const char* text = std::getenv("BERTH_SEED");
  const size_t seed = text == nullptr ? 0 : std::strtoul(text, nullptr, 10);
  constexpr int kArchitectures[] = {90, 80, 100};
  return part.architecture == kArchitectures[seed % 3] &&
         (part.first + seed / 3) % 2 == 0;
}

TEST_P(Programs, CompileAndKeepTheRules) {
  if (!has_its_turn(GetParam())) {
    GTEST_SKIP() << "another BERTH_SEED compiles these programs";
  }
  std::string reason;
  const Nvrtc* nvrtc = Nvrtc::find(&reason);
  if (nvrtc == nullptr) GTEST_SKIP() << reason;
  const Part part = GetParam();
  const Rules rules(*nvrtc, part.architecture);
  size_t i = 0;
  for (const auto& [text, program] : compiled_as_one()) {
    if (i++ % part.step != part.first) continue;
    const std::string why = rules.broken(text, program);
    if (!why.empty()) ADD_FAILURE() << program.first << ": " << why;
  }
}

#define PROGRAMS(name, ...) \
  INSTANTIATE_TEST_SUITE_P(name, Programs, testing::Values(Part{__VA_ARGS__}))
PROGRAMS(Sm80a, 80, 0, 4);
PROGRAMS(Sm80b, 80, 1, 4);
PROGRAMS(Sm80c, 80, 2, 4);
PROGRAMS(Sm80d, 80, 3, 4);
PROGRAMS(Sm90a, 90, 0, 8);
PROGRAMS(Sm90b, 90, 1, 8);
PROGRAMS(Sm90c, 90, 2, 8);
PROGRAMS(Sm90d, 90, 3, 8);
PROGRAMS(Sm90e, 90, 4, 8);
PROGRAMS(Sm90f, 90, 5, 8);
PROGRAMS(Sm90g, 90, 6, 8);
PROGRAMS(Sm90h, 90, 7, 8);
PROGRAMS(Sm100a, 100, 0, 4);
PROGRAMS(Sm100b, 100, 1, 4);
PROGRAMS(Sm100c, 100, 2, 4);
PROGRAMS(Sm100d, 100, 3, 4);
#undef PROGRAMS

}  // namespace
}  // namespace berth::conformance
