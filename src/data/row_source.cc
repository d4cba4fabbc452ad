#include "data/row_source.h"

#include <cstring>

#include "device/device_manager.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"

namespace berth::data {

namespace {

constexpr size_t kLine = 64;  // bytes of a cache line
// How far ahead of the copy a row is asked for, and how much of it: the
// hardware follows by itself once a row has been begun.
constexpr size_t kAhead = 8;
constexpr size_t kAheadBytes = 1024;

// Rows of a size known to the compiler are moved without a call.
template <class Unit>
void gather_units(const std::byte* from, std::span<const int64_t> indices,
                  std::byte* to) {
  for (size_t i = 0; i < indices.size(); ++i) {
    std::memcpy(to + i * sizeof(Unit),
                from + static_cast<size_t>(indices[i]) * sizeof(Unit),
                sizeof(Unit));
  }
}

void gather_bytes(const std::byte* from, std::span<const int64_t> indices,
                  size_t bytes, std::byte* to) {
  const size_t ahead = std::min(bytes, kAheadBytes);
  for (size_t i = 0; i < indices.size(); ++i) {
    if (i + kAhead < indices.size()) {
      const std::byte* p =
          from + static_cast<size_t>(indices[i + kAhead]) * bytes;
      for (size_t k = 0; k < ahead; k += kLine) __builtin_prefetch(p + k);
    }
    std::memcpy(to + i * bytes, from + static_cast<size_t>(indices[i]) * bytes,
                bytes);
  }
}

bool consecutive(std::span<const int64_t> indices) {
  for (size_t i = 1; i < indices.size(); ++i) {
    if (indices[i] != indices[i - 1] + 1) return false;
  }
  return !indices.empty();
}

// Rows of text have no size of their own. [indices, ...] under `shape`.
Tensor gather_strings(const Tensor& t, std::span<const int64_t> indices,
                      const Shape& shape) {
  const int64_t n = t.num_elements(), rows = t.shape()[0];
  const int64_t width = rows == 0 ? 0 : n / rows;
  std::vector<std::string> all;
  for (const int64_t row : indices) {
    for (int64_t i = row * width; i < (row + 1) * width; ++i) {
      all.emplace_back(string_at(t.impl()->data(), n, i));
    }
  }
  return make_strings(all, shape);
}

}  // namespace

Device& host_device() { return DeviceManager::get().host(); }

Tensor make_batch(DType dtype, const Shape& shape) {
  Tensor t = make_pinned_tensor(dtype, shape);
  return t.defined() ? t : make_tensor(host_device(), dtype, shape);
}

std::vector<TensorSpec> batched(std::vector<TensorSpec> rows, int64_t count) {
  for (TensorSpec& spec : rows) spec.shape = batched(spec.shape, count);
  return rows;
}

Shape batched(const Shape& row, int64_t count) {
  Shape shape = row;
  shape.insert(0, count);
  return shape;
}

TensorRows::TensorRows(Tensors components)
    : components_(std::move(components)), count_(components_[0].shape()[0]) {
  for (const Tensor& t : components_) {
    TensorSpec spec = t.spec();
    spec.shape.erase(0);
    row_bytes_.push_back(static_cast<size_t>(spec.shape.num_elements()) *
                         size_of(spec.dtype));
    specs_.push_back(std::move(spec));
  }
}

bool TensorRows::bytes(int64_t index, std::span<const std::byte*> at) const {
  for (size_t c = 0; c < components_.size(); ++c) {
    if (specs_[c].dtype == string_) return false;
    at[c] = components_[c].impl()->data() +
            static_cast<size_t>(index) * row_bytes_[c];
  }
  return true;
}

void TensorRows::fetch(int64_t index) const {
  for (size_t c = 0; c < components_.size(); ++c) {
    const std::byte* at = components_[c].impl()->data() +
                          static_cast<size_t>(index) * row_bytes_[c];
    const size_t ahead = std::min(row_bytes_[c], kAheadBytes);
    for (size_t k = 0; k < ahead; k += kLine) __builtin_prefetch(at + k);
  }
}

void TensorRows::row(int64_t index, Tensors* out) const {
  out->resize(components_.size());
  for (size_t c = 0; c < components_.size(); ++c) {
    if (specs_[c].dtype == string_) {
      (*out)[c] = gather_strings(components_[c], {&index, 1}, specs_[c].shape);
      continue;
    }
    (*out)[c] = make_alias(components_[c], specs_[c].shape,
                           static_cast<size_t>(index) * row_bytes_[c]);
  }
}

void TensorRows::gather(std::span<const int64_t> indices, Tensors* out) const {
  out->resize(components_.size());
  const bool in_order = consecutive(indices);
  for (size_t c = 0; c < components_.size(); ++c) {
    const size_t bytes = row_bytes_[c];
    const std::byte* from = components_[c].impl()->data();
    const Shape shape =
        batched(specs_[c].shape, static_cast<int64_t>(indices.size()));
    if (specs_[c].dtype == string_) {
      (*out)[c] = gather_strings(components_[c], indices, shape);
      continue;
    }
    // Rows in a row need no copy, if they start where a tensor may and no
    // device would copy them faster from pinned memory.
    Tensor t = make_pinned_tensor(specs_[c].dtype, shape);
    if (in_order && !t.defined()) {
      const size_t offset = static_cast<size_t>(indices[0]) * bytes;
      if (reinterpret_cast<uintptr_t>(from + offset) % kLine == 0) {
        (*out)[c] = make_alias(components_[c], shape, offset);
        continue;
      }
    }
    if (!t.defined()) t = make_tensor(host_device(), specs_[c].dtype, shape);
    std::byte* to = t.impl()->data();
    switch (bytes) {
      case 0:
        break;
      case 1:
        gather_units<uint8_t>(from, indices, to);
        break;
      case 4:
        gather_units<uint32_t>(from, indices, to);
        break;
      case 8:
        gather_units<uint64_t>(from, indices, to);
        break;
      default:
        gather_bytes(from, indices, bytes, to);
    }
    (*out)[c] = std::move(t);
  }
}

void RangeRows::row(int64_t index, Tensors* out) const {
  out->resize(1);
  Tensor t = make_tensor(host_device(), int64, Shape{});
  *reinterpret_cast<int64_t*>(t.impl()->data()) = at(index);
  (*out)[0] = std::move(t);
}

void RangeRows::gather(std::span<const int64_t> indices, Tensors* out) const {
  out->resize(1);
  Tensor t = make_batch(int64, Shape{static_cast<int64_t>(indices.size())});
  int64_t* to = reinterpret_cast<int64_t*>(t.impl()->data());
  for (size_t i = 0; i < indices.size(); ++i) to[i] = at(indices[i]);
  (*out)[0] = std::move(t);
}

}  // namespace berth::data
