// Gloo's collectives over Messages.
//
// Gloo's own devices open a port per pair to anyone; here its algorithms only
// send and receive what Messages carry. Gloo's headers are included by the
// source only. One thread.

#ifndef BERTH_RPC_EXCHANGE_GLOO_TRANSPORT_H_
#define BERTH_RPC_EXCHANGE_GLOO_TRANSPORT_H_

#include <cstdint>
#include <memory>
#include <span>

#include "rpc/exchange/messages.h"
#include "rpc/exchange/sum.h"

namespace berth::exchange {

class Gloo {
 public:
  explicit Gloo(Messages& messages);
  ~Gloo();

  // In place. `tag`: different for each call.
  void all_reduce(void* data, int64_t count, DType dtype,
                  cluster::Reduction reduction, Algorithm algorithm,
                  uint32_t tag);
  // `out` already has this host's bytes at their place.
  void all_gather(std::span<const int64_t> bytes, void* out, uint32_t tag);
  void broadcast(void* data, int64_t bytes, int root, uint32_t tag);

 private:
  class Context;
  Messages& messages_;
  std::shared_ptr<Context> context_;
  Sums sums_;
};

}  // namespace berth::exchange

#endif  // BERTH_RPC_EXCHANGE_GLOO_TRANSPORT_H_
