// Printing tensors: values with shape, dtype and device.

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "device/device_name.h"
#include "tensor/number_text.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"
#include "tensor/visit_dtype.h"

namespace berth {

namespace {

constexpr int64_t kEdge = 3;          // shown at each end of a long axis
constexpr int64_t kMostShown = 1000;  // elements shown whole
constexpr size_t kLine = 75;          // characters

// Walks what is shown of an array: all of it, or the ends of long axes.
class Shown {
 public:
  explicit Shown(const Shape& shape)
      : shape_(shape), shorten_(shape.num_elements() > kMostShown) {}

  bool cut(int axis) const { return shorten_ && shape_[axis] > 2 * kEdge; }
  // The element printed after element i of an axis.
  int64_t after(int axis, int64_t i) const {
    return cut(axis) && i + 1 == kEdge ? shape_[axis] - kEdge : i + 1;
  }
  std::vector<size_t> offsets() const {
    std::vector<size_t> list;
    if (shape_.num_elements() > 0) collect(0, 0, &list);
    return list;
  }
  const Shape& shape() const { return shape_; }

 private:
  void collect(int axis, int64_t offset, std::vector<size_t>* list) const {
    if (axis == shape_.rank()) {
      list->push_back(static_cast<size_t>(offset));
      return;
    }
    for (int64_t i = 0; i < shape_[axis]; i = after(axis, i)) {
      collect(axis + 1, offset * shape_[axis] + i, list);
    }
  }

  const Shape shape_;
  const bool shorten_;
};

// Makes texts, in the order of Shown::offsets(), equally wide.
void align(std::vector<std::string>* texts) {
  size_t width = 0;
  for (const std::string& s : *texts) width = std::max(width, s.size());
  for (std::string& s : *texts) s.insert(0, width - s.size(), ' ');
}

std::vector<std::string> float_texts(const std::vector<double>& v, DType dtype,
                                     bool alone, bool sign) {
  std::vector<std::string> texts;
  if (alone) {
    const std::string s = number_text(v[0], dtype);
    return {sign && s[0] != '-' ? "+" + s : s};
  }
  const FloatColumn column(v, dtype, sign);
  for (const double x : v) texts.push_back(column.text(x));
  return texts;
}

// "1. +2.j ": the j stands at the number.
std::vector<std::string> complex_texts(const std::vector<double>& re,
                                       const std::vector<double>& im,
                                       DType part, bool alone) {
  std::vector<std::string> a = float_texts(re, part, alone, false);
  const std::vector<std::string> b = float_texts(im, part, alone, true);
  for (size_t i = 0; i < a.size(); ++i) {
    const size_t end = b[i].find_last_not_of(' ') + 1;
    a[i] += b[i].substr(0, end) + "j" + b[i].substr(end);
  }
  return a;
}

template <class T>
std::vector<std::string> element_texts(const Tensor& t, const Shown& shown) {
  const std::vector<T> all = t.to_vector<T>();
  const bool alone = t.rank() == 0;
  std::vector<std::string> texts;
  std::vector<double> re, im;
  for (const size_t at : shown.offsets()) {
    const T v = all[at];
    if constexpr (std::is_same_v<T, std::string>) {
      texts.push_back('"' + v + '"');
    } else if constexpr (is_complex_type<T>) {
      re.push_back(v.real());
      im.push_back(v.imag());
    } else if constexpr (std::is_floating_point_v<T> || is_half_type<T>) {
      re.push_back(convert_element<double>(v));
    } else {
      texts.push_back(fmt::format("{}", v));
    }
  }
  if (!im.empty()) {
    const DType part = t.dtype() == complex64 ? float32 : float64;
    return complex_texts(re, im, part, alone);
  }
  if (!re.empty()) return float_texts(re, t.dtype(), alone, false);
  if constexpr (!std::is_same_v<T, std::string>) align(&texts);
  return texts;
}

// Puts texts of elements into rows and brackets.
class Layout {
 public:
  Layout(const Shown& shown, const std::vector<std::string>& texts)
      : shown_(shown), texts_(texts) {}

  std::string text() {
    const int rank = shown_.shape().rank();
    if (rank == 0) return texts_[0];
    if (texts_.empty()) return "[]";
    return block(0);
  }

 private:
  std::string block(int axis) {
    const int left = shown_.shape().rank() - axis;
    return left == 1 ? row(axis) : rows(axis, static_cast<size_t>(left - 1));
  }

  std::string rows(int axis, size_t newlines) {
    const std::string between = "," + std::string(newlines, '\n') +
                                std::string(static_cast<size_t>(axis) + 1, ' ');
    std::string s = "[";
    for (int64_t i = 0; i < shown_.shape()[axis]; i = shown_.after(axis, i)) {
      if (i > 0) s += between;
      s += block(axis + 1);
      if (shown_.cut(axis) && i + 1 == kEdge) s += between + "...";
    }
    return s + "]";
  }

  // The innermost axis, over as many lines as it needs.
  std::string row(int axis) {
    const std::string indent(static_cast<size_t>(axis) + 1, ' ');
    const size_t width = kLine - static_cast<size_t>(axis) - 1;
    std::string s, line = indent;
    const auto add = [&](const std::string& word) {
      if (line.size() > indent.size() && line.size() + word.size() > width) {
        s += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
        line = indent;
      }
      line += word;
    };
    const int64_t n = shown_.shape()[axis];
    for (int64_t i = 0; i < n; i = shown_.after(axis, i)) {
      add(texts_[next_++]);
      if (i + 1 < n) line += ", ";
      if (!shown_.cut(axis) || i + 1 != kEdge) continue;
      add("...");
      line += ", ";
    }
    s += line;
    return "[" + s.substr(indent.size()) + "]";
  }

  const Shown& shown_;
  const std::vector<std::string>& texts_;
  size_t next_ = 0;
};

std::string values_text(const Tensor& t) {
  const Shown shown(t.shape());
  const std::vector<std::string> texts =
      t.dtype() == string_ ? element_texts<std::string>(t, shown)
                           : visit_dtype(t.dtype(), "text", [&](auto type) {
                               return element_texts<decltype(type)>(t, shown);
                             });
  return Layout(shown, texts).text();
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
  const std::string values = values_text(*this);
  // Several lines begin below.
  const bool lines = values.find('\n') != std::string::npos;
  return fmt::format("Tensor(shape={}, dtype={}, device={},{}{})",
                     shape().str(), name_of(dtype()), where, lines ? '\n' : ' ',
                     values);
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.str();
}

std::ostream& operator<<(std::ostream& out, const Tensor& t) {
  return out << t.str();
}

}  // namespace berth
