// Sums: adds inputs of several ranks in stretches that fit the cache.
//
// Each object belongs to one thread; run() allocates only if it gets more
// inputs than before.

#ifndef BERTH_RPC_EXCHANGE_SUM_H_
#define BERTH_RPC_EXCHANGE_SUM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rpc/exchange/peers.h"

namespace berth::exchange {

// Throws errors::InvalidArgument for an unsupported dtype or reduction.
void check_dtype(DType dtype, cluster::Reduction reduction);

// Convert between float16 or bfloat16 and float32.
void widen(const void* from, DType dtype, float* to, int64_t count);
void narrow(const float* from, void* to, DType dtype, int64_t count);

// A part of a tree over slices.
struct Slices {
  int32_t first = 0, count = 0;
};
// Returns "" if `parts` are subtrees of the binary tree over `slices` that
// cover `root` exactly once; else what is wrong.
std::string check_slices(std::span<const Slices> parts, Slices root,
                         int32_t slices);

// Ends the generation if the slices are invalid; caches the last valid ones.
class SliceCheck {
 public:
  void operator()(Peers& peers, const ExchangeCall& call,
                  std::span<const Slices> parts, Slices root, int32_t slices);

 private:
  std::vector<Slices> good_;
  Slices root_;
  int32_t slices_ = 0;
};

// The roots of the subtrees that `parts` form together, in order.
std::vector<Slices> roots_of(std::span<const Slices> parts, int32_t slices);

class Sums {
 public:
  // ((in[0] + in[1]) + in[2]) + ...: float16 and bfloat16 are added in float32
  // and rounded once. `out` may be one of `in`.
  void chain(std::span<const void* const> in, void* out, int64_t count,
             DType dtype, cluster::Reduction reduction);
  // Along the tree; rounds each sum to the dtype. `out` may be one of `in`.
  void tree(std::span<const void* const> in, std::span<const Slices> parts,
            int32_t slices, void* out, int64_t count, DType dtype);

 private:
  struct Step {
    int a, b;
  };
  std::vector<Step> steps_;
  std::vector<int> order_;
  std::vector<std::byte> scratch_;
  std::vector<const std::byte*> now_;
};

}  // namespace berth::exchange

#endif  // BERTH_RPC_EXCHANGE_SUM_H_
