// SharedMemoryAllReduce: combines data of the tasks of one host in shared
// memory, on one channel.
//
// Each task adds its part of all inputs and reads them in place, in the
// segment, or in windows of it that their owners copy them to. One thread.

#ifndef BERTH_RPC_EXCHANGE_SHARED_MEMORY_ALLREDUCE_H_
#define BERTH_RPC_EXCHANGE_SHARED_MEMORY_ALLREDUCE_H_

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rpc/exchange/host.h"
#include "rpc/exchange/sum.h"

namespace berth::exchange {

// A rank's input of a sum.
struct Input {
  Slices slices;
  const void* data = nullptr;
};

// One sum: in order of members if `slices` is 0 (each has one input), else
// along the tree over `slices` below `root`.
struct SumRequest {
  std::span<const Input> inputs;
  int32_t slices = 0;
  void* out = nullptr;
  int64_t count = 0;  // elements
  DType dtype = DType::kFloat32;
  Reduction reduction = Reduction::kSum;
  Slices root = {};

  int64_t element_bytes() const { return static_cast<int64_t>(size_of(dtype)); }
  int64_t bytes() const { return count * element_bytes(); }
  int64_t most_inputs() const { return std::max(slices, 1); }  // of a member
};

class SharedMemoryAllReduce {
 public:
  SharedMemoryAllReduce(Host& host, std::shared_ptr<Segment> segment,
                        const std::string& channel);

  // Combines the inputs of all members.
  void sum(Wait& wait, const SumRequest& s);
  // The slices of all members' inputs.
  std::vector<Slices> slices_of_all(Wait& wait, std::span<const Input> inputs);
  // `out[m]` gets the bytes of member m.
  void all_gather(Wait& wait, const void* data, std::span<const int64_t> bytes,
                  std::span<std::byte* const> out);
  void broadcast(Wait& wait, void* data, int64_t bytes, int root);
  void barrier(Wait& wait);

 private:
  struct Windows;
  struct Source {
    std::byte* at = nullptr;  // null: in a window
    int member = 0, index = 0;
  };

  // Offers this call and waits until all members have entered the same.
  void offer(Wait& wait, Offer offer);
  void meet(Wait& wait);
  void await(Wait& wait, int member, uint32_t phase);
  const Offer& of(int member) {
    return segment_->line(channel_, member).offers[turn_];
  }
  std::byte* need(int member, int64_t offset, int64_t bytes, Wait& wait);
  int64_t space(int64_t& offset, int64_t& have, int64_t bytes);
  // The three ways of a sum.
  void sum_small(Wait& wait, const SumRequest& s);
  void sum_in_place(Wait& wait, const SumRequest& s);
  void sum_in_windows(Wait& wait, const SumRequest& s, const Windows& windows);
  // Copies a window of the own inputs that are outside the segment.
  void copy_in(const SumRequest& s, const Windows& windows, int64_t round);
  void offer_inputs(Wait& wait, const SumRequest& s, const Windows& windows);
  // Sets sources_, parts_ and outs_; returns whether all are in the segment.
  bool read_offers(Wait& wait, const SumRequest& s);
  OfferedInput* own_table(size_t inputs);
  void check(Wait& wait, const SumRequest& s);
  // Adds in_ to `count` elements.
  void add(const SumRequest& s, void* out, int64_t count);

  Host& host_;
  const std::shared_ptr<Segment> segment_;
  const int channel_, size_, me_;
  int spin_us_ = -1;
  uint32_t phase_ = 0;
  int turn_ = 0;
  int64_t small_ = -1, stage_ = -1, table_ = -1;
  int64_t small_bytes_ = 0, stage_bytes_ = 0, table_bytes_ = 0;
  Sums sums_;
  SliceCheck check_;
  std::vector<const void*> in_;
  std::vector<Slices> parts_;
  std::vector<Source> sources_;
  std::vector<std::byte*> outs_;
};

}  // namespace berth::exchange

#endif  // BERTH_RPC_EXCHANGE_SHARED_MEMORY_ALLREDUCE_H_
