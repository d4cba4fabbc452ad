// Element: components of a dataset, with names.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/immortal.h"
#include "berth/data_element.h"
#include "berth/errors.h"

namespace berth::data {

namespace {

constexpr size_t kNoComponent = static_cast<size_t>(-1);

size_t find_name(const Names& names, std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return i;
  }
  return kNoComponent;
}

[[noreturn]] void no_such_name(const Names& names, std::string_view name) {
  if (names.empty()) {
    throw errors::NotFound(fmt::format(
        "an element has no component '{}': its components have no names; "
        "expected a number, or a dataset made with names: "
        "from_tensor_slices({{{{\"{}\", tensor}}}})",
        name, name));
  }
  throw errors::NotFound(
      fmt::format("an element has no component '{}'; expected one of: {}", name,
                  fmt::join(names, ", ")));
}

}  // namespace

Element::Element(
    std::initializer_list<std::pair<std::string, Tensor>> components) {
  Names names;
  for (const auto& [name, tensor] : components) {
    if (name.empty()) {
      throw errors::InvalidArgument(fmt::format(
          "component {} of an element has an empty name; expected one",
          names.size()));
    }
    if (find_name(names, name) != kNoComponent) {
      throw errors::InvalidArgument(fmt::format(
          "an element has two components '{}'; expected different names",
          name));
    }
    names.push_back(name);
    push_back(tensor);
  }
  if (!names.empty()) names_ = std::make_shared<const Names>(std::move(names));
}

void check_is_pair(const Element& element) {
  if (element.size() == 2) return;
  throw errors::InvalidArgument(fmt::format(
      "an element of {} component{} was taken apart into two, as in [x, y]; "
      "expected a pair: read the components by element[0], element[1], ...",
      element.size(), element.size() == 1 ? "" : "s"));
}

const Names& Element::names() const {
  static const Names& none = immortal<Names>();
  return names_ && names_->size() == size() ? *names_ : none;
}

size_t Element::place_of(std::string_view name) const {
  const size_t i = find_name(names(), name);
  if (i == kNoComponent) no_such_name(names(), name);
  return i;
}

const Tensor& Element::operator[](std::string_view name) const {
  return (*this)[place_of(name)];
}

Tensor& Element::operator[](std::string_view name) {
  return (*this)[place_of(name)];
}

bool Element::contains(std::string_view name) const {
  return find_name(names(), name) != kNoComponent;
}

Element Element::at(std::string_view name) const {
  Names below;
  Tensors components;
  for (size_t i = 0; i < names().size(); ++i) {
    const std::string& full = names()[i];
    if (full.size() > name.size() + 1 && full.starts_with(name) &&
        full[name.size()] == '/') {
      below.push_back(full.substr(name.size() + 1));
      components.push_back((*this)[i]);
    }
  }
  if (below.empty()) no_such_name(names(), name);
  return {std::move(components),
          std::make_shared<const Names>(std::move(below))};
}

}  // namespace berth::data
