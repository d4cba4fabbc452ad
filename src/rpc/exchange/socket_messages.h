// SocketMessages: messages over one socket per pair of ranks, connected on
// first use. One thread.

#ifndef BERTH_RPC_EXCHANGE_SOCKET_MESSAGES_H_
#define BERTH_RPC_EXCHANGE_SOCKET_MESSAGES_H_

#include <poll.h>

#include <memory>
#include <vector>

#include "rpc/exchange/messages.h"

namespace berth::exchange {

class SocketMessages final : public Messages {
 public:
  SocketMessages(Peers& peers, std::vector<int> ranks, int me);
  ~SocketMessages() override;

  void begin(Wait& wait) override;
  void send(int to, uint64_t slot, const void* data, size_t bytes,
            Box& box) override;
  void receive(const std::vector<int>& from, uint64_t slot, void* data,
               size_t bytes, Box& box) override;
  void receive(int from, uint64_t slot, void* data, size_t bytes,
               Box& box) override;
  void end() override {}  // the kernel has it
  void forget(Box& box) override;
  void abandon() override {}  // only this thread moves bytes

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
  bool move() override;
  void sleep() override;
  bool wants(int rank) const;
  int awaited() const;

  std::vector<std::unique_ptr<Pair>> pairs_;
  std::vector<Posted> posted_;
  std::vector<Stray> strays_;
  std::vector<pollfd> polled_;
};

}  // namespace berth::exchange

#endif  // BERTH_RPC_EXCHANGE_SOCKET_MESSAGES_H_
