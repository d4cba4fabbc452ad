// Call: a rank's description of a call of the exchange, which all ranks
// compare.
//
// Sent as it lies in memory: all tasks have the same build. Values.

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

struct ExchangeCall {
  uint64_t sequence = 0;  // of the channel, from 1
  uint64_t hash = 0;      // the caller's hash
  int64_t count = 0;      // elements; bytes of gathers and broadcasts
  int64_t step = -1;      // for messages
  int32_t number = 0;     // slices, or the root
  CallKind kind = CallKind::kBarrier;
  DType dtype = DType::kInvalid;
  cluster::Reduction reduction = cluster::Reduction::kSum;
  char what[52] = {};  // for messages, truncated
};

// Sets `what` and `step` from the tag.
void describe(ExchangeCall& call, const cluster::Tag& tag);
// Whether the calls are equal, whatever the steps of the ranks.
bool same(const ExchangeCall& a, const ExchangeCall& b);
// "all_reduce of 1024 float32 (sum), 'gradients 3 of 7'".
std::string text_of(const ExchangeCall& call);

}  // namespace berth::exchange

#endif  // BERTH_RPC_EXCHANGE_CALL_H_
