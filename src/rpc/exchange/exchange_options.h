// make_exchange() with explicit choices, for tests and benchmarks.

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
using rpc::ClusterFailure;
using rpc::Deadline;
using rpc::Link;
using rpc::Purpose;
using rpc::Route;
using rpc::seconds_until;
using rpc::Socket;
using rpc::TaskId;

// How sums are exchanged between hosts.
enum class Algorithm : uint8_t {
  kAuto,    // by size and number of hosts
  kDirect,  // each host adds its part of all data, in order of ranks
  kRing,    // Gloo's
  kBcube,   // Gloo's: recursive halving, log2 steps
};

struct ExchangeOptions {
  // False: each task counts as a separate host.
  bool shared_memory = true;
  // Between hosts by UCX instead of sockets.
  bool ucx = false;
  Algorithm algorithm = Algorithm::kAuto;
  // After this time, and again at each multiple, a line names the awaited rank.
  double warn_after_seconds = 60;
  std::function<void(const std::string&)> warn = {};  // empty: to stderr
  // Buffer space per task in the memory file of its host. Only touched pages
  // count.
  int64_t shared_bytes = int64_t{16} << 30;
};

}  // namespace berth::exchange

namespace berth::rpc {

std::unique_ptr<cluster::Exchange> make_exchange(
    Link& link, exchange::ExchangeOptions options);

}  // namespace berth::rpc

#endif  // BERTH_RPC_EXCHANGE_EXCHANGE_OPTIONS_H_
