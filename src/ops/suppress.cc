// Non-max suppression of boxes, and bytes read as another type.

#include <fmt/format.h>

#include "berth/ops/array.h"
#include "ops/array_util.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

Tensor bitcast(const Tensor& x, DType type, Site site) {
  return call_checked(op_of<"Bitcast">(), site, {&x},
                      AttrsRef({{"type", type}}).get());
}

namespace {

void infer_suppression(InferContext& c) {
  c.expect_rank(0, 2, "[n, 4]");
  c.expect_rank(1, 1, "[n]");
  const std::string shapes = fmt::format(
      "boxes are {}, scores {}; expected [n, "
      "4] and [n]",
      c.shape(0).str(), c.shape(1).str());
  c.merge_dims(c.shape(0)[0], c.shape(1)[0], shapes);
  c.merge_dims(c.shape(0)[1], 4, shapes);
  const int64_t most = c.attr<int64_t>("max_output_size");
  const double iou = c.attr<double>("iou_threshold");
  if (most < 0 || most > INT32_MAX || !(iou >= 0 && iou <= 1)) {
    c.fail(
        fmt::format("max_output_size is {}, iou_threshold {}; expected 0 or "
                    "more, and 0 to 1",
                    most, iou));
  }
  c.set_output(0, int32, Shape{most});
  c.set_output(1, int32, Shape{});
}

// A last axis of as many elements as make one of the other type is added or
// taken away.
void infer_bitcast(InferContext& c) {
  const DType type = c.attr<DType>("type");
  if (!(kEveryType & dtype_bit(type)) || type == bool_ || c.dtype(0) == bool_) {
    c.fail(fmt::format("{} as {}; expected types of numbers",
                       name_of(c.dtype(0)), name_of(type)));
  }
  const auto from = static_cast<int64_t>(size_of(c.dtype(0)));
  const auto to = static_cast<int64_t>(size_of(type));
  Shape s = c.shape(0);
  if (from > to) s.push_back(from / to);
  if (from < to) {
    const int last = s.rank() - 1;
    if (last < 0 || (s[last] >= 0 && s[last] != to / from)) {
      c.fail(fmt::format("{} {} as {}; expected a last axis of length {}",
                         name_of(c.dtype(0)), s.str(), name_of(type),
                         to / from));
    }
    s.erase(last);
  }
  c.set_output(0, type, s);
}

}  // namespace

void register_suppression_ops(OpRegistry& r) {
  r.op("NonMaxSuppression")
      .input("boxes", kFloatingTypes)
      .input("scores", kFloatingTypes)
      .output("selected_indices")
      .output("valid_outputs")
      .required_attr("max_output_size", int64_t{0})
      .attr("iou_threshold", 0.5)
      .attr("score_threshold", -std::numeric_limits<double>::infinity())
      .infer(&infer_suppression)
      .cost(&cost_move)
      .not_differentiable()
      .doc("The boxes that overlap none of a higher score.");
  r.op("Bitcast")
      .input("input")
      .output("output")
      .required_attr("type", int32)
      .infer(&infer_bitcast)
      .cost(&cost_move)
      .not_differentiable()
      .doc("The same bytes as another type.");
}

}  // namespace berth
