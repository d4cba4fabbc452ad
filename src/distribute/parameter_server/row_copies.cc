#include "distribute/parameter_server/row_copies.h"

#include <fmt/format.h>

#include <cstring>

#include "berth/errors.h"
#include "device/device_manager.h"
#include "tensor/tensor_impl.h"

namespace berth::distribute {

namespace {

Tensor host_tensor(DType dtype, const Shape& shape) {
  return make_tensor(DeviceManager::get().host(), dtype, shape);
}

size_t row_bytes_of(const Tensor& t, int64_t rows) {
  return rows == 0 ? 0 : t.impl()->size_bytes() / static_cast<size_t>(rows);
}

}  // namespace

std::vector<int64_t> ids_of(const Tensor& t) {
  return t.to_vector<int64_t>({});
}

IdsWithin ids_within(const std::vector<int64_t>& ids, int64_t begin,
                     int64_t end) {
  IdsWithin within;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < begin || ids[i] >= end) continue;
    within.ids.push_back(ids[i] - begin);
    within.places.push_back(static_cast<int64_t>(i));
  }
  return within;
}

void check_ids(const std::vector<int64_t>& ids, int64_t rows,
               const std::string& what) {
  for (const int64_t id : ids) {
    if (id >= 0 && id < rows) continue;
    throw errors::InvalidArgument(fmt::format(
        "{}: index {} is out of range; expected 0 to {}", what, id, rows - 1));
  }
}

Tensor ids_tensor(const std::vector<int64_t>& ids) {
  Tensor t = host_tensor(int64, Shape{static_cast<int64_t>(ids.size())});
  if (!ids.empty()) {
    std::memcpy(t.impl()->data(), ids.data(), ids.size() * sizeof(int64_t));
  }
  return t;
}

Tensor joined_rows(const Tensors& parts, const Shape& shape) {
  Tensor whole = host_tensor(parts[0].dtype(), shape);
  std::byte* to = whole.impl()->data();
  size_t left = whole.impl()->size_bytes();
  for (const Tensor& p : parts) {
    const size_t bytes = p.impl()->size_bytes();
    if (bytes > left) break;
    std::memcpy(to, p.impl()->data(), bytes);
    to += bytes;
    left -= bytes;
  }
  if (left == 0) return whole;
  throw errors::DataLoss(
      fmt::format("parameter servers gave parts of {} that do not make it up",
                  shape.str()));
}

Tensor placed_rows(const Tensors& parts,
                   const std::vector<std::vector<int64_t>>& places,
                   const Shape& shape, DType dtype) {
  Tensor whole = host_tensor(dtype, shape);
  int64_t n = 0;
  for (const auto& p : places) n += static_cast<int64_t>(p.size());
  const size_t bytes = row_bytes_of(whole, n);
  for (size_t p = 0; p < parts.size(); ++p) {
    if (parts[p].impl()->size_bytes() != bytes * places[p].size()) {
      throw errors::DataLoss("a parameter server gave other rows than asked");
    }
    for (size_t i = 0; i < places[p].size(); ++i) {
      std::memcpy(
          whole.impl()->data() + static_cast<size_t>(places[p][i]) * bytes,
          parts[p].impl()->data() + i * bytes, bytes);
    }
  }
  return whole;
}

Tensor cut_rows(const Tensor& t, int64_t begin, int64_t end) {
  if (t.rank() == 0 || end > t.shape()[0]) {
    throw errors::InvalidArgument(fmt::format("rows {} to {} are cut out of {}",
                                              begin, end, t.spec().str()));
  }
  const size_t bytes = row_bytes_of(t, t.shape()[0]);
  Shape shape = t.shape();
  shape[0] = end - begin;
  return make_alias(t, shape, static_cast<size_t>(begin) * bytes);
}

Tensor picked_rows(const Tensor& t, const std::vector<int64_t>& places,
                   const Shape& ids) {
  Shape shape{static_cast<int64_t>(places.size())};
  for (int i = ids.rank(); i < t.rank(); ++i) shape.push_back(t.shape()[i]);
  const int64_t n = ids.num_elements();
  int64_t row = 1;
  for (int i = 1; i < shape.rank(); ++i) row *= shape[i];
  if (t.rank() < ids.rank() || n * row != t.num_elements()) {
    throw errors::InvalidArgument(
        fmt::format("rows {} for ids {}; expected one row for each",
                    t.spec().str(), ids.str()));
  }
  const size_t bytes = row_bytes_of(t, n);
  Tensor rows = host_tensor(t.dtype(), shape);
  for (size_t i = 0; i < places.size(); ++i) {
    std::memcpy(rows.impl()->data() + i * bytes,
                t.impl()->data() + static_cast<size_t>(places[i]) * bytes,
                bytes);
  }
  return rows;
}

}  // namespace berth::distribute
