// Ranks of an exchange without a cluster: links over loopback, with a shared
// board in memory in place of the coordinator. For threads of one process and
// for processes that inherit the board.

#ifndef BERTH_RPC_EXCHANGE_EXCHANGE_TESTING_H_
#define BERTH_RPC_EXCHANGE_EXCHANGE_TESTING_H_

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "berth/errors.h"
#include "rpc/exchange/exchange_options.h"

namespace berth::exchange {

// The memory that all ranks share. Initially zero.
struct Board {
  static constexpr int kRanks = 16;
  std::atomic<int> ports[kRanks];
  std::atomic<int64_t> calls[kRanks];  // made by a rank, for tests
  std::atomic<int64_t> steps[kRanks];  // of which a rank told its link
  std::atomic<int> failed;             // 1: being written, 2: complete
  errors::Code code;
  int task;
  int64_t step;
  char cause[1024];

  // Maps the board from an inherited descriptor.
  static Board* map(int fd) {
    void* p =
        mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return p == MAP_FAILED ? nullptr : static_cast<Board*>(p);
  }
  static int make_file() {
    const int fd = memfd_create("board", 0);  // inherited
    if (fd < 0 || ftruncate(fd, sizeof(Board)) != 0) return -1;
    return fd;
  }
};

class TestLink final : public Link {
 public:
  // `hosts`: a number per rank; ranks with equal numbers share memory.
  TestLink(Board& board, int rank, std::vector<int> hosts, double timeout)
      : board_(board),
        rank_(rank),
        hosts_(std::move(hosts)),
        timeout_(timeout),
        tcp_(std::move(rpc::listen_tcp({"127.0.0.1", 0}, false)[0])) {
    for (size_t r = 0; r < hosts_.size(); ++r) {
      ranks_.push_back({"worker", static_cast<int>(r)});
    }
    const int port = rpc::port_of(tcp_.fd());
    unix_ = rpc::listen_unix(unix_name(port));
    thread_ = std::thread([this] { run(); });
    board_.ports[rank] = port;
  }
  ~TestLink() override {
    stop_ = true;
    thread_.join();
  }

  const TaskId& task() const override { return ranks_[rank_]; }
  std::vector<TaskId> ranks() const override { return ranks_; }
  uint64_t generation() const override { return 1; }
  bool same_host(const TaskId& t) const override {
    return hosts_[t.index] == hosts_[rank_];
  }
  std::string host_of(const TaskId& t) const override {
    return fmt::format("host {}", hosts_[t.index]);
  }
  std::string name_of(const TaskId& t) const override {
    return fmt::format("{} (here:{})", t.str(), t.index);
  }
  double timeout_seconds() const override { return timeout_; }

  Socket dial(const TaskId& to, Purpose, const std::string& channel,
              Route route, double seconds) override {
    const Deadline deadline = after(seconds > 0 ? seconds : timeout_);
    int port;
    while ((port = board_.ports[to.index]) == 0) {
      check();
      if (seconds_until(deadline) <= 0) {
        throw errors::DeadlineExceeded("nobody listens");
      }
      usleep(1000);
    }
    std::string why;
    Socket s = route == Route::kUnix
                   ? rpc::connect_unix(unix_name(port), &why)
                   : rpc::connect_tcp({"127.0.0.1", port}, deadline, &why);
    Hello hello{rank_, static_cast<int>(channel.size()), {}};
    std::memcpy(hello.channel, channel.data(), channel.size());
    char ack = 0;
    if (s) why = rpc::write_all(s.fd(), &hello, sizeof(hello), deadline);
    if (s && why.empty()) why = rpc::read_all(s.fd(), &ack, 1, deadline);
    if (why.empty()) return s;
    if (seconds_until(deadline) <= 0) throw errors::DeadlineExceeded(why);
    throw errors::Unavailable(why);
  }
  void accept(Purpose, std::function<void(Accepted)> fn) override {
    std::lock_guard lock(mutex_);
    fn_ = std::move(fn);
    if (!fn_) return;
    for (Accepted& a : waiting_) fn_(std::move(a));
    waiting_.clear();
  }

  void lost(const TaskId& peer, const std::string& cause,
            int64_t step) override {
    fail(errors::Code::kUnavailable, peer, cause, step);
  }
  void fail(errors::Code code, const TaskId& task, const std::string& cause,
            int64_t step) override {
    int no = 0;
    if (!board_.failed.compare_exchange_strong(no, 1)) return;
    board_.code = code;
    board_.task = task.index;
    board_.step = step;
    std::memcpy(board_.cause, cause.data(),
                std::min(cause.size(), sizeof(board_.cause) - 1));
    board_.failed = 2;
  }
  void wait_for_failure(const std::string& cause) override {
    for (int i = 0; i < 5000; ++i) {
      check();
      usleep(1000);
    }
    throw errors::Internal("nobody says why: " + cause);
  }
  void check() const override {
    if (board_.failed != 2) return;
    errors::raise(board_.code,
                  fmt::format("worker:{}: {}", board_.task, board_.cause));
  }
  void on_end(std::function<void(const ClusterFailure*)> fn) override {
    std::lock_guard lock(mutex_);
    ends_.push_back(std::move(fn));
  }
  void at_step(int64_t step) override { board_.steps[rank_] = step; }

 private:
  struct Hello {
    int from, length;
    char channel[256];
  };
  static std::string unix_name(int port) {
    return fmt::format("berth-test-{}", port);
  }

  void run() {
    bool told = false;
    while (!stop_) {
      pollfd fds[] = {{tcp_.fd(), POLLIN, 0}, {unix_.fd(), POLLIN, 0}};
      poll(fds, 2, 2);
      if (!told && board_.failed == 2) {
        told = true;
        std::vector<std::function<void(const ClusterFailure*)>> ends;
        {
          std::lock_guard lock(mutex_);
          ends.swap(ends_);
        }
        ClusterFailure failure;
        for (const auto& fn : ends) fn(&failure);
      }
      if ((fds[0].revents & POLLIN) != 0) take(tcp_, Route::kTcp);
      if ((fds[1].revents & POLLIN) != 0) take(unix_, Route::kUnix);
    }
  }
  void take(const Socket& listener, Route route) {
    Accepted a;
    a.socket = Socket(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    a.route = route;
    Hello h;
    if (!a.socket ||
        !rpc::read_all(a.socket.fd(), &h, sizeof(h), after(1)).empty()) {
      return;
    }
    a.from = {"worker", h.from};
    a.channel.assign(h.channel, h.length);
    const char ack = 1;
    rpc::write_all(a.socket.fd(), &ack, 1, after(1));
    std::lock_guard lock(mutex_);
    if (fn_) {
      fn_(std::move(a));
    } else {
      waiting_.push_back(std::move(a));
    }
  }

  Board& board_;
  const int rank_;
  const std::vector<int> hosts_;
  const double timeout_;
  std::vector<TaskId> ranks_;
  Socket tcp_, unix_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::function<void(Accepted)> fn_;
  std::vector<Accepted> waiting_;
  std::vector<std::function<void(const ClusterFailure*)>> ends_;
  std::thread thread_;
};

struct TestOptions {
  std::vector<int> hosts;  // of each rank
  double timeout_seconds = 20;
  ExchangeOptions exchange = {};
  Board* board = nullptr;  // for tests that read it
};

// The error of a rank.
struct Thrown {
  errors::Code code = errors::Code::kUnknown;
  std::string text;
};

// Runs `work` as every rank, in threads; returns the error of each.
inline std::vector<std::optional<Thrown>> run_ranks(
    const TestOptions& options,
    const std::function<void(cluster::Exchange&)>& work) {
  const int size = static_cast<int>(options.hosts.size());
  const auto own = options.board ? nullptr : std::make_unique<Board>();
  Board& board = options.board ? *options.board : *own;
  std::vector<std::unique_ptr<TestLink>> links;
  for (int r = 0; r < size; ++r) {
    links.push_back(std::make_unique<TestLink>(board, r, options.hosts,
                                               options.timeout_seconds));
  }
  std::vector<std::optional<Thrown>> thrown(size);
  std::vector<std::unique_ptr<cluster::Exchange>> exchanges(size);
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      try {
        exchanges[r] = rpc::make_exchange(*links[r], options.exchange);
        work(*exchanges[r]);
      } catch (const errors::Error& e) {
        thrown[r] = {e.code(), e.what()};
      }
    });
  }
  for (std::thread& t : threads) t.join();
  exchanges.clear();
  return thrown;
}

}  // namespace berth::exchange

#endif  // BERTH_RPC_EXCHANGE_EXCHANGE_TESTING_H_
