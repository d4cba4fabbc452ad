// Printing tensors: values with shape, dtype and device.

#include <fmt/format.h>

#include <ostream>

#include "berth/errors.h"
#include "device/device_name.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"
#include "tensor/visit_dtype.h"

namespace berth {

namespace {

constexpr int64_t kEdge = 3;       // shown at each end of a long axis
constexpr int64_t kMaxShown = 64;  // elements shown whole

template <class T>
class Printer {
 public:
  Printer(const Tensor& t)
      : shape_(t.shape()),
        values_(t.to_vector<T>()),
        shorten_(t.num_elements() > kMaxShown) {}

  std::string text() {
    block(0, 0);
    return std::move(out_);
  }

 private:
  // Prints axis `axis` from element `offset` on.
  void block(int axis, int64_t offset) {
    if (axis == shape_.rank()) {
      const auto& v = values_[static_cast<size_t>(offset)];
      if constexpr (std::is_same_v<T, std::string>) {
        out_ += '"' + v + '"';
      } else if constexpr (is_complex_type<T>) {
        out_ += fmt::format("{:.6g}{:+.6g}j", v.real(), v.imag());
      } else if constexpr (std::is_floating_point_v<T> || is_half_type<T>) {
        out_ += fmt::format("{:.6g}", convert_element<double>(v));
      } else {
        out_ += fmt::format("{}", v);
      }
      return;
    }
    int64_t stride = 1;
    for (int i = axis + 1; i < shape_.rank(); ++i) stride *= shape_[i];
    const int64_t n = shape_[axis];
    out_ += '[';
    for (int64_t i = 0; i < n; ++i) {
      if (i > 0) out_ += ", ";
      if (shorten_ && n > 2 * kEdge && i == kEdge) {
        out_ += "..., ";
        i = n - kEdge;
      }
      block(axis + 1, offset + i * stride);
    }
    out_ += ']';
  }

  const Shape shape_;
  const std::vector<T> values_;
  const bool shorten_;
  std::string out_;
};

std::string values_text(const Tensor& t) {
  if (t.dtype() == string_) return Printer<std::string>(t).text();
  return visit_dtype(t.dtype(), "text", [&](auto type) {
    return Printer<decltype(type)>(t).text();
  });
}

}  // namespace

std::string Tensor::str() const {
  if (!defined()) return "Tensor(empty)";
  if (is_symbolic()) {
    return fmt::format("Tensor(symbolic, shape={}, dtype={})", shape().str(),
                       name_of(dtype()));
  }
  const std::string where = impl_->device ? impl_->device->short_name() : "?";
  if (dtype() == resource) {
    const VariableState& v = *impl_->variable;
    return fmt::format("Variable({}, shape={}, dtype={}, device={})", v.name,
                       v.shape.str(), name_of(v.dtype), where);
  }
  return fmt::format("Tensor(shape={}, dtype={}, device={}, {})", shape().str(),
                     name_of(dtype()), where, values_text(*this));
}

std::ostream& operator<<(std::ostream& out, const Tensor& t) {
  return out << t.str();
}

}  // namespace berth
