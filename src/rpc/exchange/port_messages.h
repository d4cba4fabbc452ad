// PortMessages: messages over a MessagePort (UCX), one port per channel.
//
// Two ranks tell each other the addresses of their ports over the socket of
// the channel, which is proved; it stays open, for its end means that the other
// process has gone, whatever UCX notices. One thread.

#ifndef BERTH_RPC_EXCHANGE_PORT_MESSAGES_H_
#define BERTH_RPC_EXCHANGE_PORT_MESSAGES_H_

#include <poll.h>

#include <list>
#include <memory>
#include <vector>

#include "rpc/exchange/messages.h"
#include "rpc/message_port.h"

namespace berth::exchange {

class PortMessages final : public Messages {
 public:
  PortMessages(Peers& peers, std::vector<int> ranks, int me);
  ~PortMessages() override;

  void begin(Wait& wait) override;
  void send(int to, uint64_t slot, const void* data, size_t bytes,
            Box& box) override;
  void receive(const std::vector<int>& from, uint64_t slot, void* data,
               size_t bytes, Box& box) override;
  void receive(int from, uint64_t slot, void* data, size_t bytes,
               Box& box) override;
  void end() override;
  void forget(Box& box) override;
  void abandon() override;

 private:
  struct Header;
  struct Arrived;
  struct Sending;
  struct Receiving;
  struct Posted;
  struct Pair;

  Pair& pair(int rank);
  bool connected(int rank, Pair& p);
  void read_hello(int rank, Pair& p);
  void look_at_socket(Pair& p);
  bool flush(Pair& p);
  void sort_arrivals();
  void take(int rank, Pair& p);
  bool finish_sends();
  bool finish_receives();
  bool move() override;
  void sleep() override;
  bool wants(int rank) const;      // something that has not come
  bool busy_with(int rank) const;  // something that is on its way
  int awaited() const;
  [[noreturn]] void closed(int rank, const std::string& cause);

  std::vector<std::unique_ptr<Pair>> pairs_;
  std::vector<Posted> posted_;
  std::list<Sending> sending_;  // UCX points to these
  std::list<Receiving> receiving_;
  rpc::PortOp flushed_;
  std::vector<pollfd> polled_;
  std::unique_ptr<rpc::MessagePort> port_;  // null after a failed call
};

}  // namespace berth::exchange

#endif  // BERTH_RPC_EXCHANGE_PORT_MESSAGES_H_
