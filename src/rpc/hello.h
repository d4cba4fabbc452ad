// The hello: how two tasks prove to each other that they are of one cluster.
//
//   dialler:  "BERTHLNK", hello       its name, its peer, the purpose, a nonce
//   listener: challenge               a nonce; or a refusal with its reason
//   dialler:  proof                   HMAC-SHA256 of the secret over all this
//   listener: welcome                 its own proof; or a refusal
//
// The dialler proves itself first. A proof covers both nonces, the hello and
// the role, so it is useless in another connection or direction. No I/O here;
// values, thread-safe.

#ifndef BERTH_RPC_HELLO_H_
#define BERTH_RPC_HELLO_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "berth/cluster.h"
#include "berth/errors.h"

namespace berth::rpc {

using distribute::TaskId;

inline constexpr std::string_view kMagic = "BERTHLNK";
inline constexpr uint16_t kVersion = 1;
inline constexpr size_t kMostHelloBytes = 4096;
using Nonce = std::array<char, 32>;
using Proof = std::array<char, 32>;

struct Hello {
  uint64_t cluster = 0;  // ClusterSpec::hash()
  std::string build;     // BERTH_BUILD_ID
  uint64_t generation = 0;
  TaskId from, to;
  uint8_t purpose = 0;
  std::string channel;
  Nonce nonce{};
};

// Why a connection is refused. kUnavailable: not ready, retry.
struct Refusal {
  errors::Code code = errors::Code::kPermissionDenied;
  std::string reason;
};

std::string encode(const Hello& hello);
// Throws errors::DataLoss.
Hello parse_hello(std::string_view bytes);

Nonce random_nonce();
uint64_t random_number();
// `role`: "dialler" or "listener".
Proof prove(const std::string& secret, std::string_view role,
            std::string_view hello, const Nonce& nonce);
bool equal(const Proof& a, const Proof& b);  // in constant time

// The listener's answers: "n" and a nonce or a proof, or a refusal.
std::string encode_answer(const std::array<char, 32>& value);
std::string encode_answer(const Refusal& refusal);
// Throws errors::DataLoss.
std::optional<Refusal> parse_answer(std::string_view bytes,
                                    std::array<char, 32>* value);

// The listener's side of one connection, as bytes.
class Handshake {
 public:
  // The identity of this end, and who may connect.
  struct Gate {
    std::string secret;
    uint64_t cluster = 0;
    std::string build;
    TaskId self;
    // Whether an authenticated task may connect now. Called on any thread.
    std::function<std::optional<Refusal>(const Hello&)> admit;
  };
  explicit Handshake(const Gate& gate) : gate_(gate) {}

  enum class State { kReading, kAdmitted, kRefused };
  // How many bytes take() wants next: bytes after them stay unread.
  size_t wanted() const { return wanted_; }
  // Takes exactly wanted() bytes, and appends what is to be sent to `answer`.
  State take(std::string_view bytes, std::string* answer);

  const Hello& hello() const { return hello_; }
  // Set with kRefused: for the log.
  const std::string& reason() const { return reason_; }
  // Whether the dialler speaks the protocol.
  bool introduced() const { return step_ > 1; }

 private:
  State refuse(const Refusal& refusal, std::string* answer);

  const Gate& gate_;
  int step_ = 0;
  size_t wanted_ = kMagic.size() + 4;
  std::string bytes_;  // of the hello
  Hello hello_;
  Nonce nonce_{};
  std::string reason_;
};

// The dialler's side over a connected socket; returns a refusal, or nothing if
// both are proved. `broken`: set if the connection itself fails.
std::optional<Refusal> introduce(int fd, const Hello& hello,
                                 const std::string& secret,
                                 std::chrono::steady_clock::time_point deadline,
                                 std::string* broken);

// For gRPC streams, which are proved by a hello and its proof in the first
// message. Throws errors::DataLoss.
std::string encode_ticket(const Hello& hello, const std::string& secret);
Hello parse_ticket(std::string_view bytes, const Handshake::Gate& gate,
                   std::optional<Refusal>* refusal);

}  // namespace berth::rpc

#endif  // BERTH_RPC_HELLO_H_
