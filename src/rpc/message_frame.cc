#include "rpc/message_frame.h"

#include <fmt/format.h>

#include "berth/errors.h"
#include "device/device_manager.h"
#include "rpc/bytes.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"
#include "tensor/text_block.h"

namespace berth::rpc {

namespace {

constexpr uint32_t kWord = 0x4752534d;  // "MSRG"

uint64_t block_bytes(const Tensor& t) {
  if (t.dtype() != string_) return t.impl()->size_bytes();
  const auto n = static_cast<uint64_t>(t.num_elements());
  const auto* offsets = reinterpret_cast<const uint64_t*>(t.impl()->data());
  return (n + 1) * sizeof(uint64_t) + offsets[n];
}

// The tensor with its bytes in host memory, all written and no longer changing.
Tensor settled(const Tensor& t, size_t index) {
  if (!t.defined() || t.is_symbolic() || t.dtype() == resource) {
    throw errors::InvalidArgument(fmt::format(
        "tensor {} of a message is {}; expected one with values", index,
        !t.defined()      ? "empty"
        : t.is_symbolic() ? "symbolic, inside a traced function"
                          : "a variable's handle"));
  }
  if (t.dtype() == string_) return t;
  Tensor own = own_copy(t, DeviceManager::get().host());
  synchronize(own.impl()->block->ready);
  return own;
}

}  // namespace

OutgoingMessage pack(MessageKind kind, uint64_t id, int32_t code,
                     cluster::Message message) {
  OutgoingMessage out;
  ByteWriter meta;
  uint64_t total = 0;
  for (size_t i = 0; i < message.tensors.size(); ++i) {
    out.tensors.push_back(settled(message.tensors[i], i));
    const Tensor& t = out.tensors.back();
    const uint64_t bytes = block_bytes(t);
    total += bytes;
    meta.number<uint8_t>(static_cast<uint8_t>(t.dtype()));
    meta.number<uint8_t>(static_cast<uint8_t>(t.rank()));
    for (const int64_t d : t.shape()) meta.number<int64_t>(d);
    meta.number<uint64_t>(bytes);
  }
  if (total > kMostTensorBytes || out.tensors.size() > kMostTensors ||
      message.text.size() > kMostTextBytes) {
    throw errors::InvalidArgument(fmt::format(
        "a message has {} tensors of {} bytes and a text of {}; at most {} of "
        "{} bytes and {} are allowed: send it in parts",
        out.tensors.size(), total, message.text.size(), kMostTensors,
        kMostTensorBytes, kMostTextBytes));
  }
  const std::string described = meta.take();
  ByteWriter head;
  head.number<uint32_t>(kWord);
  head.number<uint8_t>(static_cast<uint8_t>(kind));
  head.raw(std::string_view("\0\0\0", 3));
  head.number<uint64_t>(id);
  head.number<int32_t>(code);
  head.number<uint32_t>(static_cast<uint32_t>(out.tensors.size()));
  head.number<uint32_t>(static_cast<uint32_t>(described.size()));
  head.number<uint32_t>(static_cast<uint32_t>(message.text.size()));
  head.raw(described);
  head.raw(message.text);
  out.head = head.take();
  out.parts.push_back({out.head.data(), out.head.size()});
  for (const Tensor& t : out.tensors) {
    out.parts.push_back({t.impl()->data(), block_bytes(t)});
  }
  return out;
}

MessageHead parse_head(std::string_view bytes) {
  ByteReader r(bytes);
  MessageHead h;
  const auto word = r.number<uint32_t>();
  const auto kind = r.number<uint8_t>();
  r.raw(3);
  h.id = r.number<uint64_t>();
  h.code = r.number<int32_t>();
  h.tensors = r.number<uint32_t>();
  h.meta_bytes = r.number<uint32_t>();
  h.text_bytes = r.number<uint32_t>();
  r.end();
  constexpr uint32_t kMostMeta = 2 + 8 * kMaxRank + 8;  // bytes per tensor
  if (word != kWord || kind < 1 || kind > 3 || h.tensors > kMostTensors ||
      h.meta_bytes > h.tensors * kMostMeta || h.text_bytes > kMostTextBytes) {
    throw errors::DataLoss(fmt::format(
        "a message of the cluster has no valid head (kind {}, {} tensors, {} "
        "and {} bytes)",
        kind, h.tensors, h.meta_bytes, h.text_bytes));
  }
  h.kind = static_cast<MessageKind>(kind);
  return h;
}

std::vector<TensorHead> parse_meta(std::string_view bytes, uint32_t tensors) {
  ByteReader r(bytes);
  std::vector<TensorHead> heads;
  uint64_t total = 0;
  for (uint32_t i = 0; i < tensors; ++i) {
    TensorHead t;
    const auto dtype = r.number<uint8_t>();
    const auto rank = r.number<uint8_t>();
    if (dtype == 0 || dtype >= kNumDTypes || rank > kMaxRank) {
      throw errors::DataLoss(fmt::format(
          "tensor {} of a message has dtype {} and rank {}", i, dtype, rank));
    }
    t.dtype = static_cast<DType>(dtype);
    bool negative = false;
    for (int axis = 0; axis < rank; ++axis) {
      t.shape.push_back(r.number<int64_t>());
      negative = negative || t.shape[axis] < 0;
    }
    t.bytes = r.number<uint64_t>();
    const int64_t n = negative ? -1 : t.shape.num_elements();
    const size_t size = size_of(t.dtype);
    const bool text = t.dtype == string_;
    const uint64_t least =
        n < 0 || n > kMostElements ? UINT64_MAX
        : text ? (static_cast<uint64_t>(n) + 1) * sizeof(uint64_t)
               : static_cast<uint64_t>(n) * size;
    total += std::min(t.bytes, kMostTensorBytes + 1);
    if ((size == 0 && !text) || t.bytes > kMostTensorBytes ||
        total > kMostTensorBytes ||
        (text ? t.bytes < least : t.bytes != least)) {
      throw errors::DataLoss(
          fmt::format("tensor {} of a message is {}{} of {} bytes, which "
                      "cannot be",
                      i, name_of(t.dtype), t.shape.str(), t.bytes));
    }
    heads.push_back(t);
  }
  r.end();
  return heads;
}

Tensor strings_from(std::string_view block, const Shape& shape) {
  const auto n = static_cast<uint64_t>(shape.num_elements());
  const size_t table = (n + 1) * sizeof(uint64_t);
  if (block.size() < table) {
    throw errors::DataLoss("a tensor of strings of a message is cut");
  }
  std::vector<uint64_t> offsets(n + 1);
  std::memcpy(offsets.data(), block.data(), table);
  const std::string_view text = block.substr(table);
  for (uint64_t i = 0; i <= n; ++i) {
    const uint64_t least = i ? offsets[i - 1] : 0;
    if (offsets[i] < least || offsets[i] > text.size() ||
        (i == 0 && offsets[0] != 0)) {
      throw errors::DataLoss(
          "a tensor of strings of a message has offsets that cannot be");
    }
  }
  if (offsets[n] != text.size()) {
    throw errors::DataLoss("a tensor of strings of a message is too long");
  }
  offsets.pop_back();
  return make_texts(offsets, text, shape);
}

}  // namespace berth::rpc
