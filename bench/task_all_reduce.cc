// All-reduce between two tasks of one machine, 4 KB to 64 MB of float32: in
// memory that they share, and over sockets, against bare Gloo's best algorithm
// over its own TCP device in the same run; and sums with the bits of a tree
// over slices against sums without.

#include <gloo/allreduce.h>
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <functional>

#include "bench_common.h"
#include "rpc/exchange/exchange_testing.h"

using namespace berth;
using namespace berth_bench;
using berth::exchange::Board;
using berth::exchange::ExchangeOptions;
using berth::exchange::TestLink;

namespace {

constexpr int kRounds = 9;
constexpr int64_t kSizes[] = {4 << 10, 4 << 20, 64 << 20};

int calls_of(int64_t bytes) {
  return bytes <= 4 << 10 ? 200 : bytes <= 4 << 20 ? 8 : 1;
}

struct Engine {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds = {};  // per call, by round
};

// A rank: both tasks make the same calls in the same order.
class Task {
 public:
  Task(Board& memory_board, Board& socket_board, int rank,
       const std::string& folder)
      : rank_(rank),
        memory_link_(memory_board, rank, {0, 0}, 600),
        socket_link_(socket_board, rank, {0, 1}, 600),
        memory_(rpc::make_exchange(memory_link_, ExchangeOptions{})),
        sockets_(rpc::make_exchange(socket_link_, ExchangeOptions{})) {
    auto device = gloo::transport::tcp::CreateDevice("127.0.0.1");
    gloo::rendezvous::FileStore store(folder);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, 2);
    context->setTimeout(std::chrono::minutes(10));
    context->connectFullMesh(store, device);
    context_ = context;
  }

  void measure(int64_t bytes, int rounds) {
    const int64_t count = bytes / 4;
    const std::shared_ptr<void> shared = memory_->shared_buffer(bytes);
    const std::shared_ptr<void> shared_part = memory_->shared_buffer(bytes);
    std::vector<float> own(count), part(count);
    const auto fill = [&](void* p) {
      std::fill_n(static_cast<float*>(p), count, 0.f);
    };
    fill(own.data());
    const auto reduce = [&](cluster::Exchange& x, void* data) {
      x.all_reduce(data, count, DType::kFloat32, cluster::Reduction::kSum, {});
    };
    const auto ordered = [&](cluster::Exchange& x, void* data, void* sum) {
      const cluster::SlicePart mine{2 * rank_, 2, data};
      x.ordered_sum({&mine, 1}, 4, sum, count, DType::kFloat32, {});
    };
    std::vector<Engine> engines = {
        {"memory", [&] { reduce(*memory_, shared.get()); }},
        {"memory copied", [&] { reduce(*memory_, own.data()); }},
        {"sockets", [&] { reduce(*sockets_, own.data()); }},
        {"memory ordered",
         [&] { ordered(*memory_, shared_part.get(), shared.get()); }},
        {"sockets ordered",
         [&] { ordered(*sockets_, part.data(), own.data()); }},
    };
    const size_t ours = engines.size();
    const std::vector<float*> pointers{own.data()};
    const int elements = static_cast<int>(count);
    gloo::AllreduceRing<float> ring(context_, pointers, elements);
    gloo::AllreduceRingChunked<float> chunked(context_, pointers, elements);
    gloo::AllreduceHalvingDoubling<float> halving(context_, pointers, elements);
    gloo::AllreduceBcube<float> bcube(context_, pointers, elements);
    const auto function = [&](gloo::AllreduceOptions::Algorithm algorithm) {
      gloo::AllreduceOptions options(context_);
      options.setAlgorithm(algorithm);
      options.setOutput(own.data(), static_cast<size_t>(count));
      options.setReduceFunction(
          static_cast<void (*)(void*, const void*, const void*, size_t)>(
              &gloo::sum<float>));
      options.setTag(++tag_);
      gloo::allreduce(options);
    };
    engines.push_back({"AllreduceRing", [&] { ring.run(); }});
    engines.push_back({"AllreduceRingChunked", [&] { chunked.run(); }});
    engines.push_back({"AllreduceHalvingDoubling", [&] { halving.run(); }});
    engines.push_back({"AllreduceBcube", [&] { bcube.run(); }});
    engines.push_back({"allreduce RING", [&] {
                         function(gloo::AllreduceOptions::Algorithm::RING);
                       }});
    engines.push_back({"allreduce BCUBE", [&] {
                         function(gloo::AllreduceOptions::Algorithm::BCUBE);
                       }});

    const int calls = calls_of(bytes);
    for (int round = -1; round < rounds; ++round) {
      for (Engine& e : engines) {
        e.run();
        const double start = now_seconds();
        for (int i = 0; i < calls; ++i) e.run();
        if (round >= 0) e.seconds.push_back((now_seconds() - start) / calls);
      }
    }
    if (rank_ == 0) print(bytes, engines, ours);
  }

 private:
  static double best(const Engine& e) {
    return *std::min_element(e.seconds.begin(), e.seconds.end());
  }
  void print(int64_t bytes, const std::vector<Engine>& engines, size_t ours) {
    const Engine* gloo = &engines[ours];
    for (size_t i = ours; i < engines.size(); ++i) {
      if (best(engines[i]) < best(*gloo)) gloo = &engines[i];
      Line("task_gloo", 2)
          .add("engine", engines[i].name)
          .add("bytes", bytes)
          .timing(summarize(engines[i].seconds), "us", 1e6)
          .print();
    }
    const std::string size = bytes < 1 << 20
                                 ? "_" + std::to_string(bytes >> 10) + "kb"
                                 : "_" + std::to_string(bytes >> 20) + "mb";
    const auto rounded = [](double x) { return std::round(x * 1000) / 1000; };
    for (size_t i = 0; i < ours; ++i) {
      std::string name = "task_" + engines[i].name + size;
      std::replace(name.begin(), name.end(), ' ', '_');
      Line line(name, 2);
      line.add("bytes", bytes)
          .timing(summarize(engines[i].seconds), "us", 1e6)
          .add("gloo_best", gloo->name)
          .add("over_gloo", rounded(best(engines[i]) / best(*gloo)));
      if (engines[i].name.ends_with(" ordered")) {
        const Engine& plain = engines[i == ours - 1 ? ours - 3 : 0];
        line.add("over_unordered", rounded(best(engines[i]) / best(plain)));
      }
      line.print();
    }
  }

  const int rank_;
  TestLink memory_link_, socket_link_;
  std::unique_ptr<cluster::Exchange> memory_, sockets_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
  uint32_t tag_ = 0;
};

int run_task(int memory_fd, int socket_fd, int rank, const std::string& folder,
             int rounds) {
  Board* memory_board = Board::map(memory_fd);
  Board* socket_board = Board::map(socket_fd);
  if (memory_board == nullptr || socket_board == nullptr) return 1;
  try {
    Task task(*memory_board, *socket_board, rank, folder);
    for (const int64_t bytes : kSizes) task.measure(bytes, rounds);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rank %d: %s\n", rank, e.what());
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 6 && !std::strcmp(argv[1], "--task")) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return run_task(std::atoi(argv[2]), std::atoi(argv[3]), 1, argv[4],
                    std::atoi(argv[5]));
  }
  const Args args = parse_args(argc, argv);
  if (allowed_cores().size() < 2) {
    return skip("task_all_reduce", 2, "two tasks need two cores");
  }
  const int rounds = std::max(kRounds, static_cast<int>(args.seconds * 5));
  const int memory_fd = Board::make_file(), socket_fd = Board::make_file();
  char folder[] = "/tmp/berth_task_all_reduce_XXXXXX";
  if (memory_fd < 0 || socket_fd < 0 || mkdtemp(folder) == nullptr) return 1;
  const std::string fds[] = {std::to_string(memory_fd),
                             std::to_string(socket_fd), std::to_string(rounds)};
  const char* child[] = {argv[0],        "--task", fds[0].c_str(),
                         fds[1].c_str(), folder,   fds[2].c_str(),
                         nullptr};
  pid_t pid = 0;
  int status = 1;
  if (posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr,
                  const_cast<char**>(child), environ) == 0) {
    status = run_task(memory_fd, socket_fd, 0, folder, rounds);
    if (status != 0) kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  std::filesystem::remove_all(folder);
  return status;
}
