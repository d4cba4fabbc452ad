// Padding, reversing, rolling: outputs that show places of the input.

#include <algorithm>
#include <cstring>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"
#include "backends/reference/scratch.h"
#include "tensor/visit_dtype.h"

namespace berth::reference {

namespace {

using Ints = std::vector<int64_t>;

// For each axis of the output, the input position shown at each position; -1:
// none.
using Places = std::array<Scratch<int64_t>, kMaxRank>;

template <class Fn>
Places places_of(const Shape& out, Fn&& fn) {
  Places places;
  for (int d = 0; d < out.rank(); ++d) {
    for (int64_t o = 0; o < out[d]; ++o) places[d].push_back(fn(d, o));
  }
  return places;
}

// Calls fn(i, from) for each element of `out`; from is -1 if nothing is shown.
template <class Fn>
void for_each_placed(const Shape& out, const Shape& in, const Places& places,
                     Fn&& fn) {
  const auto strides = dense_strides(in);
  std::array<int64_t, kMaxRank> at{};
  for (int64_t i = 0, n = out.num_elements(); i < n; ++i) {
    int64_t from = 0;
    for (int d = 0; d < out.rank() && from >= 0; ++d) {
      const int64_t place = places[d][at[d]];
      from = place < 0 ? -1 : from + place * strides[d];
    }
    fn(i, from);
    for (int d = out.rank() - 1; d >= 0 && ++at[d] == out[d]; --d) at[d] = 0;
  }
}

// Positions of an axis in a row that show positions in a row, or nothing.
struct Run {
  int64_t count;
  int64_t from;  // -1: nothing
};

Scratch<Run> runs_of(const Scratch<int64_t>& places) {
  Scratch<Run> runs;
  for (const int64_t place : places) {
    Run* last = runs.empty() ? nullptr : &runs.back();
    const bool goes_on =
        last &&
        (place < 0 ? last->from < 0
                   : last->from >= 0 && place == last->from + last->count);
    if (goes_on) {
      ++last->count;
    } else {
      runs.push_back({1, place < 0 ? -1 : place});
    }
  }
  return runs;
}

// Calls fn(at, count, from) for each run of `out` along its last axis.
template <class Fn>
void for_each_run(const Shape& out, const Shape& in, const Places& places,
                  Fn&& fn) {
  if (out.rank() == 0) return fn(0, 1, 0);
  const int last = out.rank() - 1;
  const Scratch<Run> runs = runs_of(places[last]);
  const auto strides = dense_strides(in);
  std::array<int64_t, kMaxRank> at{};
  for (int64_t i = 0, n = out.num_elements(); i < n;) {
    int64_t row = 0;
    for (int d = 0; d < last && row >= 0; ++d) {
      const int64_t place = places[d][at[d]];
      row = place < 0 ? -1 : row + place * strides[d];
    }
    for (const Run& run : runs) {
      fn(i, run.count, row < 0 || run.from < 0 ? -1 : row + run.from);
      i += run.count;
    }
    for (int d = last - 1; d >= 0 && ++at[d] == out[d]; --d) at[d] = 0;
  }
}

// `otherwise`: bits of an element for positions that show nothing; null: zeros.
void take(const KernelCall& c, const Places& places,
          const void* otherwise = nullptr) {
  with_storage(c.in[0].dtype, [&]<class T>(T) {
    const T* x = c.in[0].as<T>();
    T* y = c.out[0].as<T>();
    T none{};
    if (otherwise) std::memcpy(&none, otherwise, sizeof none);
    for_each_run(*c.out[0].shape, *c.in[0].shape, places,
                 [&](int64_t at, int64_t count, int64_t from) {
                   from < 0 ? std::fill_n(y + at, count, none)
                            : std::copy_n(x + from, count, y + at);
                 });
  });
}

void pad_with(const KernelCall& c, const void* value) {
  const Ints& paddings = c.attr<Ints>("paddings");
  const Shape& in = *c.in[0].shape;
  take(c,
       places_of(*c.out[0].shape,
                 [&](int d, int64_t o) {
                   const int64_t at = o - paddings[2 * d];
                   return at < in[d] ? at : -1;
                 }),
       value);
}

void pad(const KernelCall& c) { pad_with(c, nullptr); }
void pad_value(const KernelCall& c) {
  visit_dtype(c.in[0].dtype, "PadV2", [&]<class T>(T) {
    const T value = convert_element<T>(c.attr<double>("constant_values"));
    pad_with(c, &value);
  });
}

// Returns the positions in `inside` shown by those of `padded`.
Places mirrors(const KernelCall& c, const Shape& padded, const Shape& inside) {
  const Ints& paddings = c.attr<Ints>("paddings");
  const int64_t edge = c.attr<std::string>("mode") == "REFLECT" ? 0 : 1;
  return places_of(padded, [&](int d, int64_t o) {
    const int64_t at = o - paddings[2 * d];
    if (at < 0) return -at - edge;
    return at < inside[d] ? at : 2 * inside[d] - 2 - at + edge;
  });
}

void mirror_pad(const KernelCall& c) {
  take(c, mirrors(c, *c.out[0].shape, *c.in[0].shape));
}

void mirror_pad_grad(const KernelCall& c) {
  const Shape &padded = *c.in[0].shape, &inside = *c.out[0].shape;
  with_number(c.in[0].dtype, [&]<class T>(T) {
    const T* dy = c.in[0].as<T>();
    Scratch<Wide<T>> sums(static_cast<size_t>(c.out[0].size()));
    for_each_placed(padded, inside, mirrors(c, padded, inside),
                    [&](int64_t i, int64_t to) {
                      sums[to] += static_cast<Wide<T>>(dy[i]);
                    });
    T* dx = c.out[0].as<T>();
    for (size_t o = 0; o < sums.size(); ++o) dx[o] = static_cast<T>(sums[o]);
  });
}

void reverse(const KernelCall& c) {
  const Shape& shape = *c.out[0].shape;
  std::array<bool, kMaxRank> named{};
  for (const int64_t a : c.attr<Ints>("axis")) {
    named[normalize_axis(a, shape.rank(), "ReverseV2")] = true;
  }
  take(c, places_of(shape, [&](int d, int64_t o) {
         return named[d] ? shape[d] - 1 - o : o;
       }));
}

void roll(const KernelCall& c) {
  const Shape& shape = *c.out[0].shape;
  const Ints &shift = c.attr<Ints>("shift"), &axis = c.attr<Ints>("axis");
  std::array<int64_t, kMaxRank> by{};
  for (size_t i = 0; i < axis.size(); ++i) {
    const int d = normalize_axis(axis[i], shape.rank(), "Roll");
    if (shape[d] > 0) by[d] = (by[d] + shift[i] % shape[d]) % shape[d];
  }
  take(c, places_of(shape, [&](int d, int64_t o) {
         return (o - by[d] + shape[d]) % shape[d];
       }));
}

}  // namespace

void add_rearrange(KernelTable& t) {
  t.direct("Pad", kEveryType, &pad, "reference");
  t.direct("PadV2", kEveryType, &pad_value, "reference");
  t.direct("MirrorPad", kEveryType, &mirror_pad, "reference");
  t.direct("MirrorPadGrad", kOwnNumbers, &mirror_pad_grad, "reference");
  t.direct("ReverseV2", kEveryType, &reverse, "reference");
  t.direct("Roll", kEveryType, &roll, "reference");
}

}  // namespace berth::reference
