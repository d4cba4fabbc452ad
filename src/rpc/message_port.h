// MessagePort: messages that a network moves from memory to memory, by the
// plug-in libberth_ucx.so (UCX). What the exchange and the calls of services
// need of it; which task may send is decided above.
//
// A port has an address, which the other end gets over a proved connection.
// Anybody who learns an address may send to it: each message therefore carries
// the token that its receiver gave to that sender (PortHello), and one without
// is dropped. One thread at a time; nothing happens outside its calls.

#ifndef BERTH_RPC_MESSAGE_PORT_H_
#define BERTH_RPC_MESSAGE_PORT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace berth::rpc {

// What BERTH_TRANSPORT asks for. Throws errors::InvalidArgument for any other
// value than auto, sockets, memory,ucx and ucx.
struct Transport {
  bool memory = true;  // between tasks of one host
  bool ucx = false;    // instead of sockets
};
Transport transport_of_environment();

// A message on its way from or to memory, which stays valid until `done`, or
// until the port is gone. So does this.
struct PortOp {
  bool done = false;
  const char* error = nullptr;  // why it failed
};

// A message that has come. Its data may still be at its sender.
struct PortArrival {
  std::string head;
  size_t bytes = 0;             // of the data
  void* held = nullptr;         // by the port, until received or dropped
  bool far = false;             // at the sender
  std::vector<std::byte> data;  // if nothing is held
};

class MessagePort {
 public:
  static constexpr size_t kMostHead = 256;  // bytes

  // Ends what is under way: afterwards nobody reads or writes its memory.
  virtual ~MessagePort() = default;

  virtual std::string address() const = 0;
  // The number of a new connection to a port. Throws errors::Unavailable with
  // UCX's reason.
  virtual int connect(std::string_view address) = 0;
  // Why a connection has ended; null if it has not.
  virtual const char* broken(int connection) const = 0;

  // `head` and the data stay valid like the op.
  virtual void send(int connection, std::string_view head, const void* data,
                    size_t bytes, PortOp& op) = 0;
  // The next message, in any order; false: none is there.
  virtual bool next(PortArrival* arrival) = 0;
  // Moves its data to memory with room for them.
  virtual void receive(PortArrival& arrival, void* data, PortOp& op) = 0;
  virtual void drop(PortArrival& arrival) = 0;
  // Done once what was sent before needs no more calls of this end.
  virtual void flush(PortOp& op) = 0;

  // Moves what can be moved now; returns whether something did.
  virtual bool progress() = 0;
  // Readable when progress() has work, after arm() has returned true.
  virtual int fd() const = 0;
  virtual bool arm() = 0;
};

// Opens the plug-in. Throws errors::FailedPrecondition with what to install.
void require_ucx();
// `loopback`: it can be reached from this machine only. Throws as
// require_ucx(), and errors::Unavailable if UCX does not start.
std::unique_ptr<MessagePort> open_port(bool loopback);

using PortToken = std::array<char, 16>;
PortToken random_token();
bool equal(const PortToken& a, const PortToken& b);  // in constant time
// Says once that a message without the token of a task was dropped.
void tell_dropped();

// What each end of a proved connection tells the other, before any message.
struct PortHello {
  PortToken token{};    // that the other's messages must carry
  uint32_t number = 0;  // and the number by which this end knows it
  std::string address;
};
// Begins with its length.
std::string encode(const PortHello& hello);
// Takes one from the front of what has been read; false: more bytes are
// missing. Throws errors::DataLoss for what is none.
bool parse_port_hello(std::string_view bytes, PortHello* hello);
// How many bytes the hello that begins like this has; 0: not known yet.
size_t port_hello_bytes(std::string_view bytes);

// The symbol `berth_ucx_plugin` of libberth_ucx.so.
struct UcxPlugin {
  const char* build_id;
  std::unique_ptr<MessagePort> (*open)(bool loopback);
};

}  // namespace berth::rpc

#endif  // BERTH_RPC_MESSAGE_PORT_H_
