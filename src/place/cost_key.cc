// The keys under which measurements are kept.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "op/callable.h"
#include "place/cost_store.h"

namespace berth {

namespace {

std::string text(const OutSpec& s) {
  return fmt::format(
      "{}{}[{}]", name_of(s.dtype),
      s.dtype == resource ? fmt::format("({})", name_of(s.variable)) : "",
      fmt::join(s.shape.begin(), s.shape.end(), ","));
}

// False: a value that means nothing to another process.
struct AttrText {
  std::string& out;

  bool operator()(bool x) const { return add("{}", x); }
  bool operator()(int64_t x) const { return add("{}", x); }
  bool operator()(double x) const { return add("{}", x); }
  bool operator()(const std::string& x) const { return add("{:?}", x); }
  bool operator()(DType x) const { return add("{}", name_of(x)); }
  bool operator()(const Shape& x) const {
    return add("[{}]", fmt::join(x.begin(), x.end(), ","));
  }
  // The contents of a tensor do not change how long the op takes.
  bool operator()(const Tensor& x) const {
    if (!x.defined()) return add("{}", "none");
    return add("{}", text(OutSpec{x.dtype(), x.shape()}));
  }
  bool operator()(const std::shared_ptr<Callable>& x) const { return !x; }
  template <class T>
  bool operator()(const std::vector<T>& x) const {
    return add("[{}]", fmt::join(x, ","));
  }

 private:
  template <class T>
  bool add(fmt::format_string<T> format, T&& value) const {
    out += fmt::format(format, std::forward<T>(value));
    return true;
  }
};

}  // namespace

std::string op_key(const Graph& graph, int32_t node, const std::string& where) {
  const Node& n = graph[node];
  std::string key = n.op->name() + "(";
  for (const ValueRef& v : n.inputs) {
    if (!graph.spec(v).shape.is_fully_defined()) return "";
    key += text(graph.spec(v)) + " ";
  }
  key += ") -> ";
  for (const OutSpec& s : n.outputs) {
    if (!s.shape.is_fully_defined()) return "";
    key += text(s) + " ";
  }
  if (n.attrs.get() != nullptr) {
    for (const auto& [name, value] : n.attrs.get()->pairs()) {
      key += name + "=";
      if (!std::visit(AttrText{key}, value)) return "";
      key += " ";
    }
  }
  return key + "on " + where;
}

std::string cost_version() {
  std::string version = BERTH_VERSION;
#ifndef __OPTIMIZE__
  version += ", not optimised";
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  version += ", sanitized";
#endif
  return version;
}

}  // namespace berth
