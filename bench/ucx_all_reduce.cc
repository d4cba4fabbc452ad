// All-reduce between two tasks of one machine over UCX, 4 KB and 4 MB of
// float32: by its tcp against Berth's own sockets, and by its posix and cma
// against memory that the tasks share, in the same run. UCX reads its settings
// once per process, so each of the two has a pair of processes.

#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>

#include "bench_common.h"
#include "rpc/exchange/exchange_testing.h"
#include "rpc/message_port.h"

using namespace berth;
using namespace berth_bench;
using berth::exchange::Board;
using berth::exchange::TestLink;

namespace {

constexpr int kRounds = 9;
constexpr int64_t kSizes[] = {4 << 10, 4 << 20};

// `memory`: what UCX is compared with is memory, not sockets.
int run_task(int own_fd, int ucx_fd, int rank, bool memory, int rounds) {
  Board* own_board = Board::map(own_fd);
  Board* ucx_board = Board::map(ucx_fd);
  if (own_board == nullptr || ucx_board == nullptr) return 1;
  try {
    TestLink own_link(*own_board, rank,
                      memory ? std::vector{0, 0} : std::vector{0, 1}, 600);
    TestLink ucx_link(*ucx_board, rank, {0, 1}, 600);
    const auto own = rpc::make_exchange(own_link, {});
    const auto ucx = rpc::make_exchange(ucx_link, {.ucx = true});
    for (const int64_t bytes : kSizes) {
      const int64_t count = bytes / 4;
      const std::shared_ptr<void> shared = own->shared_buffer(bytes);
      std::fill_n(static_cast<float*>(shared.get()), count, 0.f);
      std::vector<double> seconds[2];
      const int calls = bytes <= 4 << 10 ? 200 : 8;
      for (int round = -1; round < rounds; ++round) {
        for (const bool by_ucx : {false, true}) {
          const auto reduce = [&] {
            (by_ucx ? *ucx : *own)
                .all_reduce(shared.get(), count, DType::kFloat32,
                            cluster::Reduction::kSum, {});
          };
          reduce();
          const double start = now_seconds();
          for (int i = 0; i < calls; ++i) reduce();
          if (round >= 0) {
            seconds[by_ucx].push_back((now_seconds() - start) / calls);
          }
        }
      }
      if (rank != 0) continue;
      const auto best = [&](int i) {
        return *std::min_element(seconds[i].begin(), seconds[i].end());
      };
      const double over = best(1) / best(0);
      Line(fmt::format("task_ucx_{}_{}", memory ? "posix" : "tcp",
                       bytes <= 4 << 10 ? "4kb" : "4mb"),
           2)
          .add("bytes", bytes)
          .timing(summarize(seconds[1]), "us", 1e6)
          .add(memory ? "over_memory" : "over_sockets",
               std::round(over * 1000) / 1000)
          .print();
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rank %d: %s\n", rank, e.what());
    return 1;
  }
  return 0;
}

int run_pair(bool memory, int rounds) {
  setenv("UCX_TLS", memory ? "posix,cma" : "tcp", 1);
  const int own_fd = Board::make_file(), ucx_fd = Board::make_file();
  if (own_fd < 0 || ucx_fd < 0) return 1;
  const auto start = [&](int rank) {
    const std::string text[] = {std::to_string(own_fd), std::to_string(ucx_fd),
                                std::to_string(rank), std::to_string(memory),
                                std::to_string(rounds)};
    const char* child[] = {"ucx",           "--task",        text[0].c_str(),
                           text[1].c_str(), text[2].c_str(), text[3].c_str(),
                           text[4].c_str(), nullptr};
    pid_t pid = 0;
    return posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr,
                       const_cast<char**>(child), environ) == 0
               ? pid
               : -1;
  };
  const pid_t pids[] = {start(0), start(1)};
  int worst = 0;
  for (const pid_t pid : pids) {
    int status = 1;
    if (pid > 0) waitpid(pid, &status, 0);
    worst = std::max(worst, status == 0 ? 0 : 1);
  }
  return worst;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 7 && !std::strcmp(argv[1], "--task")) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return run_task(std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]),
                    std::atoi(argv[5]) != 0, std::atoi(argv[6]));
  }
  const Args args = parse_args(argc, argv);
  if (allowed_cores().size() < 2) {
    return skip("ucx_all_reduce", 2, "two tasks need two cores");
  }
  try {
    rpc::require_ucx();
  } catch (const std::exception& e) {
    return skip("ucx_all_reduce", 2, e.what());
  }
  const int rounds = std::max(kRounds, static_cast<int>(args.seconds * 5));
  return std::max(run_pair(false, rounds), run_pair(true, rounds));
}
