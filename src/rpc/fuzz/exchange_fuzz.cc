// Bytes from another rank of an exchange: after the handshake, to the
// SocketMessages that waits for two messages. The first byte chooses how they
// begin: as they are, or after a header that this build sends.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "rpc/exchange/exchange_testing.h"
#include "rpc/exchange/socket_messages.h"

using namespace berth;
using namespace berth::exchange;

namespace {

constexpr size_t kWanted = 64;

ExchangeCall call() {
  ExchangeCall c;
  c.sequence = 1;
  c.kind = CallKind::kAllReduce;
  c.dtype = float32;
  c.count = 16;
  return c;
}

// Runs `work` on rank 0 of two, whose rank 1 does `answer` when it is dialled.
template <class Work>
void with_wire(std::function<void(Accepted)> answer, Work work) {
  Board board{};
  TestLink a(board, 0, {0, 1}, 5), b(board, 1, {0, 1}, 5);
  b.accept(Purpose::kExchange, std::move(answer));
  {
    Peers peers(a, {});
    try {
      Wait wait(peers, peers.channel("fuzz"), call(), 5);
      SocketMessages messages(peers, {0, 1}, 0);
      messages.begin(wait);
      SocketMessages::Box box;
      work(messages, box);
    } catch (const errors::Error&) {
    }
    peers.detach();
  }
  b.accept(Purpose::kExchange, {});
}

// What a rank sends in front of `kWanted` bytes.
std::string header() {
  std::vector<Socket> kept;
  std::string got(4096, '\0');
  with_wire(
      [&](Accepted accepted) { kept.push_back(std::move(accepted.socket)); },
      [&](SocketMessages& messages, SocketMessages::Box& box) {
        const char data[kWanted] = {};
        messages.send(1, 0, data, kWanted, box);
        messages.wait_sent(box, 1);
      });
  const ssize_t n = recv(kept.at(0).fd(), got.data(), got.size(), 0);
  if (n <= static_cast<ssize_t>(kWanted)) std::abort();
  got.resize(n - kWanted);
  return got;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const auto& head = *new std::string(header());
  const std::string bytes =
      (data[0] % 2 == 0 ? std::string() : head) +
      std::string(reinterpret_cast<const char*>(data) + 1, size - 1);
  with_wire(
      [&](Accepted accepted) {
        rpc::write_all(accepted.socket.fd(), bytes.data(), bytes.size(),
                       after(1));
      },
      [&](SocketMessages& messages, SocketMessages::Box& box) {
        char first[kWanted], second[kWanted];
        messages.receive(1, 0, first, kWanted, box);
        messages.receive(1, 1, second, kWanted, box);
        messages.wait_received(box, 2);
        for (const int64_t n : box.bytes) {
          if (n < 0 || n > static_cast<int64_t>(kWanted)) std::abort();
        }
      });
  return 0;
}
