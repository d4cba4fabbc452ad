// Pulls and pushes of 1 MB between a worker and a parameter server, as shares
// of a raw TCP stream on loopback in the same run. The tasks are this program,
// started anew with a TF_CONFIG of their own.

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "bench_common.h"
#include "berth/berth.h"

using namespace berth;
using namespace berth_bench;

namespace {

constexpr int64_t kFloats = 1 << 18;
constexpr size_t kMegabyte = kFloats * sizeof(float);
constexpr int kInFlight = 16;

// A listening socket on a port of loopback that the kernel chose.
int listen_on_loopback(int* port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(fd, 1) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::perror("bench_parameter_server");
    std::exit(1);
  }
  *port = ntohs(address.sin_port);
  return fd;
}

bool move_all(int fd, char* data, size_t bytes, bool write) {
  while (bytes > 0) {
    const ssize_t n =
        write ? ::write(fd, data, bytes) : ::read(fd, data, bytes);
    if (n <= 0) return false;
    data += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

// Seconds for 1 MB and a word back, over a plain socket.
double raw_seconds(double seconds) {
  int port = 0;
  const int listener = listen_on_loopback(&port);
  std::thread receiver([listener] {
    const int fd = ::accept(listener, nullptr, nullptr);
    std::vector<char> data(kMegabyte);
    while (move_all(fd, data.data(), kMegabyte, false) &&
           move_all(fd, data.data(), 1, true)) {
    }
    ::close(fd);
  });
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address)) {
    std::perror("bench_parameter_server");
    std::exit(1);
  }
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::vector<char> data(kMegabyte, 1);
  const Timing t = measure(
      [&] {
        move_all(fd, data.data(), kMegabyte, true);
        move_all(fd, data.data(), 1, false);
      },
      seconds);
  ::close(fd);
  receiver.join();
  ::close(listener);
  return t.best;
}

// The tasks of a cluster: this program, once per task.
class Cluster {
 public:
  Cluster() {
    std::vector<int> held;
    std::string addresses[3];
    for (std::string& a : addresses) {
      int port = 0;
      held.push_back(listen_on_loopback(&port));
      a = fmt::format("127.0.0.1:{}", port);
    }
    for (const int fd : held) ::close(fd);
    cluster_ = fmt::format(R"({{"chief":["{}"],"worker":["{}"],"ps":["{}"]}})",
                           addresses[0], addresses[1], addresses[2]);
    for (const char* job : {"worker", "ps"}) start(job);
    set("chief");
  }
  ~Cluster() {
    for (const pid_t pid : children_) ::waitpid(pid, nullptr, 0);
  }

 private:
  void set(const char* job) const {
    setenv("TF_CONFIG",
           fmt::format(R"({{"cluster":{},"task":{{"type":"{}","index":0}}}})",
                       cluster_, job)
               .c_str(),
           1);
  }
  void start(const char* job) {
    set(job);
    pid_t pid = 0;
    char self[] = "/proc/self/exe", task[] = "task";
    char* arguments[] = {self, task, nullptr};
    if (::posix_spawn(&pid, self, nullptr, nullptr, arguments, environ) != 0) {
      std::perror("bench_parameter_server");
      std::exit(1);
    }
    children_.push_back(pid);
  }
  std::string cluster_;
  std::vector<pid_t> children_;
};

// Seconds per call of what is scheduled, many at once.
template <class Schedule>
double seconds_of(const distribute::ClusterCoordinator& coordinator,
                  double seconds, const Schedule& schedule) {
  const Timing t = measure_blocks(
      [&] {
        for (int i = 0; i < kInFlight; ++i) schedule();
        while (coordinator.statistics().done <
               coordinator.statistics().scheduled) {
          std::this_thread::yield();
        }
      },
      seconds, 1);
  return t.best / kInFlight;
}

int run(const Args& args) {
  const double raw = raw_seconds(args.seconds);
  const Cluster cluster;
  const distribute::ParameterServerStrategy strategy;
  const distribute::ClusterCoordinator coordinator(strategy);
  const Variable v(zeros({kFloats}), {.name = "v"});
  const auto ones_there = coordinator.create_per_worker_resource(
      [] { return Tensors{ones({kFloats})}; });
  const auto pull = function([&] { return v.value()[{slice(0, 1)}]; });
  const auto push = function([&](const Tensor& x) { v.assign_add(x); });
  // Once, so that all is compiled.
  coordinator.schedule(pull).fetch();
  coordinator.schedule(push, ones_there);
  coordinator.join();
  const double pulls = seconds_of(coordinator, args.seconds,
                                  [&] { coordinator.schedule(pull); });
  const double pushes = seconds_of(coordinator, args.seconds, [&] {
    coordinator.schedule(push, ones_there);
  });
  Line("parameter_server", args.cores)
      .add("raw_us", raw * 1e6)
      .add("pull_us", pulls * 1e6)
      .add("push_us", pushes * 1e6)
      .add("pull_share", raw / pulls)
      .add("push_share", raw / pushes)
      .add("share_of_raw", 2 * raw / (pulls + pushes))
      .print();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    if (argc == 2 && std::string(argv[1]) == "task") {
      distribute::serve();
      return 0;
    }
    // The process that started this may end before it.
    ::prctl(PR_SET_PDEATHSIG, 0);
    return run(parse_args(argc, argv));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_parameter_server: %s\n", e.what());
    return 1;
  }
}
