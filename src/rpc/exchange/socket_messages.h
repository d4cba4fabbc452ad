// SocketMessages: messages between ranks of different hosts, on one channel.
//
// One socket per pair, connected on first use. It has no thread: the waiting
// thread moves bytes. A message goes to the receive posted for its slot; each
// carries the sender's call, which must equal the receiver's. One thread.

#ifndef BERTH_RPC_EXCHANGE_SOCKET_MESSAGES_H_
#define BERTH_RPC_EXCHANGE_SOCKET_MESSAGES_H_

#include <poll.h>

#include <deque>
#include <memory>
#include <vector>

#include "rpc/exchange/peers.h"

namespace berth::exchange {

class SocketMessages {
 public:
  // Counts the finished messages that refer to it.
  struct Box {
    std::vector<int> sent, received;  // receivers, senders; in order
    std::vector<int64_t> bytes;       // of those received
    void clear() {
      sent.clear();
      received.clear();
      bytes.clear();
    }
  };

  // `ranks`: of the exchange, by position here; `me`: the own position.
  SocketMessages(Peers& peers, std::vector<int> ranks, int me);
  ~SocketMessages();

  int me() const { return me_; }
  int size() const { return static_cast<int>(ranks_.size()); }

  // All messages until the next begin() belong to this call.
  void begin(Wait& wait);
  // The memory must stay valid until the box counts the message.
  void send(int to, uint64_t slot, const void* data, size_t bytes, Box& box);
  // Receives from any of `from`; a shorter message is allowed.
  void receive(const std::vector<int>& from, uint64_t slot, void* data,
               size_t bytes, Box& box);
  void receive(int from, uint64_t slot, void* data, size_t bytes, Box& box);
  // Waits until the box has counted this many.
  void wait_sent(Box& box, size_t count);
  void wait_received(Box& box, size_t count);
  // Drops messages that refer to the box after a failed call.
  void forget(Box& box);

 private:
  struct Header;
  struct Outgoing;
  struct Posted;
  struct Stray;
  struct Pair;

  Pair& pair(int rank);
  bool flush(int rank, Pair& p);
  bool read(int rank, Pair& p);
  bool begin_message(int rank, Pair& p);
  bool take(Pair& p, void* data, size_t bytes);
  void finish_message(int rank, Pair& p);
  bool find_stray(const Posted& posted);
  bool connected(int rank, Pair& p);
  [[noreturn]] void closed(int rank, const char* cause);
  template <class Done>
  void run_until(Done done);
  bool move();
  void sleep();
  bool wants(int rank) const;
  int awaited() const;

  Peers& peers_;
  const std::vector<int> ranks_;
  const int me_;
  const bool spins_;
  Wait* wait_ = nullptr;
  std::vector<std::unique_ptr<Pair>> pairs_;
  std::vector<Posted> posted_;
  std::vector<Stray> strays_;
  std::vector<pollfd> polled_;
};

}  // namespace berth::exchange

#endif  // BERTH_RPC_EXCHANGE_SOCKET_MESSAGES_H_
