#include "cli/cluster_reach.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "berth/errors.h"
#include "cluster/checks.h"
#include "cluster/member.h"

namespace berth::cli {

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMostDiallers = 128;

// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// Shared by the dialling threads; outlives the wait: resolvers may take longer.
struct Board {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Reached> all;
  std::vector<bool> done;
  size_t left = 0;
  std::atomic<size_t> next{0};
  Clock::time_point deadline;
  distribute::ClusterResolver resolver;
};

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - Clock::now());
  return static_cast<int>(std::max<int64_t>(0, left.count()));
}

// Connects to one address; returns 0 when connected, else errno.
int dial(const addrinfo& to, Clock::time_point deadline) {
  const Descriptor fd(
      socket(to.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return errno;
  if (connect(fd.get(), to.ai_addr, to.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd wait{fd.get(), POLLOUT, 0};
  int ready = 0;
  do {
    ready = poll(&wait, 1, milliseconds_until(deadline));
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

std::string ip_text(const addrinfo& a) {
  char text[INET6_ADDRSTRLEN] = {};
  const void* address =
      a.ai_family == AF_INET6
          ? static_cast<const void*>(
                &reinterpret_cast<const sockaddr_in6*>(a.ai_addr)->sin6_addr)
          : &reinterpret_cast<const sockaddr_in*>(a.ai_addr)->sin_addr;
  inet_ntop(a.ai_family, address, text, sizeof text);
  return text;
}

void set_state(int error, Reached* r) {
  if (error == 0) {
    r->state = Reach::kReached;
    r->why = "reached";
  } else if (error == ECONNREFUSED) {
    r->state = Reach::kRefused;
    r->why = "connection refused: nobody listens there, or not yet";
  } else if (error == ETIMEDOUT) {
    r->state = Reach::kNoAnswer;
    r->why = "no answer to the connection: a firewall, or a host that is down";
  } else {
    r->state = Reach::kUnreachable;
    r->why = std::strerror(error);
  }
}

// Resolves the name and dials its addresses until one accepts.
Reached reach_one(Reached r, bool dials, Clock::time_point deadline) {
  const cluster::Address a = cluster::parse_address("address", r.address, {});
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(a.host.c_str(), std::to_string(a.port).c_str(),
                                &hints, &found);
  if (error != 0) {
    const bool self = r.state == Reach::kSelf;
    if (!self) r.state = Reach::kNoName;
    r.why = fmt::format("{}the name does not resolve{}: {}",
                        self ? "this task; " : "", self ? " here" : "",
                        gai_strerror(error));
    return r;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found,
                                                             &freeaddrinfo);
  for (const addrinfo* i = found; i != nullptr; i = i->ai_next) {
    r.ips.push_back(ip_text(*i));
  }
  if (!dials) return r;
  const Clock::time_point begin = Clock::now();
  for (const addrinfo* i = found; i != nullptr; i = i->ai_next) {
    set_state(dial(*i, deadline), &r);
    if (r.state == Reach::kReached) break;
  }
  r.milliseconds =
      std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  return r;
}

// Proves to the listener there that this task belongs to its cluster.
void shake_hands(const Board& board, Reached* r) {
  // Leaves some time to say how it ended.
  const double left = milliseconds_until(board.deadline) / 1e3 * 0.8;
  std::optional<std::string> why;
  try {
    why = cluster::Member::probe(board.resolver, r->task, {},
                                 std::max(left, 0.1));
  } catch (const errors::Error& e) {
    why = e.what();
  }
  if (!why) {
    r->why = "reached, and of this cluster";
    return;
  }
  r->state = Reach::kStranger;
  r->why = "reached, but " + *why;
}

bool dials(const Reached& r) {
  return r.state != Reach::kSelf && r.task.job != "evaluator";
}

void work(const std::shared_ptr<Board>& board) {
  for (;;) {
    const size_t i = board->next++;
    Reached r;
    {
      std::lock_guard lock(board->mutex);
      if (i >= board->all.size()) return;
      r = board->all[i];
    }
    if (!r.address.empty()) {
      r = reach_one(std::move(r), dials(r), board->deadline);
      if (r.state == Reach::kReached) shake_hands(*board, &r);
    }
    std::lock_guard lock(board->mutex);
    board->all[i] = std::move(r);
    board->done[i] = true;
    if (--board->left == 0) board->changed.notify_all();
  }
}

}  // namespace

const char* reach_name(Reach reach) {
  constexpr const char* kNames[] = {"self",    "reached",   "refused",
                                    "no_name", "no_answer", "unreachable",
                                    "unknown", "stranger",  "duplicate"};
  return kNames[static_cast<size_t>(reach)];
}

std::vector<Reached> reach_all(const distribute::ClusterResolver& resolver,
                               double timeout_seconds) {
  auto board = std::make_shared<Board>();
  board->resolver = resolver;
  for (const distribute::TaskId& task : resolver.spec.tasks()) {
    Reached r{.task = task,
              .address = resolver.spec.task_address(task.job, task.index)};
    r.why = r.address.empty() ? "the coordinator learns its address when it "
                                "comes"
                              : "evaluators are not dialled";
    if (task == resolver.task) {
      r.state = Reach::kSelf;
      r.why = "this task";
    }
    board->all.push_back(std::move(r));
  }
  board->left = board->all.size();
  board->done.resize(board->left);
  if (board->left == 0) return {};
  board->deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(timeout_seconds));
  std::vector<std::thread> threads(std::min(board->left, kMostDiallers));
  for (std::thread& t : threads) t = std::thread(work, board);
  std::unique_lock lock(board->mutex);
  // Waits slightly longer than the dials, which report the reasons themselves.
  const bool ended = board->changed.wait_until(
      lock, board->deadline + std::chrono::milliseconds(200),
      [&] { return board->left == 0; });
  std::vector<Reached> all = board->all;
  const std::vector<bool> done = board->done;
  lock.unlock();
  for (std::thread& t : threads) {
    ended ? t.join() : t.detach();  // a resolver may take longer
  }
  for (size_t i = 0; i < all.size(); ++i) {
    if (done[i] || all[i].state == Reach::kSelf) continue;
    all[i].state = Reach::kNoAnswer;
    all[i].why = "no answer from the name service or the host in time";
  }
  return all;
}

void find_duplicates(const std::string& source, std::vector<Reached>& all) {
  std::map<std::pair<std::string, int>, Reached*> of;
  for (Reached& r : all) {
    if (r.ips.empty()) continue;
    const cluster::Address a = cluster::parse_address("address", r.address, {});
    const auto [first, is_new] = of.try_emplace({r.ips[0], a.port}, &r);
    if (is_new) continue;
    Reached& marked = r.state == Reach::kSelf ? *first->second : r;
    const Reached& other = &marked == &r ? *first->second : r;
    const auto key = [](const Reached& t) {
      return fmt::format("{}[{}]", t.task.job, t.task.index);
    };
    marked.why = fmt::format(
        "{}: {} is \"{}\", and {} is \"{}\": both are {}, port {}; expected an "
        "address of its own for every task",
        source, key(marked), marked.address, key(other), other.address,
        r.ips[0], a.port);
    marked.state = Reach::kDuplicate;
  }
}

std::vector<std::string> reach_notes(const std::vector<Reached>& all) {
  std::vector<std::string> notes;
  for (const Reached& r : all) {
    if (r.ips.empty()) continue;
    const cluster::Address a = cluster::parse_address("address", r.address, {});
    const bool here = r.ips[0].starts_with("127.") || r.ips[0] == "::1";
    if (!here || a.loopback()) continue;
    notes.push_back(fmt::format(
        "{}: {} is {} on this host, a loopback address; if the task is on "
        "another host, /etc/hosts is wrong here",
        r.task.str(), a.host, r.ips[0]));
  }
  return notes;
}

std::string own_port_error(const distribute::ClusterResolver& resolver) {
  const distribute::TaskId& t = resolver.task;
  const std::vector<int> known = resolver.spec.task_indices(t.job);
  if (std::find(known.begin(), known.end(), t.index) == known.end()) return "";
  const std::string& address = resolver.spec.task_address(t.job, t.index);
  if (address.empty()) return "";
  const int port = cluster::parse_address("address", address, {}).port;
  const Descriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return std::strerror(errno);
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 &&
      listen(fd.get(), 1) == 0) {
    return "";
  }
  return fmt::format("port {} cannot be listened on: {}", port,
                     std::strerror(errno));
}

}  // namespace berth::cli
