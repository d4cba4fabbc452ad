// Tree: nested structures of tensors, as arguments and results of functions.
//
// Tensors are the leaves; Variables count by identity, numbers, strings and
// enums by value; vectors, arrays, pairs, tuples, optionals and string maps
// nest. For a struct of your own, specialise Tree with one visit().
// Compile-time only.

#ifndef BERTH_TREE_H_
#define BERTH_TREE_H_

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "berth/tensor.h"
#include "berth/variable.h"

namespace berth {

// Walks a structure. The engine visits the same structure to flatten it and,
// with tensors inserted, to rebuild it.
class TreeVisitor {
 public:
  virtual ~TreeVisitor() = default;
  virtual void tensor(Tensor& leaf) = 0;
  // A part of the signature: two calls with equal texts share a trace.
  virtual void fixed(const void* bytes, size_t size) = 0;
};

template <class T, class Enable = void>
struct Tree;

// A type that Tree knows; its contents are checked when it is visited.
template <class T>
concept Nested = requires {
  sizeof(Tree<std::remove_cv_t<T>>);
};

template <class T>
void visit_tree(T& value, TreeVisitor& visitor) {
  static_assert(Nested<T>,
                "a traced function takes and returns Tensors, Variables, "
                "numbers, strings, and vectors, arrays, pairs, tuples, "
                "optionals and string maps of these; for a struct of your own, "
                "specialise berth::Tree (berth/tree.h)");
  if constexpr (Nested<T>) {
    Tree<std::remove_cv_t<T>>::visit(value, visitor);
  }
}

template <>
struct Tree<Tensor> {
  static void visit(Tensor& t, TreeVisitor& v) { v.tensor(t); }
};

template <>
struct Tree<Variable> {
  static void visit(Variable& x, TreeVisitor& v) {
    const uint64_t identity = x.serial();
    v.fixed(&identity, sizeof identity);
  }
};

template <class T>
struct Tree<T, std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>>> {
  static void visit(T& x, TreeVisitor& v) { v.fixed(&x, sizeof x); }
};

template <>
struct Tree<std::string> {
  static void visit(std::string& s, TreeVisitor& v) {
    const size_t n = s.size();
    v.fixed(&n, sizeof n);
    v.fixed(s.data(), n);
  }
};

template <class T>
struct Tree<std::vector<T>> {
  static void visit(std::vector<T>& list, TreeVisitor& v) {
    const size_t n = list.size();
    v.fixed(&n, sizeof n);
    for (T& x : list) visit_tree(x, v);
  }
};

template <class T, size_t kSize>
struct Tree<std::array<T, kSize>> {
  static void visit(std::array<T, kSize>& list, TreeVisitor& v) {
    for (T& x : list) visit_tree(x, v);
  }
};

template <class A, class B>
struct Tree<std::pair<A, B>> {
  static void visit(std::pair<A, B>& p, TreeVisitor& v) {
    visit_tree(p.first, v);
    visit_tree(p.second, v);
  }
};

template <class... T>
struct Tree<std::tuple<T...>> {
  static void visit(std::tuple<T...>& t, TreeVisitor& v) {
    std::apply([&](auto&... x) { (visit_tree(x, v), ...); }, t);
  }
};

template <class T>
struct Tree<std::optional<T>> {
  static void visit(std::optional<T>& o, TreeVisitor& v) {
    const bool has = o.has_value();
    v.fixed(&has, sizeof has);
    if (has) visit_tree(*o, v);
  }
};

template <class T>
struct Tree<std::map<std::string, T>> {
  static void visit(std::map<std::string, T>& m, TreeVisitor& v) {
    const size_t n = m.size();
    v.fixed(&n, sizeof n);
    for (auto& [key, value] : m) {
      std::string k = key;
      visit_tree(k, v);
      visit_tree(value, v);
    }
  }
};

// Collects the leaves of a structure, and the text of its other contents.
struct FlattenTree final : TreeVisitor {
  void tensor(Tensor& t) override { leaves.push_back(t); }
  void fixed(const void* bytes, size_t size) override {
    text.append(static_cast<const char*>(bytes), size);
  }
  Tensors leaves;
  std::string text;
};

// Replaces the tensors of a structure by `leaves`. Throws std::out_of_range if
// there are too few.
struct RebuildTree final : TreeVisitor {
  explicit RebuildTree(const Tensors& l) : leaves(l) {}
  void tensor(Tensor& t) override { t = leaves.at(next++); }
  void fixed(const void*, size_t) override {}
  const Tensors& leaves;
  size_t next = 0;
};

}  // namespace berth

#endif  // BERTH_TREE_H_
