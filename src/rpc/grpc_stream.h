// GrpcStream: messages to and from one task over one gRPC stream.
//
// GrpcHub is the only part of Berth that uses gRPC. Its server has no port of
// its own: it gets authenticated connections. With TLS it listens itself.
// Streams carry a ticket (hello.h) in both cases. Thread-safe.

#ifndef BERTH_RPC_GRPC_STREAM_H_
#define BERTH_RPC_GRPC_STREAM_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/hello.h"
#include "rpc/socket.h"

namespace berth::rpc {

// Bytes with another owner, in pieces.
struct StreamBytes {
  std::vector<iovec> parts;
  size_t size = 0;
  std::shared_ptr<void> owner;
};

class GrpcStream {
 public:
  struct Events {
    // The other end accepted the stream.
    std::function<void()> on_open;
    // Called for each message; returning false pauses until resume().
    std::function<bool(std::string)> on_message;
    // Called instead, without a copy, if set.
    std::function<bool(StreamBytes)> on_bytes;
    // The queue was handed to gRPC.
    std::function<void()> on_sent;
    // Called once, last. kUnavailable: it was not refused.
    std::function<void(const Refusal&)> on_closed;
  };
  virtual ~GrpcStream() = default;
  // Queues a message; never blocks. Has no effect after the end.
  virtual void send(std::string bytes) = 0;
  // Queues a message without a copy; `owner` lives until gRPC has sent the
  // parts, which are one message of at most 4 GiB.
  virtual void send_parts(std::shared_ptr<const void> owner,
                          std::span<const iovec> parts) = 0;
  // Bytes that wait to be sent.
  virtual size_t queued() const = 0;
  // Whether nothing is queued or being written, or the stream has ended.
  virtual bool idle() const = 0;
  virtual void resume() = 0;
  // Ends it once the queue is sent, or (`now`) at once.
  virtual void close(bool now = false) = 0;
};

struct TlsFiles {
  std::string ca, certificate, key;  // paths; all or none
  explicit operator bool() const { return !ca.empty(); }
};

class GrpcHub {
 public:
  // Returns the events for a stream that another task opened.
  using OnStream = std::function<GrpcStream::Events(std::shared_ptr<GrpcStream>,
                                                    const Hello&)>;

  // `listen`: with TLS, "host:port" to listen on. Throws
  // errors::InvalidArgument for files that cannot be read,
  // errors::AlreadyExists for a port in use.
  GrpcHub(const Handshake::Gate& gate, const TlsFiles& tls,
          const std::string& listen, OnStream on_stream);
  ~GrpcHub();
  // Ends all streams and waits for their on_closed, which may still call the
  // hub. If they do, call it before the destructor.
  void stop();

  int port() const;  // of TLS
  // Adds a connection that `from` dialled, after its hello.
  void add(Socket socket, const TaskId& from);
  // Opens a stream to a task. Without TLS it uses a connection to this task,
  // made by `connect` if there is none; what that throws is rethrown.
  std::shared_ptr<GrpcStream> open(const std::string& address,
                                   const Hello& hello,
                                   const std::function<Socket()>& connect,
                                   GrpcStream::Events events);
  // Opens no more streams over the connection to this task.
  void forget(const TaskId& task);

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::rpc

#endif  // BERTH_RPC_GRPC_STREAM_H_
