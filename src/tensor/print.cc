// Printing tensors: values with shape, dtype and device.

#include <fmt/format.h>

#include <ostream>

#include "berth/errors.h"
#include "device/device_name.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

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
      const T v = values_[static_cast<size_t>(offset)];
      if constexpr (std::is_floating_point_v<T>) {
        out_ += fmt::format("{:.6g}", v);
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
  switch (t.dtype()) {
    case DType::kFloat32:
      return Printer<float>(t).text();
    case DType::kFloat64:
      return Printer<double>(t).text();
    case DType::kInt32:
      return Printer<int32_t>(t).text();
    case DType::kInt64:
      return Printer<int64_t>(t).text();
    case DType::kUint8:
      return Printer<uint8_t>(t).text();
    case DType::kBool:
      return Printer<bool>(t).text();
    default:
      return "";
  }
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
