#include "data/component_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace berth::data {

void ResultNames::check(const Element& result) const {
  std::lock_guard lock(mutex_);
  if (!names_) {
    names_ = result.names().empty() ? std::make_shared<const Names>()
                                    : result.shared_names();
  }
  if (result.shared_names() == names_ || result.names() == *names_) return;
  throw errors::InvalidArgument(fmt::format(
      "the function returned components ({}), for another element ({}); "
      "expected the same names in the same order",
      fmt::join(result.names(), ", "), fmt::join(*names_, ", ")));
}

MapFunction with_names(NamedMapFunction fn, std::shared_ptr<const Node> before,
                       std::shared_ptr<const ResultNames> names) {
  return [fn = std::move(fn), before = std::move(before),
          names = std::move(names)](const Tensors& element) {
    const Element result = fn(Element(element, before->names()));
    names->check(result);
    return static_cast<const Tensors&>(result);
  };
}

}  // namespace berth::data
