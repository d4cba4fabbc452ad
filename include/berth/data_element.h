// data::Element: the components of one element of a dataset, with their names.
//
// An element is a list of tensors; if the dataset has names it is a dictionary,
// too: e["image"]. A name with slashes is a path in a tree: e["pair/left"],
// e.at("pair")["left"]. A value; names are shared. Not thread-safe.

#ifndef BERTH_DATA_ELEMENT_H_
#define BERTH_DATA_ELEMENT_H_

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "berth/tensor.h"

namespace berth::data {

using Names = std::vector<std::string>;

class Element : public Tensors {
 public:
  // An element without components.
  Element() = default;
  // Components with their names, in this order:
  //   data::Element{{"image", image}, {"label", label}}
  // Throws errors::InvalidArgument for an empty or repeated name.
  Element(std::initializer_list<std::pair<std::string, Tensor>> components);
  // `names`: one per component, or null.
  Element(Tensors components, std::shared_ptr<const Names> names)
      : Tensors(std::move(components)), names_(std::move(names)) {}

  using Tensors::operator[];
  using Tensors::at;
  // Returns the component with that name. Throws errors::NotFound, which lists
  // the names.
  const Tensor& operator[](std::string_view name) const;
  Tensor& operator[](std::string_view name);
  // Returns the components below `name`, without "name/". Throws as above.
  Element at(std::string_view name) const;
  bool contains(std::string_view name) const;

  // In the order of the components; empty: they have no names.
  const Names& names() const;
  const std::shared_ptr<const Names>& shared_names() const { return names_; }
  void set_names(std::shared_ptr<const Names> names) {
    names_ = std::move(names);
  }

 private:
  size_t place_of(std::string_view name) const;
  std::shared_ptr<const Names> names_;
};

void check_is_pair(const Element& element);

// for (const auto& [x, y] : dataset): the components of a pair. Throws
// errors::InvalidArgument for elements that are not pairs.
template <size_t I>
const Tensor& get(const Element& pair) {
  static_assert(I < 2);
  check_is_pair(pair);
  return pair[I];
}

}  // namespace berth::data

template <>
struct std::tuple_size<berth::data::Element>
    : std::integral_constant<size_t, 2> {};
template <size_t I>
struct std::tuple_element<I, berth::data::Element> {
  using type = const berth::Tensor;
};

#endif  // BERTH_DATA_ELEMENT_H_
