// A rank of an exchange as a process of its own, for exchange_process_test.cc:
//
//   exchange_process BOARD RANK HOSTS ELEMENTS TIMEOUT CALLS
//
// HOSTS: the host of each rank, as "001", or "u001" for UCX between hosts; or,
// for a real cluster of workers, "TRANSPORT/ADDRESS,ADDRESS...". TIMEOUT:
// seconds per call except the first, which waits for all to start. Adds
// ELEMENTS float32 CALLS times (0: until something ends it) and prints "ok", or
// the code and text of the error.

#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "cluster/member.h"
#include "rpc/exchange/exchange_testing.h"

using namespace berth;
using namespace berth::exchange;

namespace {

int run(Board& board, int rank, cluster::Exchange& exchange, int64_t count,
        double timeout, int64_t calls) {
  const std::shared_ptr<void> shared = exchange.shared_buffer(count * 4);
  std::vector<float> own(count);
  for (int64_t call = 0; calls == 0 || call < calls; ++call) {
    float* v = call % 2 == 0 ? own.data() : static_cast<float*>(shared.get());
    for (int64_t i = 0; i < count; ++i) {
      v[i] = static_cast<float>((i + call) % 100 + rank);
    }
    exchange.all_reduce(v, count, DType::kFloat32, Reduction::kSum,
                        {.what = "the gradients",
                         .step = call,
                         .timeout_seconds = call == 0 ? 60 : timeout});
    const int n = exchange.size();
    for (int64_t i = 0; i < count; ++i) {
      const int64_t sum = (i + call) % 100 * n + n * (n - 1) / 2;
      if (v[i] == static_cast<float>(sum)) continue;
      std::printf("wrong: %f instead of %lld\n", v[i],
                  static_cast<long long>(sum));
      return 1;
    }
    board.calls[rank] = call + 1;
  }
  exchange.barrier({});
  std::printf("ok\n");
  return 0;
}

// The member of a real cluster: "TRANSPORT/ADDRESS,ADDRESS...".
std::shared_ptr<cluster::Member> join(const std::string& text, int rank) {
  const size_t slash = text.find('/');
  const std::string transport = text.substr(0, slash);
  setenv("BERTH_TRANSPORT", transport == "grpc" ? "auto" : transport.c_str(),
         1);
  std::vector<std::string> addresses;
  for (size_t at = slash; at != std::string::npos;) {
    const size_t next = text.find(',', at + 1);
    addresses.push_back(text.substr(at + 1, next - at - 1));
    at = next;
  }
  distribute::ClusterResolver resolver;
  resolver.spec = distribute::ClusterSpec({{"worker", addresses}});
  resolver.task = {"worker", rank};
  cluster::JoinOptions options;
  options.join_timeout_seconds = options.call_timeout_seconds = 60;
  if (transport == "grpc") options.transport = transport;
  return cluster::Member::join(resolver, options);
}

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc != 7) return 2;
  Board* board = Board::map(std::atoi(argv[1]));
  if (board == nullptr) return 2;
  const int rank = std::atoi(argv[2]);
  const std::string hosts = argv[3];
  const auto work = [&](cluster::Exchange& exchange) {
    return run(*board, rank, exchange, std::atoll(argv[4]), std::atof(argv[5]),
               std::atoll(argv[6]));
  };
  try {
    if (hosts.find('/') != std::string::npos) {
      const auto member = join(hosts, rank);
      const int status = work(member->exchange());
      member->leave();
      return status;
    }
    std::vector<int> numbers;
    for (const char c : hosts) {
      if (c != 'u') numbers.push_back(c - '0');
    }
    TestLink link(*board, rank, numbers, 60);
    return work(*rpc::make_exchange(link, {.ucx = hosts[0] == 'u'}));
  } catch (const errors::Error& e) {
    std::printf("%s %s\n", errors::code_name(e.code()), e.what());
    return 0;
  }
}
