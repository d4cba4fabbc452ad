// GatherNd and scatters, into tensors and variables.

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "backends/reference/indices.h"
#include "backends/reference/reference.h"
#include "backends/reference/scratch.h"
#include "backends/reference/widened.h"

namespace berth::reference {

namespace {

// Calls fn(place, row, inner) for each index, a row of `depth` coordinates: the
// beginning of the slice of `inner` elements in `target`, and in the updates.
// Throws errors::InvalidArgument for a coordinate out of range.
template <class Fn>
void for_each_slice(const KernelCall& c, const View& indices, int64_t depth,
                    const Shape& target, Fn&& fn) {
  const auto strides = dense_strides(target);
  const int64_t inner =
      product_of(target, static_cast<int>(depth), target.rank());
  int64_t n = 1;
  for (int i = 0; i + 1 < indices.shape->rank(); ++i) n *= indices.dim(i);
  for (int64_t i = 0; i < n; ++i) {
    int64_t place = 0;
    for (int64_t d = 0; d < depth; ++d) {
      const int axis = static_cast<int>(d);
      const int64_t at = index_at(indices, i * depth + d);
      if (at < 0 || at >= target[axis]) {
        throw errors::InvalidArgument(fmt::format(
            "{}: coordinate {} of index {} is {}, out of range for {}; "
            "expected one in [0, {})",
            c.op->name(), d, i, at, target.str(), target[axis]));
      }
      place += at * strides[axis];
    }
    fn(place, i * inner, inner);
  }
}

// For indices of rows, without coordinates.
template <class Fn>
void for_each_row(const KernelCall& c, const View& indices, const Shape& target,
                  Fn&& fn) {
  const int64_t inner = product_of(target, 1, target.rank());
  for (int64_t i = 0, n = indices.size(); i < n; ++i) {
    fn(checked_index(c, indices, i, target, 0) * inner, i * inner, inner);
  }
}

int64_t depth_of(const View& indices) {
  return indices.dim(indices.shape->rank() - 1);
}

void gather_nd(const KernelCall& c) {
  const size_t size = size_of(c.in[0].dtype);
  const auto* x = c.in[0].as<std::byte>();
  auto* y = c.out[0].as<std::byte>();
  for_each_slice(c, c.in[1], depth_of(c.in[1]), *c.in[0].shape,
                 [&](int64_t place, int64_t row, int64_t inner) {
                   if (inner == 0) return;
                   std::memcpy(y + static_cast<size_t>(row) * size,
                               x + static_cast<size_t>(place) * size,
                               static_cast<size_t>(inner) * size);
                 });
}

void scatter_nd(const KernelCall& c) {
  const DType narrow = c.in[1].dtype;
  if (wider(narrow) != DType::kInvalid) {
    return run_widened(c, narrow, &scatter_nd);
  }
  with_number(c.in[1].dtype, [&]<class T>(T) {
    const T* updates = c.in[1].as<T>();
    Scratch<Wide<T>> sums(static_cast<size_t>(c.out[0].size()));
    for_each_slice(c, c.in[0], depth_of(c.in[0]), *c.out[0].shape,
                   [&](int64_t place, int64_t row, int64_t inner) {
                     for (int64_t i = 0; i < inner; ++i) {
                       sums[place + i] +=
                           static_cast<Wide<T>>(updates[row + i]);
                     }
                   });
    T* y = c.out[0].as<T>();
    for (size_t i = 0; i < sums.size(); ++i) y[i] = static_cast<T>(sums[i]);
  });
}

// Integers wrap.
struct Update {
  template <class T>
  static T of(T, T b) {
    return b;
  }
};
struct Add {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<Wide<T>>(a) + static_cast<Wide<T>>(b));
  }
};
struct Sub {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<Wide<T>>(a) - static_cast<Wide<T>>(b));
  }
};
struct Mul {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
  }
};
struct Div {
  template <class T>
  static T of(T a, T b) {
    return a / b;
  }
};
// NaN is kept.
struct Min {
  template <class T>
  static T of(T a, T b) {
    return b < a || b != b ? b : a;
  }
};
struct Max {
  template <class T>
  static T of(T a, T b) {
    return a < b || b != b ? b : a;
  }
};

// Calls fn with a value of the element type of `dtype`, or of its size; only
// numbers support arithmetic.
template <class Combine, class Fn>
void with_type_for(DType dtype, Fn&& fn) {
  if constexpr (std::is_same_v<Combine, Update>) {
    with_storage(dtype, fn);
  } else if constexpr (std::is_same_v<Combine, Div>) {
    with_floating(dtype, fn);
  } else {
    with_number(dtype, fn);
  }
}

// Combines the slices of `updates` with those of `target` at `indices`.
template <class Combine, bool kNd>
void combine(const KernelCall& c, const View& target) {
  const View &indices = c.in[1], &updates = c.in[2];
  with_type_for<Combine>(updates.dtype, [&]<class T>(T) {
    T* y = target.as<T>();
    const T* u = updates.as<T>();
    const auto one = [&](int64_t place, int64_t row, int64_t inner) {
      for (int64_t i = 0; i < inner; ++i) {
        y[place + i] = Combine::of(y[place + i], u[row + i]);
      }
    };
    if constexpr (kNd) {
      for_each_slice(c, indices, depth_of(indices), *target.shape, one);
    } else {
      for_each_row(c, indices, *target.shape, one);
    }
  });
}

template <class Combine, bool kNd>
void resource_scatter(const KernelCall& c) {
  const DType narrow = c.in[2].dtype;
  if (!std::is_same_v<Combine, Update> && wider(narrow) != DType::kInvalid) {
    return run_widened(c, narrow, &resource_scatter<Combine, kNd>);
  }
  combine<Combine, kNd>(c, c.in[0]);
}

template <class Combine>
void tensor_scatter(const KernelCall& c) {
  const size_t bytes =
      static_cast<size_t>(c.out[0].size()) * size_of(c.out[0].dtype);
  if (bytes > 0) std::memcpy(c.out[0].data, c.in[0].data, bytes);
  combine<Combine, true>(c, c.out[0]);
}

// Segments: rows of `data`, one per id.
template <class Combine>
void segment(const KernelCall& c, double empty_float, bool lowest,
             bool highest) {
  const View &data = c.in[0], &ids = c.in[1];
  const int64_t num = c.out[0].dim(0);
  const int64_t inner = product_of(*c.out[0].shape, 1, c.out[0].shape->rank());
  // As they are: the lowest and the highest of a wider type are others.
  with_exact_number(data.dtype, [&]<class T>(T) {
    using Limits = std::numeric_limits<T>;
    // Sums and products use a wide type; extremes are exact as they are.
    using W = std::conditional_t<std::is_same_v<Combine, Min> ||
                                     std::is_same_v<Combine, Max>,
                                 T, Wide<T>>;
    const T first = lowest    ? Limits::lowest()
                    : highest ? Limits::max()
                              : static_cast<T>(empty_float);
    Scratch<W> rows(static_cast<size_t>(c.out[0].size()),
                    static_cast<W>(first));
    const T* x = data.as<T>();
    for (int64_t i = 0, n = ids.size(); i < n; ++i) {
      const int64_t id = index_at(ids, i);
      if (id >= num) {
        throw errors::InvalidArgument(
            fmt::format("{}: segment {} at place {} of the ids is out of "
                        "range; expected one below num_segments, {}",
                        c.op->name(), id, i, num));
      }
      if (id < 0) continue;
      for (int64_t k = 0; k < inner; ++k) {
        W& row = rows[id * inner + k];
        row = Combine::of(row, static_cast<W>(x[i * inner + k]));
      }
    }
    T* y = c.out[0].as<T>();
    for (size_t i = 0; i < rows.size(); ++i) y[i] = static_cast<T>(rows[i]);
  });
}

void segment_sum(const KernelCall& c) { segment<Add>(c, 0, false, false); }
void segment_prod(const KernelCall& c) { segment<Mul>(c, 1, false, false); }
void segment_min(const KernelCall& c) { segment<Min>(c, 0, false, true); }
void segment_max(const KernelCall& c) { segment<Max>(c, 0, true, false); }

}  // namespace

void add_scatter(KernelTable& t) {
  // The dtype of the first value selects the kernel: that is the indices' where
  // only a variable or no tensor precedes them.
  const auto add = [&](const char* op, DTypeSet types, DirectKernel kernel) {
    t.direct(op, types, kernel, "reference");
  };
  add("GatherNd", kEveryType, &gather_nd);
  add("ScatterNd", kIndexTypes, &scatter_nd);
  add("ScatterNdLike", kIndexTypes, &scatter_nd);
  add("TensorScatterUpdate", kEveryType, &tensor_scatter<Update>);
  add("TensorScatterAdd", kOwnNumbers, &tensor_scatter<Add>);
  add("TensorScatterSub", kOwnNumbers, &tensor_scatter<Sub>);
  add("TensorScatterMin", kOwnNumbers, &tensor_scatter<Min>);
  add("TensorScatterMax", kOwnNumbers, &tensor_scatter<Max>);
  add("ResourceScatterUpdate", kIndexTypes, &resource_scatter<Update, false>);
  add("ResourceScatterAdd", kIndexTypes, &resource_scatter<Add, false>);
  add("ResourceScatterSub", kIndexTypes, &resource_scatter<Sub, false>);
  add("ResourceScatterMul", kIndexTypes, &resource_scatter<Mul, false>);
  add("ResourceScatterDiv", kIndexTypes, &resource_scatter<Div, false>);
  add("ResourceScatterMin", kIndexTypes, &resource_scatter<Min, false>);
  add("ResourceScatterMax", kIndexTypes, &resource_scatter<Max, false>);
  add("ResourceScatterNdUpdate", kIndexTypes, &resource_scatter<Update, true>);
  add("ResourceScatterNdAdd", kIndexTypes, &resource_scatter<Add, true>);
  add("ResourceScatterNdSub", kIndexTypes, &resource_scatter<Sub, true>);
  add("UnsortedSegmentSum", kOwnNumbers | kMoreIntegers, &segment_sum);
  add("UnsortedSegmentProd", kOwnNumbers | kMoreIntegers, &segment_prod);
  add("UnsortedSegmentMin", kOwnNumbers | kMoreIntegers, &segment_min);
  add("UnsortedSegmentMax", kOwnNumbers | kMoreIntegers, &segment_max);
}

}  // namespace berth::reference
