// Looks for NaN and infinities on the host, result by result.

#include "eager/check_numerics.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "berth/errors.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "tensor/numbers_found.h"

namespace berth {

namespace {

bool is_checked(const Tensor& t) {
  return t.defined() && is_floating(t.dtype()) && t.num_elements() > 0;
}

std::vector<std::byte> bytes_of(const Tensor& t) {
  std::vector<std::byte> bytes(static_cast<size_t>(t.num_elements()) *
                               size_of(t.dtype()));
  t.copy_to(bytes.data());
  return bytes;
}

NumbersFound numbers_of(const Tensor& t) {
  const std::vector<std::byte> bytes = bytes_of(t);
  NumbersFound n;
  n.add(bytes.data(), static_cast<size_t>(t.num_elements()), t.dtype());
  return n;
}

std::string ranges_of(std::span<const Tensor* const> in) {
  std::string text;
  for (size_t k = 0; k < in.size(); ++k) {
    if (!is_checked(*in[k])) continue;
    text += fmt::format("{}input {}, {}, has {}", text.empty() ? "; " : ", ", k,
                        in[k]->spec().str(), numbers_of(*in[k]).range());
  }
  return text;
}

// What looks is not looked at.
struct Look {
  Look() : inside(std::exchange(looks, true)), plain(nullptr) {}
  ~Look() { looks = inside; }
  Look(const Look&) = delete;
  Look& operator=(const Look&) = delete;

  const bool inside;
  const DispatchGuard plain;
  inline static thread_local bool looks = false;
};

}  // namespace

void record_checksums(const OpDef& op, std::span<const Tensor> out) {
  const Look look;
  if (op.kind() != OpKind::kCompute || look.inside) return;
  for (size_t k = 0; k < out.size(); ++k) {
    const Tensor& t = out[k];
    if (!t.defined() || size_of(t.dtype()) == 0) continue;
    const std::vector<std::byte> bytes = bytes_of(t);
    NumbersFound n;
    n.add(bytes.data(), static_cast<size_t>(t.num_elements()), t.dtype());
    record_checksum(k == 0 ? op.name() : fmt::format("{}:{}", op.name(), k),
                    t_state.site, checksum(bytes.data(), bytes.size()), n.least,
                    n.most);
  }
}

void check_numerics(const OpDef& op, std::span<const Tensor* const> in,
                    std::span<const Tensor> out) {
  const Look look;
  if (op.kind() != OpKind::kCompute || look.inside) return;
  for (size_t k = 0; k < out.size(); ++k) {
    if (!is_checked(out[k])) continue;
    const NumbersFound n = numbers_of(out[k]);
    if (!n.bad()) continue;
    throw errors::InvalidArgument(
        fmt::format("{}{}: its result {}, {}, has {} among {} values{} "
                    "(enable_check_numerics)",
                    op.name(), where_text(), k, out[k].spec().str(), n.found(),
                    n.count, ranges_of(in)));
  }
}

}  // namespace berth
