// Runs one op call through the kernels of a table; for the kernels' tests.

#ifndef BERTH_BACKENDS_CPU_KERNEL_CHECK_TESTING_H_
#define BERTH_BACKENDS_CPU_KERNEL_CHECK_TESTING_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "backends/cpu/cpu_testing.h"
#include "backends/cpu/kernels.h"
#include "backends/reference/reference.h"

namespace berth::cpu {

struct CheckedOperand {
  Shape shape;
  DType dtype = float32;
  std::vector<float> values = {};  // converted to dtype; noise if empty
  bool variable = false;
};

struct Case {
  std::string op;
  std::vector<CheckedOperand> in;
  std::vector<Attrs::Pair> attrs = {};
  double tolerance = 1e-5;
  bool own = true;  // the first candidate that binds is a kernel of ours
};

inline std::string describe(const Case& c) {
  std::string text = c.op;
  for (const CheckedOperand& o : c.in) text += " " + o.shape.str();
  return text;
}

using Bytes = std::vector<std::byte>;

// Outputs, then the variables written.
struct Results {
  std::vector<Bytes> data;
  std::vector<DType> dtypes;
  bool operator==(const Results& o) const { return data == o.data; }
};

inline Bytes bytes_of(const CheckedOperand& o, uint32_t seed) {
  const int64_t n = o.shape.num_elements();
  std::vector<float> values = o.values;
  if (values.empty()) values = noise(n, seed, -2, 2);
  Bytes bytes(static_cast<size_t>(n) * size_of(o.dtype));
  for (int64_t i = 0; i < n; ++i) {
    const float v = values[static_cast<size_t>(i)];
    if (o.dtype == float32) {
      std::memcpy(bytes.data() + i * 4, &v, 4);
    } else if (o.dtype == int32) {
      const auto x = static_cast<int32_t>(v);
      std::memcpy(bytes.data() + i * 4, &x, 4);
    } else if (o.dtype == int64) {
      const auto x = static_cast<int64_t>(v);
      std::memcpy(bytes.data() + i * 8, &x, 8);
    } else if (o.dtype == float64) {
      const double x = v;
      std::memcpy(bytes.data() + i * 8, &x, 8);
    } else if (o.dtype == uint8) {
      bytes[static_cast<size_t>(i)] = static_cast<std::byte>(std::fmax(v, 0.f));
    } else {
      bytes[static_cast<size_t>(i)] = static_cast<std::byte>(v > 0);
    }
  }
  return bytes;
}

// One call: specs, operands, results.
class Call {
 public:
  explicit Call(const Case& c)
      : case_(c), op_(op_named(c.op)), attrs_(c.attrs) {
    for (const CheckedOperand& o : c.in) {
      specs_.push_back(o.variable ? SpecView{resource, &o.shape, o.dtype}
                                  : SpecView{o.dtype, &o.shape});
    }
    outs_.resize(op_.num_outputs(attrs_.get()));
    infer_outputs(op_, attrs_.get(), specs_, outs_);
  }

  const OpDef& op() const { return op_; }
  const std::vector<OutSpec>& outs() const { return outs_; }

  BoundKernel bind(const KernelTable& table, int slices) const {
    return bind_kernel(table, {&op_, attrs_.get(), specs_, outs_, slices});
  }

  // Runs `kernel`; output 0 shares the bytes of input `alias` if that is given.
  Results run(const BoundKernel& kernel, ThreadPool* pool, int slices,
              int alias = -1) const {
    std::vector<Bytes> in, out;
    std::vector<View> views;
    for (size_t i = 0; i < case_.in.size(); ++i) {
      const CheckedOperand& o = case_.in[i];
      in.push_back(bytes_of(o, static_cast<uint32_t>(i + 1)));
      views.push_back({in[i].data(), &o.shape, o.dtype});
    }
    for (size_t o = 0; o < outs_.size(); ++o) {
      const auto n = static_cast<size_t>(outs_[o].shape.num_elements());
      out.emplace_back(n * size_of(outs_[o].dtype), std::byte{0xfe});
      views.push_back({out[o].data(), &outs_[o].shape, outs_[o].dtype});
    }
    if (alias >= 0) views[in.size()].data = in[alias].data();
    const size_t bytes = kernel.state ? kernel.state->scratch_bytes() : 0;
    std::vector<float> scratch(bytes / 4 + 32, NAN);
    KernelContext context;
    context.pool = pool;
    context.slices = slices;
    const uint64_t step = 3;
    context.step_counter = &step;
    void* base = scratch.data();
    size_t space = scratch.size() * 4;
    context.scratch = std::align(64, bytes, base, space);
    kernel.run({&op_, attrs_.get(), views.data(), views.data() + in.size(),
                static_cast<int>(in.size()), static_cast<int>(out.size()),
                &context});
    if (alias >= 0) out[0] = in[alias];
    Results r;
    for (size_t o = 0; o < out.size(); ++o) {
      r.data.push_back(std::move(out[o]));
      r.dtypes.push_back(outs_[o].dtype);
    }
    for (size_t i = 0; i < in.size(); ++i) {
      if (!case_.in[i].variable) continue;
      r.data.push_back(std::move(in[i]));
      r.dtypes.push_back(case_.in[i].dtype);
    }
    return r;
  }

 private:
  const Case& case_;
  const OpDef& op_;
  const AttrsRef attrs_;
  std::vector<SpecView> specs_;
  std::vector<OutSpec> outs_;
};

inline void expect_near(const Results& got, const Results& want,
                        double tolerance) {
  for (size_t r = 0; r < want.data.size(); ++r) {
    if (want.dtypes[r] != float32) {
      EXPECT_EQ(got.data[r], want.data[r]) << "result " << r;
      continue;
    }
    for (size_t at = 0; at < want.data[r].size(); at += 4) {
      float g, w;
      std::memcpy(&g, got.data[r].data() + at, 4);
      std::memcpy(&w, want.data[r].data() + at, 4);
      if (std::isnan(w) ? std::isnan(g) : g == w) continue;
      ASSERT_NEAR(g, w, tolerance * (1 + std::fabs(w)))
          << "result " << r << ", element " << at / 4;
    }
  }
}

inline const KernelTable& all_kernels() {
  static const KernelTable table = [] {
    KernelTable t = kernels();
    t.append(reference::kernels());
    return t;
  }();
  return table;
}

// Returns pools of 1, 2 and 3 threads that may run on any cores.
inline ThreadPool& shared_pool(int size) {
  static ThreadPool one({.size = 1, .shared = true});
  static ThreadPool two({.size = 2, .shared = true});
  static ThreadPool three({.size = 3, .shared = true});
  return size == 1 ? one : size == 2 ? two : three;
}

// Checks a case against the reference kernel, for 1 to 4 slices; that the bits
// do not depend on the pool; and that the result may overwrite an operand where
// the kernel says so.
inline void check(const Case& c) {
  SCOPED_TRACE(describe(c));
  const Call call(c);
  const Results want = call.run(call.bind(reference::kernels(), 1), nullptr, 1);
  for (int slices = 1; slices <= 4; ++slices) {
    SCOPED_TRACE(slices);
    const BoundKernel kernel = call.bind(all_kernels(), slices);
    ASSERT_TRUE(kernel.def);
    EXPECT_EQ(kernel.def->label != "reference", c.own);
    const Results alone = call.run(kernel, nullptr, slices);
    expect_near(alone, want, c.tolerance);
    for (int size = 1; size <= 3; ++size) {
      EXPECT_EQ(call.run(kernel, &shared_pool(size), slices), alone)
          << "pool of " << size;
    }
    if (!kernel.def->in_place) continue;
    for (size_t i = 0; i < c.in.size(); ++i) {
      if (c.in[i].dtype != float32 || call.outs()[0].dtype != float32 ||
          !(c.in[i].shape == call.outs()[0].shape)) {
        continue;
      }
      EXPECT_EQ(call.run(kernel, nullptr, slices, static_cast<int>(i)), alone)
          << "in place of operand " << i;
    }
  }
}

}  // namespace berth::cpu

#endif  // BERTH_BACKENDS_CPU_KERNEL_CHECK_TESTING_H_
