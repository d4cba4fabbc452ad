// Tasks of a cluster on loopback: a call, tensors of 4 MB over own sockets and
// over gRPC against a raw TCP stream, the start of a cluster of 4, 1,000
// members against one coordinator, and the time from a kill or a stop to the
// error on all survivors. The processes are this program, started anew.
//
//   bench_cluster [--model calls]     the calls and tensors alone

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <iostream>
#include <map>
#include <mutex>
#include <thread>

#include "base/free_ports.h"
#include "bench_common.h"
#include "berth/device/build_id.h"
#include "cluster/member.h"
#include "rpc/control.h"
#include "rpc/coordinator.h"
#include "rpc/grpc_stream.h"
#include "rpc/listener.h"

using namespace berth;
using namespace berth::rpc;
using namespace berth_bench;
using cluster::Member;
using cluster::Message;

namespace {

constexpr size_t kBytes = 4 << 20;

distribute::ClusterResolver resolver_of(const std::string& addresses,
                                        int index) {
  distribute::ClusterResolver r;
  std::map<std::string, std::vector<std::string>> jobs;
  for (size_t at = 0; at < addresses.size();) {
    const size_t end = std::min(addresses.find(',', at), addresses.size());
    jobs["worker"].push_back(addresses.substr(at, end - at));
    at = end + 1;
  }
  r.spec = ClusterSpec(jobs);
  r.task = {"worker", index};
  return r;
}

std::shared_ptr<Member> join(const std::string& addresses, int index,
                             const std::string& transport, double dead) {
  cluster::JoinOptions o;
  o.secret = "bench";
  o.transport = transport;
  o.dead_after_seconds = dead;
  return Member::join(resolver_of(addresses, index), o);
}

// A process of this program: "child KIND ...". Its output is read by line.
class Child {
 public:
  explicit Child(std::vector<std::string> words) {
    int out[2];
    if (::pipe2(out, O_CLOEXEC) != 0) std::exit(1);
    words.insert(words.begin(), {"/proc/self/exe", "child"});
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(out[1], 1);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(out[1]);
    out_ = ::fdopen(out[0], "r");
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::fclose(out_);
  }
  void signal(int number) const { ::kill(pid_, number); }
  // The number in its next line; exits when there is none.
  double number() {
    char line[256];
    if (!::fgets(line, sizeof(line), out_)) {
      std::fprintf(stderr, "a process of the benchmark ended too early\n");
      std::exit(1);
    }
    return std::atof(line);
  }

 private:
  pid_t pid_ = -1;
  FILE* out_ = nullptr;
};

void say(double number) {
  std::printf("%.9f\n", number);
  std::fflush(stdout);
}

Tensor four_megabytes() {
  static std::vector<float> values(kBytes / 4, 1.f);
  return wrap_memory(values.data(), Shape({kBytes / 4}), float32, {});
}

// Task 0 serves, task 1 measures.
int child_serve(const std::string& addresses, const std::string& transport) {
  auto member = join(addresses, 0, transport, 10);
  member->serve("take", [](const TaskId&, Message) { return Message{}; });
  member->leave(600);
  return 0;
}

int child_calls(const std::string& addresses, const std::string& transport,
                double seconds) {
  auto member = join(addresses, 1, transport, 10);
  const TaskId to{"worker", 0};
  say(measure(
          [&] {
            member->call(to, "take", {"x", {}}).get();
          },
          seconds)
          .best);
  const Tensor t = four_megabytes();
  std::deque<std::future<Message>> open;
  const auto send = [&] {
    open.push_back(member->call(to, "take", {"", {t}}));
    if (open.size() < 4) return;
    open.front().get();
    open.pop_front();
  };
  for (int i = 0; i < 8; ++i) send();
  say(measure_blocks(send, seconds, 16).best);
  while (!open.empty()) {
    open.front().get();
    open.pop_front();
  }
  member->leave();
  return 0;
}

// A process reads blocks of 4 MB and answers each with a byte.
int child_raw(const std::string& port) {
  std::string why;
  Socket s =
      connect_tcp({"127.0.0.1", std::atoi(port.c_str())}, after(10), &why);
  std::vector<char> buffer(kBytes);
  while (read_all(s.fd(), buffer.data(), kBytes).empty()) {
    write_all(s.fd(), "x", 1);
  }
  return 0;
}

double raw_seconds(double seconds) {
  const Socket listening = std::move(listen_tcp({"127.0.0.1", 0}, false)[0]);
  ::fcntl(listening.fd(), F_SETFL, 0);
  Child child({"raw", std::to_string(port_of(listening.fd()))});
  Socket s(::accept(listening.fd(), nullptr, nullptr));
  std::vector<char> buffer(kBytes, 1);
  int open = 0;
  char answer;
  const auto send = [&] {
    write_all(s.fd(), buffer.data(), kBytes);
    if (++open < 4) return;
    read_all(s.fd(), &answer, 1);
    --open;
  };
  for (int i = 0; i < 8; ++i) send();
  return measure_blocks(send, seconds, 16).best;
}

struct Calls {
  double call, tensor;
};

Calls measure_calls(const std::string& transport, double seconds) {
  const auto a = free_addresses(2);
  const std::string addresses = a[0] + "," + a[1];
  Child server({"serve", addresses, transport});
  Child client({"calls", addresses, transport, std::to_string(seconds)});
  const double call = client.number();
  return {call, client.number()};
}

// In turns, best against best.
void print_calls(double seconds) {
  double raw = 1e9;
  std::map<std::string, Calls> best;
  for (int turn = 0; turn < 3; ++turn) {
    raw = std::min(raw, raw_seconds(seconds));
    for (const std::string transport : {"auto", "grpc"}) {
      const Calls c = measure_calls(transport, seconds);
      Calls& b = best.try_emplace(transport, c).first->second;
      b = {std::min(b.call, c.call), std::min(b.tensor, c.tensor)};
    }
  }
  for (const auto& [transport, c] : best) {
    Line("cluster_calls_" + transport, 2)
        .add("call_us", c.call * 1e6)
        .add("tensor_gb_per_s", kBytes / c.tensor * 1e-9)
        .add("raw_gb_per_s", kBytes / raw * 1e-9)
        .add("share_of_raw", raw / c.tensor)
        .print();
  }
}

// ------------------------------------------------------- start, kill, stop

int child_member(const std::string& addresses, int index, double dead) {
  auto member = join(addresses, index, "auto", dead);
  member->barrier("start");
  say(now_seconds());
  while (!member->failure()) ::usleep(200);
  say(now_seconds());
  return 0;
}

struct Ends {
  double start, error;
};

// Starts 4, sends `number` to one, and waits for the error on the others.
Ends measure_end(int number, int victim, double dead) {
  std::string addresses;
  for (const std::string& a : free_addresses(4)) {
    addresses += (addresses.empty() ? "" : ",") + a;
  }
  const double begin = now_seconds();
  std::deque<Child> members;
  for (int i = 0; i < 4; ++i) {
    members.emplace_back(std::vector<std::string>{
        "member", addresses, std::to_string(i), std::to_string(dead)});
  }
  double last = 0;
  for (Child& c : members) last = std::max(last, c.number());
  const Ends ends{last - begin, 0};
  ::usleep(300'000);
  const double killed = now_seconds();
  members[victim].signal(number);
  double error = 0;
  for (int i = 0; i < 4; ++i) {
    if (i != victim) error = std::max(error, members[i].number());
  }
  return {ends.start, error - killed};
}

// --------------------------------------------------------- 1,000 members

Handshake::Gate gate_of(const TaskId& self) {
  return {"bench", 1, BERTH_BUILD_ID, self,
          [](const Hello&) { return std::nullopt; }};
}

// Members without anything but their control connection, in one process.
int child_crowd(int port, int count) {
  struct Guest {
    std::shared_ptr<GrpcStream> stream;
  };
  const auto gate = gate_of({"worker", 1});
  GrpcHub hub(gate, {}, "",
              [](auto, const Hello&) { return GrpcStream::Events{}; });
  std::mutex mutex;
  std::condition_variable changed;
  int met = 0;
  std::deque<Guest> guests(static_cast<size_t>(count) + 1);
  const Endpoint endpoint{"127.0.0.1", port};
  for (int i = 1; i <= count; ++i) {
    Hello hello;
    hello.cluster = 1;
    hello.build = BERTH_BUILD_ID;
    hello.from = {"worker", i};
    hello.to = {"worker", 0};
    hello.purpose = static_cast<uint8_t>(Purpose::kControl);
    Guest& guest = guests[static_cast<size_t>(i)];
    GrpcStream::Events events;
    events.on_message = [&](std::string bytes) {
      const Frame f = parse_frame(bytes);
      std::lock_guard lock(mutex);
      if (f.type == FrameType::kGo) {
        Frame barrier{.type = FrameType::kBarrier, .generation = 1};
        barrier.name = "start";
        guest.stream->send(encode(barrier));
      }
      if (f.type == FrameType::kBarrierMet && ++met == count) {
        changed.notify_all();
      }
      return true;
    };
    auto stream = hub.open(
        "", hello,
        [&] {
          std::string why;
          Socket s = connect_tcp(endpoint, after(30), &why);
          if (s) introduce(s.fd(), hello, "bench", after(30), &why);
          return s;
        },
        std::move(events));
    hub.forget(hello.to);  // each has a connection of its own
    Frame enroll{.type = FrameType::kRegister};
    enroll.tasks.push_back({{"worker", i},
                            "127.0.0.1:1",
                            "host",
                            "process 1 on a machine",
                            hello.from.index + 1u});
    std::lock_guard lock(mutex);
    guest.stream = stream;
    stream->send(encode(enroll));
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return met == count; });
  say(now_seconds());
  lock.unlock();
  for (Guest& g : guests) {
    if (g.stream) g.stream->close(true);
  }
  ::_exit(0);
}

// From the first connection to the last barrier met; the coordinator is here.
double measure_crowd(int count) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  const TaskId self{"worker", 0};
  Coordinator::Options o;
  std::map<std::string, std::vector<std::string>> jobs;
  for (int i = 0; i <= count; ++i) {
    jobs["worker"].push_back("127.0.0.1:" + std::to_string(i + 1));
  }
  o.spec = ClusterSpec(jobs);
  o.tasks = o.spec.tasks();
  o.self = self;
  std::mutex mutex;
  std::map<int, std::shared_ptr<GrpcStream>> streams;
  int next = 1;
  Coordinator::FramePtr encoded_of;
  std::string encoded;
  Coordinator coordinator(o, [&](int to, const Coordinator::FramePtr& f, bool) {
    if (to == 0) return;
    std::shared_ptr<GrpcStream> stream;
    {
      std::lock_guard lock(mutex);
      stream = streams[to];
      if (encoded_of != f) encoded = encode(*f);
      encoded_of = f;
    }
    stream->send(encoded);
  });
  const auto gate = gate_of(self);
  auto hub = std::make_unique<GrpcHub>(
      gate, TlsFiles{}, "",
      [&](std::shared_ptr<GrpcStream> stream, const Hello& h) {
        int id;
        {
          std::lock_guard lock(mutex);
          id = next++;
          streams[id] = stream;
        }
        coordinator.connected(id, h.from);
        GrpcStream::Events e;
        e.on_message = [&coordinator, id](std::string bytes) {
          coordinator.received(id, parse_frame(bytes));
          return true;
        };
        return e;
      });
  std::vector<Socket> tcp = listen_tcp({"127.0.0.1", 0}, false);
  const int port = port_of(tcp[0].fd());
  double first = 0;
  auto listener = std::make_unique<Listener>(
      std::move(tcp), Socket(), gate, Listener::Limits{},
      Listener::Events{[&](Socket s, const Hello& h, Route) {
                         if (first == 0) first = now_seconds();
                         hub->add(std::move(s), h.from);
                       },
                       [](const TaskId&, const std::string&) {},
                       [&](double now) { coordinator.tick(now); }});
  coordinator.connected(0, self);
  Frame enroll{.type = FrameType::kRegister};
  enroll.tasks.push_back({self, "127.0.0.1:1", "host", "process 1", 1});
  coordinator.received(0, enroll);
  Frame barrier{.type = FrameType::kBarrier, .generation = 1};
  barrier.name = "start";
  Child crowd({"crowd", std::to_string(port), std::to_string(count)});
  // The coordinator's own task is there as soon as the cluster is.
  std::atomic<bool> done{false};
  std::thread own([&] {
    while (!done) {
      coordinator.received(0, barrier);
      ::usleep(1000);
    }
  });
  const double last = crowd.number();
  done = true;
  own.join();
  listener.reset();
  hub.reset();
  return last - first;
}

int child(const std::vector<std::string>& w) {
  if (w[0] == "serve") return child_serve(w[1], w[2]);
  if (w[0] == "calls") return child_calls(w[1], w[2], std::stod(w[3]));
  if (w[0] == "raw") return child_raw(w[1]);
  if (w[0] == "member") {
    return child_member(w[1], std::stoi(w[2]), std::stod(w[3]));
  }
  return child_crowd(std::stoi(w[1]), std::stoi(w[2]));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && !std::strcmp(argv[1], "child")) {
    return child(std::vector<std::string>(argv + 2, argv + argc));
  }
  const Args args = parse_args(argc, argv);
  print_calls(args.seconds);
  if (args.model == "calls") return 0;
  double start = 1e9, kill = 1e9, kill_head = 1e9;
  for (int i = 0; i < 3; ++i) {
    const Ends worker = measure_end(SIGKILL, 2, 10);
    const Ends head = measure_end(SIGKILL, 0, 10);
    start = std::min({start, worker.start, head.start});
    kill = std::min(kill, worker.error);
    kill_head = std::min(kill_head, head.error);
  }
  const Ends stop = measure_end(SIGSTOP, 2, 2);
  Line("cluster_of_4", 4)
      .add("start_s", start)
      .add("kill_ms", kill * 1e3)
      .add("kill_coordinator_ms", kill_head * 1e3)
      .add("stop_s", stop.error)
      .print();
  double crowd = 1e9;
  for (int i = 0; i < 3; ++i) crowd = std::min(crowd, measure_crowd(1000));
  Line("cluster_1000", 2).add("seconds", crowd).print();
  return 0;
}
