// Call: what a rank says of a call of the exchange, compared by all others.
//
// Travels as it lies in memory: all tasks are of one build. Values.

#ifndef BERTH_RPC_EXCHANGE_CALL_H_
#define BERTH_RPC_EXCHANGE_CALL_H_

#include <cstdint>
#include <string>

#include "cluster/exchange.h"

namespace berth::exchange {

enum class CallKind : uint8_t {
  kAllReduce = 1,
  kOrderedSum,
  kAllGather,
  kBroadcast,
  kBarrier,
};

struct Call {
  uint64_t sequence = 0;  // of the channel, from 1
  uint64_t hash = 0;      // the caller's
  int64_t count = 0;      // elements; bytes of gathers and broadcasts
  int64_t step = -1;      // for messages
  int32_t number = 0;     // slices, or the root
  CallKind kind = CallKind::kBarrier;
  DType dtype = DType::kInvalid;
  cluster::Reduction reduction = cluster::Reduction::kSum;
  char what[52] = {};  // for messages, cut
};

// Sets `what` and `step` as the tag has them.
void describe(Call& call, const cluster::Tag& tag);
// The same call, wherever in its step the rank is.
bool same(const Call& a, const Call& b);
// "all_reduce of 1024 float32 (sum), 'gradients 3 of 7'".
std::string text_of(const Call& call);

}  // namespace berth::exchange

#endif  // BERTH_RPC_EXCHANGE_CALL_H_
