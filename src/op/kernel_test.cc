// Kernel tables: order of candidates, dtypes, refusals.

#include "op/kernel.h"

#include <gtest/gtest.h>

#include "berth/errors.h"
#include "device/device_manager.h"

namespace berth {
namespace {

const OpDef& op() {
  static const OpDef& o = []() -> const OpDef& {
    OpRegistry::get()
        .op("TestKernelOp")
        .input("x")
        .output("y")
        .infer(&infer_same_as_0)
        .not_differentiable();
    return op_named("TestKernelOp");
  }();
  return o;
}

void first(const KernelCall&) {}
void second(const KernelCall&) {}

struct State final : Prepared {
  void run(const KernelCall&) const override {}
};

std::unique_ptr<Prepared> accept(const PrepareArgs&) {
  return std::make_unique<State>();
}
std::unique_ptr<Prepared> refuse(const PrepareArgs&) { return nullptr; }

BoundKernel bind(const KernelTable& table, DType dtype) {
  const Shape shape{2};
  const SpecView in{dtype, &shape};
  const OutSpec out{dtype, shape};
  return bind_kernel(table, {&op(), nullptr, {&in, 1}, {&out, 1}});
}

TEST(KernelTable, TheFastPathIsTheFirstCandidateOfEachDtype) {
  KernelTable t;
  t.direct(op().name(), kFloatingTypes, &first, "first");
  t.direct(op().name(), kNumberTypes, &second, "second");
  EXPECT_EQ(t.fast(op().id(), float32), &first);
  EXPECT_EQ(t.fast(op().id(), int32), &second);
  EXPECT_EQ(t.fast(op().id(), bool_), nullptr);
  EXPECT_EQ(t.fast(0xffff, float32), nullptr);
  EXPECT_EQ(bind(t, float32).direct, &first);
  EXPECT_EQ(bind(t, int32).direct, &second);
  EXPECT_EQ(bind(t, bool_).def, nullptr);
  EXPECT_TRUE(t.supports(op(), int64));
  EXPECT_FALSE(t.supports(op(), bool_));
}

TEST(KernelTable, APreparedCandidateInFrontClosesTheFastPath) {
  KernelTable t;
  t.prepared(op().name(), dtype_bit(float32), &refuse, "choosy");
  t.direct(op().name(), kNumberTypes, &first, "first");
  EXPECT_EQ(t.fast(op().id(), float32), nullptr);
  EXPECT_EQ(t.fast(op().id(), float64), &first);
  // It refuses, so the next one is bound.
  EXPECT_EQ(bind(t, float32).def->label, "first");
}

TEST(KernelTable, CandidatesAreAskedInOrder) {
  KernelTable t;
  t.prepared(op().name(), kNumberTypes, &refuse, "one");
  t.prepared(op().name(), kNumberTypes, &accept, "two");
  t.direct(op().name(), kNumberTypes, &first, "three");
  const BoundKernel bound = bind(t, float32);
  EXPECT_EQ(bound.def->label, "two");
  EXPECT_TRUE(bound.state);
  EXPECT_EQ(bound.direct, nullptr);
}

TEST(KernelTable, AppendedCandidatesComeBehind) {
  KernelTable mine, other;
  mine.direct(op().name(), dtype_bit(float32), &first, "mine");
  other.direct(op().name(), kNumberTypes, &second, "other");
  mine.append(other);
  EXPECT_EQ(mine.fast(op().id(), float32), &first);
  EXPECT_EQ(mine.fast(op().id(), int32), &second);
  ASSERT_EQ(mine.candidates(op()).size(), 2u);
  KernelTable empty;
  empty.append(other);
  EXPECT_EQ(empty.fast(op().id(), float32), &second);
}

TEST(KernelTable, ARemovedOpHasNoKernel) {
  KernelTable t;
  t.direct(op().name(), kNumberTypes, &first, "first");
  t.remove(op().name());
  EXPECT_EQ(t.fast(op().id(), float32), nullptr);
  EXPECT_TRUE(t.candidates(op()).empty());
  EXPECT_FALSE(can_run(t, op(), float32));
  EXPECT_THROW(t.remove("NoSuchOp"), errors::NotFound);
  EXPECT_THROW(t.direct("NoSuchOp", kNumberTypes, &first, ""),
               errors::NotFound);
}

TEST(KernelDType, IsThatOfTheFirstValueElseTheOutputElseTheVariable) {
  const Shape shape{2};
  const SpecView variable{resource, &shape, float64};
  const SpecView in[] = {variable, {int32, &shape}, {float32, &shape}};
  const OutSpec out{bool_, shape};
  EXPECT_EQ(kernel_dtype(in, {&out, 1}), int32);
  EXPECT_EQ(kernel_dtype({in, 1}, {&out, 1}), bool_);
  EXPECT_EQ(kernel_dtype({in, 1}, {}), float64);
  EXPECT_EQ(kernel_dtype({}, {}), float32);
}

TEST(RegisterKernels, IsRefusedOnceDevicesExistAndForNoType) {
  EXPECT_THROW(register_kernels("gpu", [](KernelTable&) {}),
               errors::InvalidArgument);
  EXPECT_THROW(register_kernels("", [](KernelTable&) {}),
               errors::InvalidArgument);
  DeviceManager::get();
  try {
    register_kernels("CPU", [](KernelTable&) {});
    FAIL();
  } catch (const errors::FailedPrecondition& e) {
    const std::string m = e.what();
    EXPECT_NE(m.find("register_kernels"), m.npos) << m;
    EXPECT_NE(m.find("kernel_test.cc:"), m.npos) << m;
  }
}

}  // namespace
}  // namespace berth
