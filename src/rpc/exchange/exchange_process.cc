// A rank of an exchange as a process of its own, for exchange_process_test.cc:
//
//   exchange_process BOARD RANK HOSTS ELEMENTS TIMEOUT CALLS
//
// HOSTS: the host of each rank, as "001". TIMEOUT: seconds of each call but the
// first, for which all have to start. Adds ELEMENTS float32 CALLS times (0:
// until something ends it) and says "ok", or the code and text of the error.

#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "rpc/exchange/exchange_testing.h"

using namespace berth;
using namespace berth::exchange;

namespace {

int run(Board& board, int rank, const std::vector<int>& hosts, int64_t count,
        double timeout, int64_t calls) {
  TestLink link(board, rank, hosts, 60);
  const auto exchange = rpc::make_exchange(link, {});
  const std::shared_ptr<void> shared = exchange->shared_buffer(count * 4);
  std::vector<float> own(count);
  for (int64_t call = 0; calls == 0 || call < calls; ++call) {
    float* v = call % 2 == 0 ? own.data() : static_cast<float*>(shared.get());
    for (int64_t i = 0; i < count; ++i) {
      v[i] = static_cast<float>((i + call) % 100 + rank);
    }
    exchange->all_reduce(v, count, DType::kFloat32, Reduction::kSum,
                         {.what = "the gradients",
                          .step = call,
                          .timeout_seconds = call == 0 ? 60 : timeout});
    const int n = exchange->size();
    for (int64_t i = 0; i < count; ++i) {
      const int64_t sum = (i + call) % 100 * n + n * (n - 1) / 2;
      if (v[i] == static_cast<float>(sum)) continue;
      std::printf("wrong: %f instead of %lld\n", v[i],
                  static_cast<long long>(sum));
      return 1;
    }
    board.calls[rank] = call + 1;
  }
  exchange->barrier({});
  std::printf("ok\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc != 7) return 2;
  Board* board = Board::map(std::atoi(argv[1]));
  if (board == nullptr) return 2;
  std::vector<int> hosts;
  for (const char* c = argv[3]; *c != '\0'; ++c) hosts.push_back(*c - '0');
  try {
    return run(*board, std::atoi(argv[2]), hosts, std::atoll(argv[4]),
               std::atof(argv[5]), std::atoll(argv[6]));
  } catch (const errors::Error& e) {
    std::printf("%s %s\n", errors::code_name(e.code()), e.what());
    return 0;
  }
}
