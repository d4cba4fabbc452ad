// Looks for NaN and infinities on the host, result by result.

#include "eager/check_numerics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "berth/errors.h"
#include "berth/half.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"

namespace berth {

namespace {

bool is_checked(const Tensor& t) {
  return t.defined() && is_floating(t.dtype()) && t.num_elements() > 0;
}

double as_double(double v) { return v; }
template <class T>
double as_double(T v) {
  return static_cast<float>(v);
}

struct Numbers {
  size_t nans = 0, infinities = 0, count = 0;
  double least = INFINITY, most = -INFINITY;  // of the others

  explicit Numbers(const Tensor& t) {
    if (t.dtype() == float64) {
      add(t.to_vector<double>());
    } else if (t.dtype() == float16) {
      add(t.to_vector<float16_t>());
    } else if (t.dtype() == bfloat16) {
      add(t.to_vector<bfloat16_t>());
    } else {
      add(t.to_vector<float>());
    }
  }
  template <class T>
  void add(const std::vector<T>& values) {
    for (const T value : values) {
      const auto v = as_double(value);
      ++count;
      if (std::isnan(v)) {
        ++nans;
      } else if (std::isinf(v)) {
        ++infinities;
      } else {
        least = std::min(least, v);
        most = std::max(most, v);
      }
    }
  }
  bool bad() const { return nans + infinities > 0; }
  std::string found() const {
    std::string text;
    if (nans > 0) text = fmt::format("{} NaN", nans);
    if (infinities > 0) {
      text += fmt::format("{}{} Inf", text.empty() ? "" : " and ", infinities);
    }
    return text;
  }
  std::string range() const {
    std::string text = least > most
                           ? "no finite value"
                           : fmt::format("{:.6g} to {:.6g}", least, most);
    return bad() ? text + " and " + found() : text;
  }
};

std::string ranges_of(std::span<const Tensor* const> in) {
  std::string text;
  for (size_t k = 0; k < in.size(); ++k) {
    if (!is_checked(*in[k])) continue;
    text += fmt::format("{}input {}, {}, has {}", text.empty() ? "; " : ", ", k,
                        in[k]->spec().str(), Numbers(*in[k]).range());
  }
  return text;
}

}  // namespace

void check_numerics(const OpDef& op, std::span<const Tensor* const> in,
                    std::span<const Tensor> out) {
  if (op.kind() != OpKind::kCompute) return;
  // What looks is not looked at.
  static thread_local bool looks = false;
  if (looks) return;
  looks = true;
  struct Ends {
    ~Ends() { looks = false; }
  } ends;
  const DispatchGuard plain(nullptr);
  for (size_t k = 0; k < out.size(); ++k) {
    if (!is_checked(out[k])) continue;
    const Numbers n(out[k]);
    if (!n.bad()) continue;
    throw errors::InvalidArgument(
        fmt::format("{}{}: its result {}, {}, has {} among {} values{} "
                    "(enable_check_numerics)",
                    op.name(), where_text(), k, out[k].spec().str(), n.found(),
                    n.count, ranges_of(in)));
  }
}

}  // namespace berth
