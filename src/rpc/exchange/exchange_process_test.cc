// Ranks in processes of their own: sums across them, and what happens if one is
// killed or stopped during a call.

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include "base/free_ports.h"
#include "rpc/exchange/exchange_testing.h"
#include "rpc/message_port.h"

namespace berth::exchange {
namespace {

class Processes {
 public:
  Processes(const std::string& hosts, int64_t elements, double timeout,
            int64_t calls, int ranks = 0)
      : fd_(Board::make_file()), board_(Board::map(fd_.fd())) {
    if (ranks == 0) {
      ranks = static_cast<int>(hosts.size() -
                               std::count(hosts.begin(), hosts.end(), 'u'));
    }
    for (int r = 0; r < ranks; ++r) {
      start({BERTH_EXCHANGE_PROCESS, std::to_string(fd_.fd()),
             std::to_string(r), hosts, std::to_string(elements),
             std::to_string(timeout), std::to_string(calls)});
    }
  }
  ~Processes() {
    for (const pid_t pid : pids_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    if (board_ != nullptr) munmap(board_, sizeof(Board));
  }

  // Waits until all ranks have made this many calls.
  void wait_for_calls(int64_t calls) {
    const Deadline deadline = after(60);
    for (size_t r = 0; r < pids_.size();) {
      if (board_->calls[r] >= calls) {
        ++r;
        continue;
      }
      ASSERT_GT(seconds_until(deadline), 0) << "rank " << r << " does nothing";
      usleep(500);
    }
  }
  void signal(int rank, int number) { kill(pids_[rank], number); }
  // The output of the rank up to its end.
  std::string said(int rank) {
    std::string text;
    char c = 0;
    const Deadline deadline = after(60);
    while (rpc::read_all(outputs_[rank].fd(), &c, 1, deadline).empty()) {
      text += c;
    }
    return text;
  }

 private:
  void start(const std::vector<std::string>& arguments) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    outputs_.emplace_back(ends[0]);
    const Socket theirs(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, theirs.fd(), STDOUT_FILENO);
    std::vector<char*> argv;
    for (const std::string& a : arguments) {
      argv.push_back(const_cast<char*>(a.c_str()));
    }
    argv.push_back(nullptr);
    pid_t pid = 0;
    ASSERT_EQ(
        posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    pids_.push_back(pid);
  }

  const Socket fd_;
  Board* const board_;
  std::vector<pid_t> pids_;
  std::vector<Socket> outputs_;
};

TEST(ExchangeProcesses, SlowAddAcrossProcesses) {
  for (const char* hosts : {"00", "000", "012", "0011"}) {
    SCOPED_TRACE(hosts);
    Processes p(hosts, 150001, 30, 6);
    for (size_t r = 0; r < std::string(hosts).size(); ++r) {
      EXPECT_EQ(p.said(static_cast<int>(r)), "ok\n");
    }
  }
}

// All survivors report the same.
void expect_said(Processes& p, int ranks, int lost,
                 const std::vector<std::string>& parts) {
  const std::string first = p.said(lost == 0 ? 1 : 0);
  for (const std::string& part : parts) {
    EXPECT_NE(first.find(part), std::string::npos) << part << " in: " << first;
  }
  for (int r = 0; r < ranks; ++r) {
    if (r != lost && r != (lost == 0 ? 1 : 0)) {
      EXPECT_EQ(p.said(r), first);
    }
  }
}

struct Loss {
  const char* hosts;
  int64_t elements;
  int rank;
};

// The first rank of a host and others; small sums and large ones in progress.
const std::vector<Loss> kLosses = {
    {"000", 400000, 0}, {"00", 500, 1}, {"012", 400000, 1}, {"0011", 500, 3}};

TEST(ExchangeProcesses, SlowAKilledRankIsNamedByAllOthers) {
  for (const Loss& loss : kLosses) {
    SCOPED_TRACE(loss.hosts);
    Processes p(loss.hosts, loss.elements, 600, 0);
    p.wait_for_calls(3);
    p.signal(loss.rank, SIGKILL);
    const std::string name = fmt::format("worker:{}: ", loss.rank);
    expect_said(p, static_cast<int>(std::string(loss.hosts).size()), loss.rank,
                {"UNAVAILABLE", name});
  }
}

TEST(ExchangeProcesses, SlowAStoppedRankIsNamedAtTheDeadline) {
  for (const Loss& loss : {kLosses[0], kLosses[2], kLosses[3]}) {
    SCOPED_TRACE(loss.hosts);
    Processes p(loss.hosts, loss.elements, 0.5, 0);
    p.wait_for_calls(2);
    p.signal(loss.rank, SIGSTOP);
    const std::string name = fmt::format("worker:{}: ", loss.rank);
    expect_said(
        p, static_cast<int>(std::string(loss.hosts).size()), loss.rank,
        {"DEADLINE_EXCEEDED", name, "does not answer", "the gradients"});
  }
}

// Tasks that joined through the plug-in.
std::string cluster_of(const std::string& transport, int ranks) {
  std::string text = transport;
  for (const std::string& address : free_addresses(ranks)) {
    text += (text == transport ? "/" : ",") + address;
  }
  return text;
}

TEST(ExchangeProcesses, SlowMembersOfAClusterAddAndNameWhomTheyLose) {
  for (const char* transport : {"auto", "sockets", "grpc"}) {
    SCOPED_TRACE(transport);
    {
      Processes p(cluster_of(transport, 3), 70001, 30, 6, 3);
      for (int r = 0; r < 3; ++r) EXPECT_EQ(p.said(r), "ok\n");
    }
    if (std::string(transport) == "sockets") continue;  // covered above
    Processes killed(cluster_of(transport, 3), 70001, 30, 0, 3);
    killed.wait_for_calls(3);
    killed.signal(2, SIGKILL);
    expect_said(killed, 3, 2, {"UNAVAILABLE", "worker:2"});
  }
  Processes stopped(cluster_of("auto", 3), 500, 0.5, 0, 3);
  stopped.wait_for_calls(3);
  stopped.signal(1, SIGSTOP);
  expect_said(stopped, 3, 1,
              {"DEADLINE_EXCEEDED", "worker:1", "does not answer"});
}

// Transports of UCX that any container allows.
class UcxProcesses : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    try {
      rpc::require_ucx();
    } catch (const errors::FailedPrecondition& e) {
      GTEST_SKIP() << e.what();
    }
    setenv("UCX_TLS", GetParam(), 1);
  }
  void TearDown() override { unsetenv("UCX_TLS"); }
};

TEST_P(UcxProcesses, SlowAddAndNameAKilledOrStoppedRank) {
  {
    Processes p("u012", 150001, 30, 6);
    for (int r = 0; r < 3; ++r) EXPECT_EQ(p.said(r), "ok\n");
  }
  for (const int64_t elements : {500, 400000}) {
    SCOPED_TRACE(elements);
    Processes p("u012", elements, 600, 0, 3);
    p.wait_for_calls(3);
    p.signal(1, SIGKILL);
    expect_said(p, 3, 1, {"UNAVAILABLE", "worker:1: "});
  }
  Processes stopped("u012", 500, 2, 0, 3);
  stopped.wait_for_calls(2);
  stopped.signal(1, SIGSTOP);
  expect_said(stopped, 3, 1,
              {"DEADLINE_EXCEEDED", "worker:1: ", "does not answer"});
}

TEST_P(UcxProcesses, SlowMembersOfAClusterAddAndNameWhomTheyLose) {
  {
    Processes p(cluster_of("ucx", 3), 70001, 30, 6, 3);
    for (int r = 0; r < 3; ++r) EXPECT_EQ(p.said(r), "ok\n");
  }
  Processes killed(cluster_of("ucx", 3), 70001, 30, 0, 3);
  killed.wait_for_calls(3);
  killed.signal(2, SIGKILL);
  expect_said(killed, 3, 2, {"UNAVAILABLE", "worker:2"});
}

INSTANTIATE_TEST_SUITE_P(Transports, UcxProcesses,
                         testing::Values("tcp", "posix"));

}  // namespace
}  // namespace berth::exchange
