// SharedMemoryAllReduce: combines data of the tasks of one host in shared
// memory, on one channel.
//
// Each task adds its part of all inputs and reads them in place, in the
// segment, or in windows of it that their owners copy them to. One thread.

#ifndef BERTH_RPC_EXCHANGE_SHARED_MEMORY_ALLREDUCE_H_
#define BERTH_RPC_EXCHANGE_SHARED_MEMORY_ALLREDUCE_H_

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

class SharedMemoryAllReduce {
 public:
  SharedMemoryAllReduce(Host& host, std::shared_ptr<Segment> segment,
                        const std::string& channel);

  // Combines the inputs of all members: in order of members if `slices` is 0
  // (each has one), else along the tree below `root`.
  void sum(Wait& wait, std::span<const Input> inputs, int32_t slices, void* out,
           int64_t count, DType dtype, Reduction reduction, Slices root = {});
  // The slices of all members' inputs.
  std::vector<Slices> slices_of_all(Wait& wait, std::span<const Input> inputs);
  // `out[m]` gets the bytes of member m.
  void all_gather(Wait& wait, const void* data, std::span<const int64_t> bytes,
                  std::span<std::byte* const> out);
  void broadcast(Wait& wait, void* data, int64_t bytes, int root);
  void barrier(Wait& wait);

 private:
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
  void small_sum(Wait& wait, std::span<const Input> inputs, int32_t slices,
                 void* out, int64_t count, DType dtype, Reduction reduction,
                 Slices root);
  void check(Wait& wait, int32_t slices, Slices root);
  void in_place(std::span<const Source> sources, int32_t slices, int64_t count,
                DType dtype, Reduction reduction, Wait& wait);
  void add(int32_t slices, void* out, int64_t count, DType dtype,
           Reduction reduction);

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
