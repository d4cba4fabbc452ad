// Connection: what calls travel over: an own socket, or a stream
// of gRPC that sends tensors from where they lie and is read into where they
// belong. One thread reads while others write in turn; shutdown() from any
// thread.

#ifndef BERTH_RPC_CONNECTION_H_
#define BERTH_RPC_CONNECTION_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "rpc/grpc_stream.h"
#include "rpc/message_frame.h"
#include "rpc/socket.h"

namespace berth::rpc {

class Connection {
 public:
  virtual ~Connection() = default;
  // All of it; "" or what went wrong, as in socket.h.
  virtual std::string read(void* data, size_t bytes) = 0;
  // The whole of a part of a message that has one tensor of numbers.
  virtual std::string read_tensor(void* data, size_t bytes) {
    return read(data, bytes);
  }
  virtual std::string write(OutgoingMessage message) = 0;
  // Sends what can be sent without waiting; false: write() sends the rest.
  virtual bool write_now(OutgoingMessage* message) = 0;
  // Both ends read and write no more.
  virtual void shutdown() = 0;
};

class SocketConnection : public Connection {
 public:
  explicit SocketConnection(Socket socket) : socket_(std::move(socket)) {}

  std::string read(void* data, size_t bytes) override {
    return read_all(socket_.fd(), data, bytes);
  }
  std::string write(OutgoingMessage message) override {
    return write_all(socket_.fd(), message.parts);
  }
  bool write_now(OutgoingMessage* message) override;
  void shutdown() override { socket_.shutdown(); }

 protected:
  int fd() const { return socket_.fd(); }

 private:
  const Socket socket_;
};

enum class Route : uint8_t;

// Over it; large tensors by UCX if BERTH_TRANSPORT asks for that and the socket
// is one of TCP. `loopback`: all tasks are on this machine. Throws
// errors::Unavailable.
std::shared_ptr<Connection> connection_of(Socket socket, Route route,
                                          bool loopback);

// One end of a stream of gRPC; the destructor closes it.
class GrpcConnection final : public Connection {
 public:
  GrpcConnection();
  ~GrpcConnection() override;

  // For the stream, which may call them before attach() and after the
  // destructor.
  GrpcStream::Events events();
  void attach(std::shared_ptr<GrpcStream> stream);
  // Until the other end took the stream; why not, if it did not.
  std::optional<Refusal> wait_open(Deadline deadline);

  std::string read(void* data, size_t bytes) override;
  std::string write(OutgoingMessage message) override;
  bool write_now(OutgoingMessage* message) override;
  void shutdown() override { close(false); }

  // What came next, as it came; nothing at the end.
  std::optional<StreamBytes> next();
  // Waits while much is queued; false once the stream is closed. `owner` lives
  // until gRPC has sent the parts.
  bool send(std::shared_ptr<const void> owner, std::span<const iovec> parts);
  // Ends it once what was queued is sent, or (`now`) at once.
  void close(bool now);

 private:
  struct State;
  const std::shared_ptr<State> state_;
  StreamBytes reading_;  // the message that read() is in
  size_t part_ = 0, offset_ = 0;
};

}  // namespace berth::rpc

#endif  // BERTH_RPC_CONNECTION_H_
