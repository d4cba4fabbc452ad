// A socket whose bytes travel over a gRPC stream (transport "grpc").

#ifndef BERTH_RPC_TUNNEL_H_
#define BERTH_RPC_TUNNEL_H_

#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "rpc/socket.h"
#include "rpc/threads.h"
#include "rpc/wire.h"

namespace berth::rpc {

// One end: a socket for the user and two threads that move bytes between it and
// a wire until either closes.
class Tunnel : public std::enable_shared_from_this<Tunnel> {
 public:
  // Throws errors::ResourceExhausted.
  static std::shared_ptr<Tunnel> make();

  Wire::Events events();
  // Starts the threads; returns the user's end.
  Socket start(std::shared_ptr<Wire> wire, Threads& threads);
  // Waits until the other end accepts the stream; returns why it did not.
  std::optional<Refusal> wait_open(Deadline deadline);

 private:
  void pump_in();   // from the wire
  void pump_out();  // to the wire

  Socket user_, inner_;
  std::shared_ptr<Wire> wire_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<WireBytes> incoming_;
  size_t incoming_bytes_ = 0;
  bool paused_ = false, open_ = false, closed_ = false;
  Refusal why_;
};

}  // namespace berth::rpc

#endif  // BERTH_RPC_TUNNEL_H_
