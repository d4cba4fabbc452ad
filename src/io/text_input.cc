#include "io/text_input.h"

#include <fmt/format.h>

#include "base/needs_values.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"
#include "tensor/text_block.h"

namespace berth::io {
namespace {

void check_text(const Tensor& t, const std::string& where) {
  check_values(t, where);
  if (t.dtype() == string_) return;
  throw errors::InvalidArgument(fmt::format(
      "{}: the input is {}; expected strings", where, t.spec().str()));
}

}  // namespace

void check_values(const Tensor& t, const std::string& where) {
  if (!t.defined()) {
    throw errors::InvalidArgument(
        where + ": the input is an empty Tensor; expected one with values");
  }
  if (t.is_symbolic()) {
    throw Untraceable<errors::FailedPrecondition>(
        where +
        ": the input belongs to a traced function and has no values yet; call "
        "this outside, for example in the map of a dataset");
  }
}

std::string_view scalar_text(const Tensor& t, const char* function, Site site) {
  const std::string where = call_text(function, site);
  check_text(t, where);
  if (t.num_elements() != 1) {
    throw errors::InvalidArgument(fmt::format(
        "{}: the input is {}; expected one scalar string: map over the "
        "elements of a batch",
        where, t.spec().str()));
  }
  return string_at(t.impl()->data(), 1, 0);
}

std::vector<std::string_view> texts_of(const Tensor& t, const char* function,
                                       Site site) {
  check_text(t, call_text(function, site));
  const int64_t n = t.num_elements();
  std::vector<std::string_view> all;
  all.reserve(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    all.push_back(string_at(t.impl()->data(), n, i));
  }
  return all;
}

Tensor text_tensor(std::string_view text) {
  const uint64_t start = 0;
  return make_texts(std::span<const uint64_t>(&start, 1), text, Shape{});
}

}  // namespace berth::io
