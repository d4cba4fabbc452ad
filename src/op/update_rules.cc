#include "op/update_rules.h"

#include <fmt/format.h>

namespace berth {

namespace {

bool like_variables(const OpDef& op, int input) {
  return op.input(input).access != Access::kValue || input == op.update_value();
}

}  // namespace

void infer_update(InferContext& c) {
  const Shape& var = c.shape(0);
  for (int i = 0; i < c.num_inputs(); ++i) {
    const bool like_var = like_variables(c.op(), i);
    const Shape want = like_var ? var : Shape();
    if (!c.shape(i).compatible_with(want)) {
      c.fail(fmt::format("{} has shape {}; expected {}{}", c.op().input(i).name,
                         c.shape(i).str(), want.str(),
                         like_var ? ", the shape of var" : ", a scalar"));
    }
  }
}

std::vector<SplitSignature> split_update(const InferContext& c) {
  std::vector<SplitSignature> rules;
  for (int8_t axis = 0; axis < c.shape(0).rank(); ++axis) {
    SplitSignature rule;
    for (int i = 0; i < c.num_inputs(); ++i) {
      rule.inputs.push_back(like_variables(c.op(), i) ? axis
                                                      : SplitSignature::kWhole);
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

Cost cost_update(const InferContext& c) {
  const double n = static_cast<double>(c.shape(0).num_elements());
  double variables = 0;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.op().input(i).access != Access::kValue) ++variables;
  }
  const double item =
      static_cast<double>(size_of(c.dtype(c.op().update_value())));
  return {n * (variables * variables + 1), n * item * (2 * variables + 1)};
}

}  // namespace berth
