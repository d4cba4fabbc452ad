// HostCollectives: combines data of several hosts by messages, on one channel.
// One thread.

#ifndef BERTH_RPC_EXCHANGE_HOST_ALLREDUCE_H_
#define BERTH_RPC_EXCHANGE_HOST_ALLREDUCE_H_

#include <memory>
#include <span>
#include <vector>

#include "rpc/exchange/gloo_transport.h"
#include "rpc/exchange/messages.h"
#include "rpc/exchange/shared_memory_allreduce.h"
#include "rpc/exchange/sum.h"

namespace berth::exchange {

class HostCollectives {
 public:
  // `leaders`: one rank per host; `me`: this host's position.
  HostCollectives(Peers& peers, std::vector<int> leaders, int me);

  // In place.
  void all_reduce(Wait& wait, void* data, int64_t count, DType dtype,
                  Reduction reduction);
  void ordered_sum(Wait& wait, std::span<const Input> inputs, int32_t slices,
                   void* out, int64_t count, DType dtype);
  // `out` already has this host's bytes at their place.
  void all_gather(Wait& wait, std::span<const int64_t> bytes, void* out);
  void broadcast(Wait& wait, void* data, int64_t bytes, int root);
  // Returns once all hosts have entered this call.
  void meet(Wait& wait);
  // After each call that has returned, and after one that has thrown.
  void end() { messages_->end(); }
  void abandon() { messages_->abandon(); }

 private:
  class PartSum;
  // Messages that are on their way, and how many there are.
  struct Posted {
    Messages::Box box;
    size_t count = 0;
    void clear() {
      box.clear();
      count = 0;
    }
  };

  Algorithm choose(int64_t bytes) const;
  std::byte* scratch(size_t bytes);
  void exchange_all(Wait& wait, std::span<const Input> inputs, int32_t slices,
                    int64_t data_bytes);
  void sum_all(Wait& wait, const SumRequest& s);
  // Adds in_ to `count` elements.
  void add(const SumRequest& s, void* out, int64_t count);
  void send(int to, uint64_t slot, const void* data, int64_t bytes);
  void receive(int from, uint64_t slot, void* data, int64_t bytes, Posted& p);
  void wait_received(Posted& p) { messages_->wait_received(p.box, p.count); }
  void wait_sent() { messages_->wait_sent(sent_.box, sent_.count); }

  Peers& peers_;
  const std::unique_ptr<Messages> messages_;
  Gloo gloo_;
  const int size_, me_;
  Sums sums_;
  SliceCheck check_;
  std::vector<std::byte> scratch_;
  std::vector<Slices> parts_;         // of all hosts
  std::vector<int> pieces_, starts_;  // per host: pieces, and the first
  std::vector<const void*> in_;
  std::vector<std::byte> packed_;
  Posted sent_, met_, inputs_[2], results_;
};

}  // namespace berth::exchange

#endif  // BERTH_RPC_EXCHANGE_HOST_ALLREDUCE_H_
