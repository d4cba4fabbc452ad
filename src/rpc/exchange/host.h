// Host: the tasks of one host and the memory that they share.
//
// The first rank leads: it creates the segment and sends it to each task that
// dials. The sockets stay open: a closed one means that a process has gone.
// Thread-safe.

#ifndef BERTH_RPC_EXCHANGE_HOST_H_
#define BERTH_RPC_EXCHANGE_HOST_H_

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "rpc/exchange/peers.h"
#include "rpc/exchange/segment.h"

namespace berth::exchange {

class Host {
 public:
  explicit Host(Peers& peers);

  const std::vector<int>& ranks() const { return ranks_; }
  int member() const { return member_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  // Gets it from the leader on first use; null if the task is alone on its
  // host. Throws the failure of the generation, errors::DeadlineExceeded.
  std::shared_ptr<Segment> segment(double seconds);
  std::shared_ptr<Segment> segment(Wait& wait);
  // Whether the process of a rank is known to have gone: the leader sees all,
  // others see the leader.
  bool gone(int rank);

 private:
  void send_file(Socket socket, int rank);
  void attach(double seconds);

  Peers& peers_;
  const std::vector<int> ranks_;
  int member_ = 0;
  std::mutex mutex_;
  std::shared_ptr<Segment> segment_;
  std::vector<std::pair<Socket, int>> sockets_;  // and their ranks
};

}  // namespace berth::exchange

#endif  // BERTH_RPC_EXCHANGE_HOST_H_
