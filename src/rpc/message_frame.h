// Messages as bytes: a fixed-size head, the tensors' descriptions, the text,
// then the bytes of each tensor. Received bytes are checked before memory is
// allocated for them. No I/O; thread-safe.

#ifndef BERTH_RPC_MESSAGE_FRAME_H_
#define BERTH_RPC_MESSAGE_FRAME_H_

#include <sys/uio.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/message.h"

namespace berth::rpc {

enum class MessageKind : uint8_t { kRequest = 1, kReply = 2, kError = 3 };

struct MessageHead {
  MessageKind kind = MessageKind::kRequest;
  uint64_t id = 0;
  int32_t code = 0;  // for kError
  uint32_t tensors = 0;
  uint32_t meta_bytes = 0;
  uint32_t text_bytes = 0;
};
inline constexpr size_t kHeadBytes = 32;
inline constexpr uint32_t kMostTensors = 65536;
inline constexpr uint32_t kMostTextBytes = 256 << 20;
inline constexpr uint64_t kMostTensorBytes = uint64_t{64} << 30;  // in total

// A message ready to be written: `parts` point into `head` and the tensors.
struct OutgoingMessage {
  std::string head;  // head, meta and text
  std::vector<Tensor> tensors;
  std::vector<iovec> parts;
};
// Waits for the tensors' bytes. Throws errors::InvalidArgument for tensors that
// are empty, symbolic, handles, or too large.
OutgoingMessage pack(MessageKind kind, uint64_t id, int32_t code,
                     cluster::Message message);

struct TensorHead {
  DType dtype = DType::kInvalid;
  Shape shape;
  uint64_t bytes = 0;
};
// Both throw errors::DataLoss. `bytes`: kHeadBytes of them.
MessageHead parse_head(std::string_view bytes);
std::vector<TensorHead> parse_meta(std::string_view bytes, uint32_t tensors);

// Makes a tensor of strings from its block: offsets, then bytes. Throws
// errors::DataLoss.
Tensor strings_from(std::string_view block, const Shape& shape);

}  // namespace berth::rpc

#endif  // BERTH_RPC_MESSAGE_FRAME_H_
