// Updates many variables in one launch by a table of their addresses, as a card
// with addresses does. The kernels' text is compiled for the processor, run by
// a card that calls it, and checked against independent formulas.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/kernels.h"
#include "backends/gpu/recipe.h"
#include "op/kernel.h"
#include "op/op_registry.h"

namespace berth::gpu {
namespace {

// The vocabulary of dialect.cl, running one item after the other.
namespace words {

using f32 = float;
using f64 = double;
using u8 = unsigned char;
using i32 = int;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;
using T = f32;

struct Item {
  i64 group = 0, id = 0;
} g_item;

}  // namespace words

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wold-style-cast"
#define FN static
#define GLOBAL
#define KERNEL(size, name) void name
#define BUF(type, x) type* x
#define AT(type, x)
#define FLAT_SIZE 256
// The first item of a group writes it before the others run.
#define LOCAL_ARRAY(type, name, n) static type name[n]
#define BARRIER()
#define LID g_item.id
#define GROUP g_item.group
#define ITEM (g_item.group * FLAT_SIZE + g_item.id)
#define HAS_F64 1
#define T_SINGLE 1
#define F32_MADD(a, b, c) std::fma(a, b, c)
#define F32_SQRT(x) std::sqrt(x)
#define F64_SQRT(x) std::sqrt(x)
#define TABLE 16
namespace words::of16 {
#include "backends/gpu/kernels/training.cl"
}
#undef TABLE
#define TABLE 512
namespace words::of512 {
#include "backends/gpu/kernels/training.cl"
}
#undef TABLE
#undef FN
#undef GLOBAL
#undef KERNEL
#undef BUF
#undef AT
#undef FLAT_SIZE
#undef LOCAL_ARRAY
#undef BARRIER
#undef LID
#undef GROUP
#undef ITEM
#undef HAS_F64
#undef T_SINGLE
#undef F32_MADD
#undef F32_SQRT
#undef F64_SQRT
#undef T_MADD
#undef T_SQRT
#undef WIDE_SQRT
#pragma GCC diagnostic pop

using words::T;

// Converts an argument to the kernel's type.
template <class A>
A arg(const KernelArg* args, int i) {
  A a;
  std::memcpy(&a, args[i].value, sizeof a);
  return a;
}

int g_launches = 0;

template <class Addresses, class TableSizes, class Descend, class Adam,
          class Rms>
void call(const std::string& name, const KernelArg* a, Descend descend,
          Adam adam, Rms rms) {
  const auto column = [&](int i) {
    EXPECT_EQ(a[i].bytes, sizeof(Addresses));
    return arg<Addresses>(a, i);
  };
  const auto scalar = [&](int i) { return arg<const T*>(a, i); };
  if (name == "gradient_descent_table") {
    descend(column(0), scalar(1), column(2), arg<TableSizes>(a, 3));
  } else if (name == "adam_table") {
    adam(column(0), column(1), column(2), scalar(3), scalar(4), scalar(5),
         scalar(6), scalar(7), scalar(8), scalar(9), column(10),
         arg<words::i32>(a, 11), arg<TableSizes>(a, 12));
  } else if (name == "rms_prop_table") {
    rms(column(0), column(1), column(2), column(3), scalar(4), scalar(5),
        scalar(6), scalar(7), column(8), arg<words::i32>(a, 9),
        arg<TableSizes>(a, 10));
  } else {
    ADD_FAILURE() << name;
  }
}

class CalledKernel final : public Kernel {
 public:
  CalledKernel(std::string name, bool few)
      : name_(std::move(name)), few_(few) {}
  void launch(Queue&, const Grid& grid, const KernelArg* args, int) override {
    ++g_launches;
    EXPECT_EQ(grid.groups[1] * grid.groups[2], 1u);
    for (words::g_item.group = 0; words::g_item.group < grid.groups[0];
         ++words::g_item.group) {
      for (words::g_item.id = 0; words::g_item.id < grid.items;
           ++words::g_item.id) {
        run(args);
      }
    }
  }

 private:
  void run(const KernelArg* args) const {
    if (few_) {
      namespace k = words::of16;
      call<k::Addresses, k::TableSizes>(name_, args, k::gradient_descent_table,
                                        k::adam_table, k::rms_prop_table);
    } else {
      namespace k = words::of512;
      call<k::Addresses, k::TableSizes>(name_, args, k::gradient_descent_table,
                                        k::adam_table, k::rms_prop_table);
    }
  }

  const std::string name_;
  const bool few_;
};

class CalledModule final : public Module {
 public:
  explicit CalledModule(bool few) : few_(few) {}
  std::unique_ptr<Kernel> kernel(const char* name) override {
    return std::make_unique<CalledKernel>(name, few_);
  }

 private:
  const bool few_;
};

// Every call completes before it returns.
class CalledQueue final : public Queue {
 public:
  void copy(const Copy& c) override {
    std::memcpy(c.target, c.source, c.bytes);
  }
  void fill(void* target, int value, size_t bytes) override {
    std::memset(target, value, bytes);
  }
  Mark mark() override { return this; }
  void release(Mark) noexcept override {}
  bool passed(Mark) override { return true; }
  void await(Mark) override {}
  void follow(Mark) override {}
  double passed_us(Mark) override { return 0; }
};

class CallingCard final : public Card {
 public:
  CallingCard() {
    features_.name = "a card that calls";
    features_.memory_bytes = size_t{1} << 30;
    features_.addresses = true;
  }
  ~CallingCard() override { forget_modules(); }
  std::unique_ptr<Queue> make_queue() override {
    return std::make_unique<CalledQueue>();
  }
  std::unique_ptr<MemorySource> memory_source() override {
    return host_memory_source();
  }

 protected:
  std::unique_ptr<Module> compile(const std::string& text) override {
    const bool few = text.find("#define TABLE 16\n") != text.npos;
    EXPECT_TRUE(few || text.find("#define TABLE 512\n") != text.npos);
    return std::make_unique<CalledModule>(few);
  }
};

// Arrays of float32, one operand of every update each.
using Operands = std::vector<std::vector<T>>;

class UpdateTables : public testing::Test {
 protected:
  UpdateTables() {
    Kernels kernels(card_, table_);
    add_training(kernels);
    device_ = std::make_unique<GpuDevice>(GpuPart{.id = 70}, card_, &table_,
                                          "a test");
    g_launches = 0;
  }

  // Runs `op` on each of `updates`, merged.
  void apply(const char* op, std::vector<Operands>& updates) {
    std::vector<Shape> shapes;
    std::vector<View> views;
    std::vector<SpecView> specs;
    for (const Operands& u : updates) {
      for (const auto& x : u) shapes.push_back(Shape({long(x.size())}));
    }
    size_t i = 0;
    const OpDef& one = op_named(op);
    for (Operands& u : updates) {
      for (size_t k = 0; k < u.size(); ++k, ++i) {
        views.push_back({u[k].data(), &shapes[i], float32});
        const bool variable =
            one.input(static_cast<int>(k)).access != Access::kValue;
        specs.push_back(variable ? SpecView{resource, &shapes[i], float32}
                                 : SpecView{float32, &shapes[i]});
      }
    }
    const OpDef& together = op_named("_MultiApply");
    const AttrsRef attrs({{"op", std::string(op)}});
    PrepareArgs args{.op = &together, .attrs = attrs.get(), .in = specs};
    args.table = &table_;
    const auto prepared = table_.candidates(together)[0].prepare(args);
    KernelContext context;
    context.stream = &device_->compute_stream();
    prepared->run({&together, attrs.get(), views.data(), nullptr,
                   static_cast<int>(views.size()), 0, &context});
  }

  CallingCard card_;
  KernelTable table_;
  std::unique_ptr<GpuDevice> device_;
};

std::vector<T> numbers(size_t n, T first) {
  std::vector<T> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = first + T(i % 97) / 64;
  return x;
}

// Returns sizes that fill part of a group, several groups, or are zero.
size_t size_of_update(size_t k) {
  constexpr size_t kSizes[] = {1, 0, 255, 70000, 256, 3, 65537};
  return kSizes[k % 7] / (k > 20 ? 64 : 1);
}

TEST_F(UpdateTables, ThirteenDescentsAreOneLaunch) {
  std::vector<Operands> updates;
  for (size_t k = 0; k < 13; ++k) {
    const size_t n = size_of_update(k);
    updates.push_back({numbers(n, T(k)), {0.25f}, numbers(n, -T(k))});
  }
  const std::vector<Operands> before = updates;
  apply("ResourceApplyGradientDescent", updates);
  EXPECT_EQ(g_launches, 1);
  for (size_t k = 0; k < updates.size(); ++k) {
    for (size_t i = 0; i < updates[k][0].size(); ++i) {
      // Numbers with few bits: exact.
      ASSERT_EQ(updates[k][0][i], before[k][0][i] - 0.25f * before[k][2][i])
          << k << " " << i;
    }
  }
}

TEST_F(UpdateTables, EightHundredAdamsAreTwoLaunches) {
  std::vector<Operands> updates;
  for (size_t k = 0; k < 800; ++k) {
    const size_t n = size_of_update(k);
    updates.push_back({numbers(n, 1),
                       numbers(n, 2),
                       numbers(n, 3),
                       {0.9f},
                       {0.99f},
                       {0.01f},
                       {0.9f},
                       {0.99f},
                       {1e-7f},
                       numbers(n, T(k % 5))});
  }
  const std::vector<Operands> before = updates;
  apply("ResourceApplyAdam", updates);
  EXPECT_EQ(g_launches, 2);
  for (size_t k = 0; k < updates.size(); ++k) {
    const Operands &x = updates[k], &old = before[k];
    for (size_t i = 0; i < x[0].size(); ++i) {
      const double g = old[9][i];
      const double m = 0.9f * double{old[1][i]} + (1 - 0.9f) * g;
      const double v = 0.99f * double{old[2][i]} + (1 - 0.99f) * g * g;
      const double rate = 0.01f * std::sqrt(1 - 0.99f) / (1 - 0.9f);
      ASSERT_NEAR(x[1][i], m, 1e-5) << k << " " << i;
      ASSERT_NEAR(x[2][i], v, 1e-5) << k << " " << i;
      ASSERT_NEAR(x[0][i], old[0][i] - rate * m / (std::sqrt(v) + 1e-7), 1e-5)
          << k << " " << i;
    }
  }
}

TEST_F(UpdateTables, AnOperandThatAKindLacksIsNoAddress) {
  std::vector<Operands> updates;
  for (size_t k = 0; k < 5; ++k) {
    const size_t n = size_of_update(k);
    updates.push_back({numbers(n, 1),
                       numbers(n, 2),
                       numbers(n, 3),
                       {0.01f},
                       {0.9f},
                       {0.5f},
                       {1e-7f},
                       numbers(n, 4)});
  }
  const std::vector<Operands> before = updates;
  apply("ResourceApplyRMSProp", updates);
  EXPECT_EQ(g_launches, 1);
  for (size_t k = 0; k < updates.size(); ++k) {
    const Operands &x = updates[k], &old = before[k];
    for (size_t i = 0; i < x[0].size(); ++i) {
      const double g = old[7][i];
      const double ms = 0.9f * double{old[1][i]} + (1 - 0.9f) * g * g;
      const double mom = 0.5 * old[2][i] + 0.01f * g / std::sqrt(ms + 1e-7f);
      ASSERT_NEAR(x[1][i], ms, 1e-5) << k << " " << i;
      ASSERT_NEAR(x[2][i], mom, 1e-5) << k << " " << i;
      ASSERT_NEAR(x[0][i], old[0][i] - mom, 1e-5) << k << " " << i;
    }
  }
}

}  // namespace
}  // namespace berth::gpu
