// Bytes from the network: the first one selects the parser for the rest, or
// BERTH_FUZZ_PARSER=0 to 5 does.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "berth/errors.h"
#include "rpc/control.h"
#include "rpc/hello.h"
#include "rpc/message_frame.h"
#include "tensor/string_tensor.h"

using namespace berth;
using namespace berth::rpc;

namespace {

const Handshake::Gate& gate() {
  static const auto& gate =
      *new Handshake::Gate{"s", 7, "build", {"worker", 0}, [](const Hello&) {
                             return std::nullopt;
                           }};
  return gate;
}

// What a listener does with the bytes of a connection.
void connection(std::string_view bytes) {
  Handshake handshake(gate());
  auto state = Handshake::State::kReading;
  std::string answer;
  while (state == Handshake::State::kReading &&
         bytes.size() >= handshake.wanted()) {
    const std::string_view part = bytes.substr(0, handshake.wanted());
    bytes.remove_prefix(part.size());
    state = handshake.take(part, &answer);
  }
  // A proof cannot be guessed.
  if (state == Handshake::State::kAdmitted) std::abort();
}

// What was read encodes to the same bytes.
void frame(std::string_view bytes) {
  const Frame f = parse_frame(bytes);
  if (f.value == f.value && parse_frame(encode(f)) != f) std::abort();
}

void message(std::string_view bytes) {
  if (bytes.size() < kHeadBytes) return;
  const MessageHead head = parse_head(bytes.substr(0, kHeadBytes));
  bytes.remove_prefix(kHeadBytes);
  if (head.meta_bytes > bytes.size()) return;
  const auto heads = parse_meta(bytes.substr(0, head.meta_bytes), head.tensors);
  bytes.remove_prefix(head.meta_bytes);
  for (const TensorHead& t : heads) {
    if (t.bytes > bytes.size()) return;
    if (t.dtype == string_) {
      strings_of(strings_from(bytes.substr(0, t.bytes), t.shape));
    }
    bytes.remove_prefix(t.bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1,
                               size - 1);
  static const char* const only = std::getenv("BERTH_FUZZ_PARSER");
  try {
    switch ((only ? std::atoi(only) : data[0]) % 6) {
      case 0:
        connection(bytes);
        break;
      case 1:
        frame(bytes);
        break;
      case 2:
        message(bytes);
        break;
      case 3: {
        std::optional<Refusal> refusal;
        parse_ticket(bytes, gate(), &refusal);
        if (!refusal) std::abort();
        break;
      }
      case 4: {
        Nonce value;
        parse_answer(bytes, &value);
        break;
      }
      default:
        parse_hello(bytes);
    }
  } catch (const errors::Error&) {
  }
  return 0;
}
