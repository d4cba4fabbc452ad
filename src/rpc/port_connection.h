// PortConnection: calls whose large tensors UCX moves.
//
// Heads, texts and small tensors travel over the proved socket, and so do order
// and the end of the other process. Each end receives at one port, which only
// the thread that reads uses, and sends from another. After a failure of one
// direction its port is gone, and with it what UCX knew of the tensors.

#ifndef BERTH_RPC_PORT_CONNECTION_H_
#define BERTH_RPC_PORT_CONNECTION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "rpc/connection.h"
#include "rpc/message_port.h"

namespace berth::rpc {

class PortConnection final : public SocketConnection {
 public:
  static constexpr size_t kLarge = 64 << 10;  // bytes of a tensor

  // Both ends tell each other their ports. Throws errors::Unavailable.
  PortConnection(Socket socket, bool loopback);

  std::string read_tensor(void* data, size_t bytes) override;
  std::string write(OutgoingMessage message) override;
  bool write_now(OutgoingMessage* message) override;

 private:
  // What a message of a port begins with.
  struct Head {
    uint32_t magic = 0x43787542;  // "BuxC"
    uint32_t zero = 0;
    PortToken token{};
    uint64_t serial = 0;
  };

  std::string send(const void* data, size_t bytes);
  std::string receive(void* data, size_t bytes);
  void sort_arrivals();
  template <class Done>
  std::string wait(MessagePort& port, Done done);
  bool hung_up(int milliseconds, int port_fd = -1) const;

  std::unique_ptr<MessagePort> in_, out_;  // null after a failure
  PortToken mine_, theirs_{};              // of messages to this end, to theirs
  int to_ = -1;                            // the connection of out_
  uint64_t sent_ = 0, came_ = 0;           // serials
  std::map<uint64_t, PortArrival> early_;  // messages may overtake one another
};

}  // namespace berth::rpc

#endif  // BERTH_RPC_PORT_CONNECTION_H_
