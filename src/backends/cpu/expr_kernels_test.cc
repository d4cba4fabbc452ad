// Compares kernels that run expressions with the reference kernels: every op,
// every dtype, every kind of broadcasting.

#include <gtest/gtest.h>

#include "backends/cpu/kernel_check_testing.h"
#include "expr/code.h"

namespace berth::cpu {
namespace {

struct Form {
  Shape a, b;
};
const Form kForms[] = {{{5, 7}, {5, 7}},    {{300}, {300}},
                       {{4, 130}, {130}},   {{20, 7}, {20, 1}},
                       {{}, {3, 200}},      {{3, 200}, {}},
                       {{2, 1, 3}, {4, 1}}, {{3, 1, 70}, {2, 70}},
                       {{0, 3}, {1, 3}},    {{}, {}},
                       {{2, 1100}, {1100}}};

std::vector<float> positive(int64_t n, uint32_t seed) {
  std::vector<float> x = noise(n, seed, 0.25f, 3);
  return x;
}

void check_form(const OpDef& op, DType type, const Form& form) {
  Case c{op.name(), {}, {}, type == float32 ? 1e-5 : 0};
  const bool choice = op.name() == "SelectV2";
  if (op.name() == "BiasAdd" && form.b.rank() != 1) return;
  const bool domain = op.name() == "Pow" || op.name() == "Log" ||
                      op.name() == "Sqrt" || op.name() == "Rsqrt";
  for (size_t i = 0; i < op.inputs().size(); ++i) {
    CheckedOperand o{i % 2 == 0 ? form.a : form.b,
                     choice && i == 0 ? bool_ : type};
    if (domain) {
      o.values = positive(o.shape.num_elements(), static_cast<uint32_t>(i));
    }
    c.in.push_back(o);
  }
  if (op.name() != "Cast") return check(c);
  for (int d = 1; d <= expr::kNumTypes; ++d) {
    c.attrs = {{"DstT", static_cast<DType>(d)}};
    check(c);
  }
}

TEST(ExprKernels, GiveTheNumbersOfTheReference) {
  int checked = 0;
  for (const OpDef* op : OpRegistry::get().all()) {
    for (const KernelDef& k : kernels().candidates(*op)) {
      if (k.label != "blocks" || op->name() == "_Fused") continue;
      for (int d = 1; d <= expr::kNumTypes; ++d) {
        const auto type = static_cast<DType>(d);
        // kernel_check uses these two for its operands.
        if (type == float64 || type == uint8) continue;
        const bool choice = op->name() == "SelectV2";
        if (!choice && !(k.dtypes & dtype_bit(type))) continue;
        SCOPED_TRACE(op->name() + " " + name_of(type));
        for (const Form& form : kForms) check_form(*op, type, form);
        ++checked;
      }
    }
  }
  EXPECT_GE(checked, 60);
}

TEST(ExprKernels, AFusedOpIsARunOfItsExpression) {
  const Case c{"_Fused",
               {{{6, 50}}, {{50}}, {{6, 50}}},
               {{"expr", std::string("v0:float32, v1:float32, v2:float32, "
                                     "v3=add(v0,v1), v4=relu(v3), "
                                     "v5=sub(v4,v2) -> v5 v3")},
                {"types", std::vector<std::string>{"float32", "float32"}}}};
  const Call call(c);
  const BoundKernel kernel = call.bind(kernels(), 1);
  const Results alone = call.run(kernel, nullptr, 1);
  const auto floats = [&](const Bytes& b) {
    std::vector<float> x(b.size() / 4);
    std::memcpy(x.data(), b.data(), b.size());
    return x;
  };
  const auto x = floats(bytes_of(c.in[0], 1)),
             row = floats(bytes_of(c.in[1], 2)),
             z = floats(bytes_of(c.in[2], 3));
  const auto y = floats(alone.data[0]), sum = floats(alone.data[1]);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(sum[i], x[i] + row[i % 50]);
    EXPECT_EQ(y[i], std::max(sum[i], 0.0f) - z[i]);
  }
  for (const int over : {0, 2}) {
    EXPECT_EQ(call.run(kernel, nullptr, 1, over), alone) << over;
  }
}

}  // namespace
}  // namespace berth::cpu
