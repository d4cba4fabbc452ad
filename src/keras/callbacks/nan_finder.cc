// Runs ops one by one until a result is not finite.

#include "keras/callbacks/nan_finder.h"

#include <fmt/format.h>

#include <cmath>

#include "base/where.h"

namespace berth::keras {

bool all_finite(const Tensor& t) {
  if (!t.defined() || !is_floating(t.dtype()) || t.num_elements() == 0) {
    return true;
  }
  for (double v : t.to_vector<double>()) {
    if (!std::isfinite(v)) return false;
  }
  return true;
}

void NaNFinder::apply(const OpDef& op, std::span<const Tensor* const> in,
                      const Attrs* attrs, std::span<Tensor> out) {
  const Site site = t_state.site;
  const char* layer = t_state.layer;
  next(op, in, attrs, out);
  if (!found_.empty()) return;
  for (const Tensor& t : out) {
    if (all_finite(t)) continue;
    bool from_outside = false;
    for (const Tensor* x : in) from_outside |= !all_finite(*x);
    layer_ = layer ? layer : "";
    found_ = fmt::format("{}{}{}{}", layer ? layer_ + "/" : "", op.name(),
                         where_text(nullptr, site),
                         from_outside ? ", of inputs that are not finite" : "");
    return;
  }
}

}  // namespace berth::keras
