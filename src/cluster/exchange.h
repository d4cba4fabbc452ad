// Exchange: sums, gathers and broadcasts among the tasks that train.
//
// One per cluster and generation; it is created and shut down with the member.
// Ranks are those of ClusterSpec::ranks(). Calls block. All ranks make the same
// calls in the same order on a channel. Each call carries its sequence number
// on the channel and a hash of its contents; a rank whose call differs fails
// the call on all ranks with errors::InvalidArgument that names both ranks and
// both calls. Channels are independent: one thread per channel at a time,
// threads of different channels in parallel.
//
// All throw errors::Unavailable naming the lost task, and
// errors::DeadlineExceeded naming the missing ones; after either every call on
// every rank throws the same (Member::check()).

#ifndef BERTH_CLUSTER_EXCHANGE_H_
#define BERTH_CLUSTER_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "berth/dtype.h"

namespace berth::cluster {

// Identifies a call; the same on all ranks.
struct Tag {
  std::string channel = "";    // "" is a channel like any other
  std::string what = "";       // for messages: "gradients 3 of 7"
  uint64_t hash = 0;           // of the caller's op, dtype, shapes
  int64_t step = -1;           // for messages; -1: none
  double timeout_seconds = 0;  // 0: the member's default
};

enum class Reduction : uint8_t { kSum, kMin, kMax };

// A partial sum over slices [first, first + count) of the batch: a subtree of
// the binary tree over all slices.
struct SlicePart {
  int32_t first = 0, count = 0;
  const void* data = nullptr;  // `count` elements of the call
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Combines over ranks, in place, in an order fixed by ranks: every rank gets
  // the same bits. float16 and bfloat16 are added in float32.
  virtual void all_reduce(void* data, int64_t count, DType dtype,
                          Reduction reduction, const Tag& tag) = 0;

  // Adds parts of all ranks along the binary tree over `slices` slices: the
  // node of width w at slice s is the sum of those of width w / 2 at s and s +
  // w / 2. The bits do not depend on which rank has which slices. The parts of
  // all ranks cover [0, slices) once. `sum`: count elements, everywhere.
  virtual void ordered_sum(std::span<const SlicePart> parts, int32_t slices,
                           void* sum, int64_t count, DType dtype,
                           const Tag& tag) = 0;

  // Each rank gives bytes_by_rank[rank()] bytes; `out` gets all, concatenated.
  virtual void all_gather(const void* data,
                          std::span<const int64_t> bytes_by_rank, void* out,
                          const Tag& tag) = 0;
  virtual void broadcast(void* data, int64_t bytes, int root,
                         const Tag& tag) = 0;
  virtual void barrier(const Tag& tag) = 0;

  // Memory for exchanged data: tasks of one host read it in place. Initially
  // zero; freed with the last handle.
  virtual std::shared_ptr<void> shared_buffer(int64_t bytes) = 0;
};

}  // namespace berth::cluster

#endif  // BERTH_CLUSTER_EXCHANGE_H_
