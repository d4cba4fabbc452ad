// RowSource: what the row numbers of an indexed dataset stand for.
//
// Immutable; thread-safe.

#ifndef BERTH_DATA_ROW_SOURCE_H_
#define BERTH_DATA_ROW_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "berth/tensor.h"

namespace berth {
class Device;
}

namespace berth::data {

class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual int64_t count() const = 0;
  // Whether `index`, not negative, names a row.
  virtual bool holds(int64_t index) const { return index < count(); }
  // One spec per component of one row.
  virtual const std::vector<TensorSpec>& specs() const = 0;
  // Whether rows are computed when they are asked for.
  virtual bool maps() const { return false; }
  // Sets at[c] to the bytes of component c of row `index`; false when they do
  // not lie in memory.
  virtual bool bytes(int64_t, std::span<const std::byte*>) const {
    return false;
  }
  // Row `index` will be read soon.
  virtual void fetch(int64_t) const {}
  // Sets `out` to row `index`.
  virtual void row(int64_t index, Tensors* out) const = 0;
  // Sets `out` to the rows `indices` on top of each other: [indices, ...].
  virtual void gather(std::span<const int64_t> indices, Tensors* out) const = 0;
};

// Rows of host tensors [n, ...] with equal n.
class TensorRows : public RowSource {
 public:
  // `components` are concrete, dense and on the host.
  explicit TensorRows(Tensors components);
  int64_t count() const override { return count_; }
  const std::vector<TensorSpec>& specs() const override { return specs_; }
  bool bytes(int64_t index, std::span<const std::byte*> at) const override;
  void fetch(int64_t index) const override;
  void row(int64_t index, Tensors* out) const override;
  void gather(std::span<const int64_t> indices, Tensors* out) const override;

 private:
  Tensors components_;
  int64_t count_ = 0;
  std::vector<TensorSpec> specs_;
  std::vector<size_t> row_bytes_;
};

// start, start + step, ... as int64 scalars.
class RangeRows : public RowSource {
 public:
  RangeRows(int64_t start, int64_t step, int64_t count)
      : start_(start), step_(step), count_(count) {}
  int64_t count() const override { return count_; }
  const std::vector<TensorSpec>& specs() const override { return specs_; }
  void row(int64_t index, Tensors* out) const override;
  void gather(std::span<const int64_t> indices, Tensors* out) const override;

 private:
  int64_t at(int64_t index) const {
    // Wraps as unsigned numbers do; the result itself is in range.
    return static_cast<int64_t>(static_cast<uint64_t>(start_) +
                                static_cast<uint64_t>(step_) *
                                    static_cast<uint64_t>(index));
  }
  int64_t start_, step_, count_;
  std::vector<TensorSpec> specs_{{Shape{}, int64, {}}};
};

// Returns `row` with a first dimension of `count`.
Shape batched(const Shape& row, int64_t count);
std::vector<TensorSpec> batched(std::vector<TensorSpec> rows, int64_t count);

// The device of all elements.
Device& host_device();

// Returns an uninitialised tensor for a batch, which devices will read.
Tensor make_batch(DType dtype, const Shape& shape);

}  // namespace berth::data

#endif  // BERTH_DATA_ROW_SOURCE_H_
