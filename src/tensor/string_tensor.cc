#include "tensor/string_tensor.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/errors.h"
#include "device/device_manager.h"
#include "tensor/tensor_impl.h"
#include "tensor/text_block.h"

namespace berth {

namespace {

// A block for `count` values of `bytes` bytes in all.
Tensor make_string_block(size_t count, size_t bytes, const Shape& shape) {
  Device& host = DeviceManager::get().host();
  TensorImpl* impl = new_tensor_impl();
  Tensor t = Tensor::adopt(impl);
  impl->dtype = string_;
  impl->kind = TensorKind::kConcrete;
  impl->shape = shape;
  impl->byte_offset = 0;
  impl->block = nullptr;
  impl->device = &host;
  impl->block =
      host.allocator().allocate((count + 1) * sizeof(uint64_t) + bytes);
  return t;
}

}  // namespace

Tensor make_texts(std::span<const uint64_t> starts, std::string_view all,
                  const Shape& shape) {
  Tensor t = make_string_block(starts.size(), all.size(), shape);
  auto* offsets = reinterpret_cast<uint64_t*>(t.impl()->block->data);
  std::copy(starts.begin(), starts.end(), offsets);
  offsets[starts.size()] = all.size();
  std::copy(all.begin(), all.end(),
            reinterpret_cast<char*>(offsets + starts.size() + 1));
  return t;
}

Tensor make_strings(std::span<const std::string> values, const Shape& shape) {
  size_t bytes = 0;
  for (const std::string& s : values) bytes += s.size();
  Tensor t = make_string_block(values.size(), bytes, shape);
  const TensorImpl* impl = t.impl();
  auto* offsets = reinterpret_cast<uint64_t*>(impl->block->data);
  auto* text = reinterpret_cast<char*>(offsets + values.size() + 1);
  uint64_t at = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    offsets[i] = at;
    std::copy(values[i].begin(), values[i].end(), text + at);
    at += values[i].size();
  }
  offsets[values.size()] = at;
  return t;
}

std::vector<std::string> strings_of(const Tensor& t) {
  const int64_t n = t.num_elements();
  std::vector<std::string> values;
  for (int64_t i = 0; i < n; ++i) {
    values.emplace_back(string_at(t.impl()->data(), n, i));
  }
  return values;
}

void check_holds_strings(const Device& device) {
  if (device.memory().host_addressable) return;
  throw errors::InvalidArgument(fmt::format(
      "a tensor of strings on {}; strings live on the host alone: use them "
      "outside of this device's scope, or turn them into numbers first",
      device.short_name()));
}

}  // namespace berth
