// make_exchange() with its choices, for tests and benches.

#ifndef BERTH_RPC_EXCHANGE_EXCHANGE_OPTIONS_H_
#define BERTH_RPC_EXCHANGE_EXCHANGE_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "rpc/link.h"

namespace berth::exchange {

using cluster::Reduction;
using rpc::Accepted;
using rpc::after;
using rpc::Clock;
using rpc::Deadline;
using rpc::Failure;
using rpc::Link;
using rpc::Purpose;
using rpc::Route;
using rpc::seconds_until;
using rpc::Socket;
using rpc::TaskId;

// How sums travel between hosts.
enum class Algorithm : uint8_t {
  kAuto,    // by size and number of hosts
  kDirect,  // each host adds its part of all, in order of ranks
  kRing,    // Gloo's
  kBcube,   // Gloo's: halves, in as many steps as doublings
};

struct ExchangeOptions {
  // False: each task counts as a host of its own.
  bool shared_memory = true;
  Algorithm algorithm = Algorithm::kAuto;
  // A line says for whom one waits after this time, and each time again.
  double warn_after_seconds = 60;
  std::function<void(const std::string&)> warn = {};  // empty: to stderr
  // Room for buffers of one task in the memory file of its host. Only what is
  // touched takes memory.
  int64_t shared_bytes = int64_t{16} << 30;
};

}  // namespace berth::exchange

namespace berth::rpc {

std::unique_ptr<cluster::Exchange> make_exchange(
    Link& link, exchange::ExchangeOptions options);

}  // namespace berth::rpc

#endif  // BERTH_RPC_EXCHANGE_EXCHANGE_OPTIONS_H_
