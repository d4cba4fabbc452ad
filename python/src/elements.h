// elements: a pass over a data set, from which the engine may take elements
// without Python.

#ifndef BERTH_PYTHON_ELEMENTS_H_
#define BERTH_PYTHON_ELEMENTS_H_

#include <mutex>
#include <vector>

#include "convert.h"

namespace berth::python {

struct Element {
  Tensors leaves;
  // How many tensors each component of a split data set has; none of others.
  std::vector<size_t> parts = {};

  bool is_like(const Tensors& other) const {
    if (leaves.size() != other.size()) return false;
    for (size_t i = 0; i < other.size(); ++i) {
      if (leaves[i].dtype() != other[i].dtype() ||
          !(leaves[i].shape() == other[i].shape())) {
        return false;
      }
    }
    return true;
  }
};

class Elements {
 public:
  virtual ~Elements() = default;

  // Without the GIL; false at the end.
  bool take(Element* element) {
    std::lock_guard one_at_a_time(mutex_);
    return take_next(element);
  }
  // None at the end.
  nanobind::object next() {
    Element element;
    if (!freely([&] { return take(&element); })) return nanobind::none();
    return object_of(element);
  }
  // A tensor for each component, or a list of those of replicas.
  static nanobind::object object_of(const Element& element) {
    if (element.parts.empty()) return to_python(element.leaves);
    nanobind::list all;
    auto at = element.leaves.begin();
    for (const size_t n : element.parts) {
      const auto end = at + static_cast<std::ptrdiff_t>(n);
      all.append(to_python(Tensors(at, end)));
      at = end;
    }
    return all;
  }

 private:
  virtual bool take_next(Element* element) = 0;

  std::mutex mutex_;
};

}  // namespace berth::python

#endif  // BERTH_PYTHON_ELEMENTS_H_
