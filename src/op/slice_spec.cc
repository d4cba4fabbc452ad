#include "op/slice_spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/errors.h"
#include "op/device_scope.h"

namespace berth {

using Ints = std::vector<int64_t>;

namespace {

[[noreturn]] void fail(const OpDef& op, const std::string& message) {
  throw errors::InvalidArgument(
      fmt::format("{}: {}{}", op.name(), message, where_text()));
}

// Python's rule: a negative place counts from the end, then it is moved into
// [low, high].
int64_t place(int64_t at, int64_t dim, int64_t low, int64_t high) {
  if (at < 0) at += dim;
  return std::clamp(at, low, high);
}

void resolve_index(const OpDef& op, const Shape& in, int axis, int64_t at,
                   SliceAxis* a) {
  const int64_t dim = in[axis];
  if (dim >= 0 && (at < -dim || at >= dim)) {
    fail(op, fmt::format("index {} is out of range for axis {} of {}; expected "
                         "one in [{}, {})",
                         at, axis, in.str(), -dim, dim));
  }
  a->begin = at < 0 && dim >= 0 ? at + dim : at;
  a->size = 1;
  a->shrink = true;
}

void resolve_range(int64_t dim, int64_t begin, int64_t end, bool open_begin,
                   bool open_end, SliceAxis* a) {
  const bool forward = a->stride > 0;
  if (dim < 0) {
    // Only all of an axis keeps a size that is not known.
    a->whole = a->stride == 1 && open_end && (open_begin || begin == 0);
    const bool reversed = a->stride == -1 && open_end && open_begin;
    a->size = a->whole || reversed ? dim : kUnknownDim;
    return;
  }
  const int64_t low = forward ? 0 : -1, high = forward ? dim : dim - 1;
  const int64_t from =
      open_begin ? (forward ? low : high) : place(begin, dim, low, high);
  const int64_t to =
      open_end ? (forward ? high : low) : place(end, dim, low, high);
  const int64_t span = forward ? to - from : from - to;
  // -INT64_MIN would overflow; any step longer than the axis takes one.
  const int64_t step = forward ? a->stride : -std::max(a->stride, -(dim + 1));
  a->begin = from;
  a->size = span <= 0 ? 0 : (span - 1) / step + 1;
  if (a->size <= 1) a->stride = forward ? 1 : -1;
  a->whole = a->stride == 1 && a->size == dim && from == 0;
}

}  // namespace

std::array<SliceAxis, kMaxRank> slice_axes(const OpDef& op, const Attrs* attrs,
                                           const Shape& in) {
  const Ints& begin = op.attr<Ints>(attrs, "begin");
  const Ints& end = op.attr<Ints>(attrs, "end");
  const Ints& strides = op.attr<Ints>(attrs, "strides");
  const auto mask = [&](const char* name, size_t i) {
    return (op.attr<int64_t>(attrs, name) >> i & 1) != 0;
  };
  if (begin.size() != end.size() || begin.size() != strides.size()) {
    fail(op, fmt::format("begin, end and strides have {}, {} and {} numbers; "
                         "expected as many",
                         begin.size(), end.size(), strides.size()));
  }
  if (static_cast<int>(begin.size()) > in.rank()) {
    fail(op, fmt::format("{} subscripts for {}; expected at most {}",
                         begin.size(), in.str(), in.rank()));
  }
  std::array<SliceAxis, kMaxRank> axes{};
  for (int i = 0; i < in.rank(); ++i) {
    SliceAxis& a = axes[i];
    const size_t n = static_cast<size_t>(i);
    if (n >= begin.size()) {
      a.size = in[i];
      a.whole = true;
      continue;
    }
    a.stride = strides[n];
    if (a.stride == 0) {
      fail(op, fmt::format("the stride of axis {} is 0; expected a step", i));
    }
    if (mask("shrink_axis_mask", n)) {
      a.stride = 1;
      resolve_index(op, in, i, begin[n], &a);
    } else {
      resolve_range(in[i], begin[n], end[n], mask("begin_mask", n),
                    mask("end_mask", n), &a);
    }
  }
  return axes;
}

}  // namespace berth
