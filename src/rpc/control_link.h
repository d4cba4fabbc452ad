// ControlLink: the frames between this task and the coordinator, which runs in
// one of the tasks: here, if that is this one. Thread-safe.

#ifndef BERTH_RPC_CONTROL_LINK_H_
#define BERTH_RPC_CONTROL_LINK_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "rpc/control.h"
#include "rpc/coordinator.h"
#include "rpc/dialer.h"
#include "rpc/grpc_stream.h"
#include "rpc/membership.h"

namespace berth::rpc {

class ControlLink {
 public:
  struct Events {
    // One frame at a time; `serial`: for heard().
    std::function<void(uint64_t serial, const Frame&)> on_frame;
    // The stream to the coordinator closed while the generation ran.
    std::function<void(const std::string& cause)> on_lost;
  };
  // Starts the coordinator if it runs here; it sends nothing yet.
  ControlLink(Membership& membership, Dialer& dialer, Events events);

  // From now on the coordinator runs here. `expected`: tasks of the last
  // generation that it waits for, unless it hears that they are gone.
  void coordinate(std::vector<TaskId> expected);
  // The task of this place coordinates: ends what this one had of it.
  void leave_it_to(size_t place);
  // The coordinator, if it runs here.
  std::shared_ptr<Coordinator> coordinator() const;

  // Connects to the coordinator; if that fails, connected() stays false.
  void open();
  // Sends a frame; has no effect while not connected.
  void post(Frame frame);
  // The stream of another task to the coordinator here.
  GrpcStream::Events take(std::shared_ptr<GrpcStream> stream,
                          const TaskId& from);
  // A task tried to connect here and was refused.
  void turned_away(const TaskId& from, const std::string& why);
  void heartbeat(int64_t step);
  // Sends heartbeats. Returns the stream of a coordinator that has been silent
  // for too long, else null.
  std::shared_ptr<GrpcStream> tick(double now, int64_t step);
  // Waits until the coordinator's frames are sent: its process may end then.
  void wait_until_sent(Deadline most) const;
  // Closes all streams, after what is still to be sent. `done`: all tasks have
  // finished.
  void close(bool done);
  void release();

  // Call these with the lock of the membership held.
  bool connected() const { return coordinator_ || stream_; }
  // Notes that the coordinator spoke; false for a frame of an earlier stream.
  bool heard(uint64_t serial);
  void refuse(Refusal why) { refused_ = std::move(why); }
  std::optional<Refusal> take_refusal() {
    return std::exchange(refused_, std::nullopt);
  }
  bool is_refused() const { return refused_.has_value(); }
  // Why the coordinator cannot be reached.
  const std::string& unreachable() const { return unreachable_; }
  // "for worker:1 (...)": whom the forming cluster waits for, as far as this
  // task knows.
  std::string missing() const;

 private:
  using Lock = Membership::Lock;
  using Phase = Membership::Phase;

  void on_closed(uint64_t serial, const Refusal& why);
  void send(uint64_t serial, int connection, const Coordinator::FramePtr& frame,
            bool close);

  Membership& m_;
  Dialer& dialer_;
  const Events events_;

  // Guarded by the membership's mutex.
  std::shared_ptr<GrpcStream> stream_;        // to the coordinator elsewhere
  std::shared_ptr<Coordinator> coordinator_;  // null: not here
  uint64_t serial_ = 0, closed_serial_ = 0;
  std::optional<Refusal> refused_;
  std::string unreachable_;
  double silent_ = 0, since_heartbeat_ = 0, last_tick_ = -1;  // seconds

  // Where the coordinator runs: its streams to the other tasks.
  mutable std::mutex streams_mutex_;
  std::map<int, std::shared_ptr<GrpcStream>> streams_;
  int next_stream_ = 1;               // 0: this process
  Coordinator::FramePtr encoded_of_;  // a broadcast frame ...
  std::string encoded_;               // ... is encoded once
};

}  // namespace berth::rpc

#endif  // BERTH_RPC_CONTROL_LINK_H_
