// Makes a gtest of every (mode, case, dtype).

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "conformance/device_run.h"
#include "conformance/modes.h"

namespace berth::conformance {

bool applies(Mode mode, const Case& c, DType dtype) {
  const OpDef& op = c.def();
  switch (mode) {
    case Mode::kTest:
      return true;
    case Mode::kGrad:
    case Mode::kGrad2: {
      if (!op.differentiable() || !is_inexact(dtype)) return false;
      if (mode == Mode::kGrad2 && dtype != float64 && dtype != complex128) {
        return false;
      }
      for (const Input& i : c.inputs) {
        const DType d = i.dtype == DType::kInvalid ? dtype : i.dtype;
        if (is_inexact(d) && i.no_gradient.empty()) return true;
      }
      return false;
    }
    case Mode::kSplit:
      return !c.perf && can_split(c, dtype);
    case Mode::kPerf:
      return c.perf;
  }
  return false;
}

namespace {

using Check = void (*)(const Case& c, DType dtype);

class CaseTest final : public testing::Test {
 public:
  CaseTest(Mode mode, Check check, const Case* c, DType dtype)
      : mode_(mode), check_(check), case_(c), dtype_(dtype) {}

  void TestBody() override {
    const auto skipped = case_->skipped.find(mode_);
    if (skipped != case_->skipped.end()) GTEST_SKIP() << skipped->second;
    const bool elsewhere =
        case_->host_only && device_under_test().type() != "CPU";
    if (elsewhere || accelerator_lacks(case_->def())) {
      GTEST_SKIP() << "a library of host devices alone has a kernel";
    }
    check_(*case_, dtype_);
  }

 private:
  Mode mode_;
  Check check_;
  const Case* case_;
  DType dtype_;
};

void register_mode(Mode mode, const char* suite, Check check) {
  for (const Case& c : all_cases().all()) {
    for (const DType dtype : dtypes_of(c)) {
      if (c.perf || !applies(mode, c, dtype)) continue;
      const std::string name = fmt::format("{}/{}", c.name(), name_of(dtype));
      testing::RegisterTest(
          suite, name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
          [mode, check, &c, dtype]() -> testing::Test* {
            // gtest owns it.
            return std::make_unique<CaseTest>(mode, check, &c, dtype).release();
          });
    }
  }
}

}  // namespace

void register_modes() {
  register_mode(Mode::kTest, "test", &test_case);
  register_mode(Mode::kGrad, "grad", &grad_case);
  register_mode(Mode::kGrad2, "grad2", &grad2_case);
  register_mode(Mode::kSplit, "split", &split_case);
  register_mode(Mode::kSplit, "slices", &slices_case);
}

}  // namespace berth::conformance
