// Checks of inputs and options, with errors that name the layer.

#include "keras/models/layer_checks.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::keras {

const Tensor& one_input(const LayerState& s, const Tensors& x) {
  if (x.size() != 1) {
    fail_in(s, "{}: got {} inputs; expected 1", s.type, x.size());
  }
  return x[0];
}

DType weights_dtype_for(const Tensor& x) {
  const bool half = x.dtype() == bfloat16 || x.dtype() == float16;
  return half ? float32 : x.dtype();
}

const Tensor& input_of_rank(const LayerState& s, const Tensors& x, int rank,
                            const char* form) {
  const Tensor& t = one_input(s, x);
  if (t.rank() != rank) {
    fail_in(s, "{}: the input is {}; expected {}", s.type, t.shape().str(),
            form);
  }
  return t;
}

const char* pixels_form(int dims) {
  if (dims == 1) return "[batch, steps, channels]";
  return dims == 2 ? "[batch, height, width, channels]"
                   : "[batch, depth, height, width, channels]";
}

int64_t known_channels(const LayerState& s, const Shape& input) {
  const int64_t c = input.rank() > 0 ? input[input.rank() - 1] : kUnknownDim;
  if (c < 0) {
    fail_in(s, "{}: the input is {}; expected a last axis of known length",
            s.type, input.str());
  }
  return c;
}

void check_channels(const LayerState& s, const Tensor& x, int64_t channels) {
  const int r = x.rank();
  if (r > 0 && (x.shape()[r - 1] == channels || x.shape()[r - 1] < 0)) return;
  fail_in(s,
          "{}: the input is {}; expected a last axis of {}, "
          "which the weights were made for",
          s.type, x.shape().str(), channels);
}

void check_positive(const LayerState& s, const char* what, int64_t value) {
  if (value >= 1) return;
  fail_in(
      s, fmt::format("{}: {} is {}; expected at least 1", s.type, what, value));
}

std::string padding_of(const LayerState& s, const std::string& padding) {
  if (padding == "same" || padding == "SAME") return "SAME";
  if (padding == "valid" || padding == "VALID") return "VALID";
  fail_in(s, "{}: padding is \"{}\"; expected \"same\" or \"valid\"", s.type,
          padding);
}

bool can_be(const Shape& shape, DType dtype) {
  constexpr int64_t kMost = int64_t{1} << 62;
  int64_t bytes =
      dtype == string_
          ? 16
          : std::max<int64_t>(static_cast<int64_t>(size_of(dtype)), 1);
  bool empty = false;
  for (const int64_t dim : shape) {
    if (dim == 0) empty = true;
    if (dim <= 0) continue;
    if (bytes >= (kMost + dim - 1) / dim) return empty;
    bytes *= dim;
  }
  return true;
}

}  // namespace berth::keras
