// Attrs: the immutable, interned attributes of one op call.
//
// Sorted (name, value) pairs. Equal attributes are one object, so they compare
// by pointer; nullptr stands for "all defaults". The intern table frees what
// nobody refers to. Thread-safe.

#ifndef BERTH_OP_ATTRS_H_
#define BERTH_OP_ATTRS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "berth/dtype.h"
#include "berth/shape.h"
#include "berth/tensor.h"

namespace berth {

class Callable;  // op/callable.h

using AttrValue =
    std::variant<bool, int64_t, double, std::string, DType, Shape,
                 std::vector<int64_t>, std::vector<double>,
                 std::vector<std::string>, Tensor, std::shared_ptr<Callable>>;

// Two values are equal when type and contents are: numbers by their bits,
// tensors and callables by identity.
bool equal(const AttrValue& a, const AttrValue& b);
size_t hash_value(const AttrValue& v);

class Attrs {
 public:
  using Pair = std::pair<std::string, AttrValue>;

  const std::vector<Pair>& pairs() const { return pairs_; }
  // Returns null when the attribute is not there.
  const AttrValue* find(std::string_view name) const;

 private:
  friend class AttrsRef;
  friend class AttrsTable;
  std::vector<Pair> pairs_;
  size_t hash_ = 0;
  mutable std::atomic<int32_t> references_{0};
};

// Owning handle of interned attributes; empty means all defaults.
class AttrsRef {
 public:
  AttrsRef() = default;
  // Interns the pairs, in any order. Names must be distinct.
  explicit AttrsRef(std::vector<Attrs::Pair> pairs);
  static AttrsRef share(const Attrs* attrs);
  AttrsRef(const AttrsRef& o) : AttrsRef(share(o.attrs_)) {}
  AttrsRef(AttrsRef&& o) noexcept : attrs_(std::exchange(o.attrs_, nullptr)) {}
  AttrsRef& operator=(AttrsRef o) noexcept {
    std::swap(attrs_, o.attrs_);
    return *this;
  }
  ~AttrsRef();

  const Attrs* get() const { return attrs_; }
  bool operator==(const AttrsRef& o) const { return attrs_ == o.attrs_; }

 private:
  const Attrs* attrs_ = nullptr;
};

// How many attribute sets are interned now (tests).
size_t interned_attrs();

}  // namespace berth

#endif  // BERTH_OP_ATTRS_H_
