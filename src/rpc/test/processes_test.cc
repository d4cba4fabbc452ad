// Clusters of processes: joining, calls, failures and restarts.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "berth/errors.h"
#include "rpc/message_port.h"
#include "rpc/test/processes_testing.h"

namespace berth::rpc {
namespace {

using Words = std::vector<std::string>;

// Workers of one cluster; each has the arguments `common`, then its own.
class Workers {
 public:
  explicit Workers(int count, Words common = {"secret=s"},
                   const std::string& host = "127.0.0.1")
      : addresses_(free_addresses(count)), common_(std::move(common)) {
    for (std::string& a : addresses_) a = host + a.substr(a.find(':'));
    common_.insert(common_.begin(), "worker=" + joined(addresses_));
  }
  Process start(int index, Words words) const {
    Words all{"worker:" + std::to_string(index)};
    all.insert(all.end(), common_.begin(), common_.end());
    all.insert(all.end(), words.begin(), words.end());
    return Process(all);
  }
  std::string name(int index) const {
    return "worker:" + std::to_string(index) + " (" + addresses_[index] + ")";
  }
  const std::string& address(int index) const { return addresses_[index]; }

 private:
  Words addresses_;
  Words common_;
};

// Everything that a task can do with the others.
void runs_through(const Words& common) {
  const Workers cluster(3, common);
  std::vector<Process> all;
  for (int i = 0; i < 3; ++i) {
    const std::string next = "worker:" + std::to_string((i + 1) % 3);
    Words words{"join", "barrier:a", "barrier:a"};
    words.push_back(i == 1 ? "put:key" : "get:key");
    words.insert(words.end(),
                 {"call:" + next + "/hello", "call:" + next + "/big",
                  "call:" + next + "/throw", "leave"});
    all.push_back(cluster.start(i, words));
  }
  for (int i = 0; i < 3; ++i) {
    const std::string me = "worker:" + std::to_string(i);
    const std::string next = "worker:" + std::to_string((i + 1) % 3);
    EXPECT_EQ(all[i].line("joined"),
              "joined 1 rank " + std::to_string(i) + " of 3");
    if (i != 1) {
      EXPECT_EQ(all[i].line("key"), "key of worker:1");
    }
    EXPECT_EQ(all[i].line(next), next + " hears " + me + ": hello");
    EXPECT_EQ(all[i].line(next), next + " hears " + me + ": big");
    EXPECT_EQ(
        all[i].line("error"),
        "error NOT_FOUND " + cluster.name((i + 1) % 3) + ": no such thing");
    EXPECT_EQ(all[i].line("leave"), "leave");
    EXPECT_EQ(all[i].end(), 0);
  }
}

TEST(Processes, MeetStoreCallAndLeave) { runs_through({"secret=s"}); }

TEST(Processes, NeedNoSecretOnLoopback) { runs_through({}); }

// A call's tensors and sums by UCX; children take the variable over.
TEST(Processes, DoAllThatOverUcx) {
  try {
    rpc::require_ucx();
  } catch (const errors::FailedPrecondition& e) {
    GTEST_SKIP() << e.what();
  }
  setenv("BERTH_TRANSPORT", "ucx", 1);
  runs_through({"secret=s"});
  unsetenv("BERTH_TRANSPORT");
}

TEST(Processes, DoAllThatOverGrpc) {
  runs_through({"secret=s", "transport=grpc"});
}

TEST(Processes, DoAllThatOverMutualTls) {
  const auto folder = std::filesystem::temp_directory_path() /
                      ("berth_tls_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string made =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
      "-nodes -days 2 -subj /CN=localhost -addext "
      "subjectAltName=IP:127.0.0.1 -keyout " +
      (folder / "key.pem").string() + " -out " +
      (folder / "cert.pem").string() + " 2>/dev/null";
  if (std::system(made.c_str()) != 0) GTEST_SKIP() << "no openssl here";
  runs_through({"tls=" + folder.string()});
  std::filesystem::remove_all(folder);
}

TEST(Processes, OneThatIsKilledEndsAllOthersWithOneText) {
  for (const int killed : {2, 0}) {  // a worker, the coordinator
    const Workers cluster(3);
    std::vector<Process> all;
    for (int i = 0; i < 3; ++i)
      all.push_back(cluster.start(i, {"join", "wait"}));
    for (Process& p : all) p.line("joined");
    all[killed].signal(SIGKILL);
    for (int i = 0; i < 3; ++i) {
      if (i == killed) continue;
      EXPECT_EQ(all[i].line("failed"),
                "failed UNAVAILABLE " + cluster.name(killed) +
                    " was lost: its connection closed (the process ended, or "
                    "was cut off)");
    }
  }
}

TEST(Processes, SlowOneThatIsStoppedIsGivenUpAndHearsSo) {
  for (const int stopped : {1, 0}) {
    const Workers cluster(3, {"secret=s", "dead=1.5"});
    std::vector<Process> all;
    for (int i = 0; i < 3; ++i)
      all.push_back(cluster.start(i, {"join", "wait"}));
    for (Process& p : all) p.line("joined");
    all[stopped].signal(SIGSTOP);
    const std::string text = "failed UNAVAILABLE " + cluster.name(stopped) +
                             " was lost: no heartbeat for 1.5 s";
    for (int i = 0; i < 3; ++i) {
      if (i == stopped) continue;
      EXPECT_EQ(all[i].line("failed"), text);
    }
    all[stopped].signal(SIGCONT);
    EXPECT_EQ(all[stopped].line("failed"), text);
  }
}

TEST(Processes, WaitForOneThatComesLate) {
  const Workers cluster(2);
  Process first = cluster.start(1, {"join", "leave"});  // not the coordinator
  ::usleep(200'000);
  Process second = cluster.start(0, {"join", "leave"});
  EXPECT_EQ(first.line("joined"), "joined 1 rank 1 of 2");
  EXPECT_EQ(second.line("leave"), "leave");
  EXPECT_EQ(first.end(), 0);
}

TEST(Processes, SlowWaitForANameThatResolvesLateAndSayForWhom) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("berth_names_" + std::to_string(::getpid()));
  const Workers cluster(2, {"secret=s", "names=" + file.string()}, "late.test");
  Process second = cluster.start(1, {"join", "call:worker:0/hello", "leave"});
  Process first = cluster.start(0, {"join", "call:worker:1/hello", "leave"});
  EXPECT_EQ(second.line("berth: "),
            "berth: worker:1 waits for " + cluster.name(0) +
                ": the name late.test does not resolve (Name or service not "
                "known)");
  std::ofstream(file) << "now\n";
  EXPECT_EQ(second.line("joined"), "joined 1 rank 1 of 2");
  // The names lead to the tasks in both directions.
  EXPECT_EQ(first.line("worker:1"), "worker:1 hears worker:0: hello");
  EXPECT_EQ(second.line("worker:0"), "worker:0 hears worker:1: hello");
  EXPECT_EQ(first.line("leave"), "leave");
  EXPECT_EQ(second.end(), 0);
  std::filesystem::remove(file);
}

TEST(Processes, SayWhoNeverCame) {
  const Workers cluster(3, {"secret=s", "timeout=1.2"});
  Process first = cluster.start(0, {"join"});
  Process third = cluster.start(2, {"join"});
  const std::string missing =
      "the cluster was not complete after 1.2 s; it waited for " +
      cluster.name(1) + ": it has not connected";
  EXPECT_EQ(first.line("error"),
            "error DEADLINE_EXCEEDED worker:0: " + missing);
  EXPECT_NE(third.line("error").find("DEADLINE_EXCEEDED worker:2"),
            std::string::npos);
  const Workers alone(2, {"secret=s", "timeout=0.3"});
  Process member = alone.start(1, {"join"});
  EXPECT_EQ(member.line("error"),
            "error DEADLINE_EXCEEDED worker:1: the cluster was not complete "
            "after 0.3 s; it waited for " +
                alone.name(0) + ": connection refused");
}

TEST(Processes, NameACoordinatorThatWasStoppedWhileTheyJoinSlow) {
  const Workers cluster(3, {"secret=s", "timeout=4"});
  Process first = cluster.start(0, {"join"});
  Process third = cluster.start(2, {"join"});
  ::usleep(300'000);  // usually long enough to connect
  first.signal(SIGSTOP);
  const std::string error = third.line("error");
  EXPECT_TRUE(error.starts_with("error DEADLINE_EXCEEDED worker:2")) << error;
  EXPECT_NE(error.find(cluster.name(0) + ": "), std::string::npos) << error;
}

TEST(Processes, LetGoOfTheirHandlersWhenTheyLeave) {
  const Workers cluster(2);
  Process first = cluster.start(0, {"join", "held", "leave", "held"});
  Process second = cluster.start(1, {"join", "leave"});
  EXPECT_EQ(first.line("held"), "held yes");
  EXPECT_EQ(first.line("held"), "held no");
}

TEST(Processes, RefuseAWrongSecretAndAnotherCluster) {
  const Workers cluster(2, {"timeout=1.2"});
  Process first = cluster.start(0, {"secret=right", "join"});
  Process wrong = cluster.start(1, {"secret=wrong", "join"});
  const std::string text =
      "the secrets differ: set BERTH_CLUSTER_SECRET, or "
      "the file that BERTH_CLUSTER_SECRET_FILE names, to "
      "the same on all tasks";
  EXPECT_EQ(wrong.line("error"), "error PERMISSION_DENIED " + cluster.name(0) +
                                     " refuses worker:1: " + text);
  Process other = cluster.start(1, {"secret=right", "ps=127.0.0.1:1", "join"});
  EXPECT_NE(other.line("error").find("its cluster is another one"),
            std::string::npos);
  EXPECT_NE(first.line("error").find(cluster.name(1) + ": it was turned away"),
            std::string::npos);
}

TEST(Processes, RefuseOtherMachinesWithoutASecret) {
  Process p({"worker:0", "worker=192.0.2.1:2222,192.0.2.2:2222", "join"});
  const std::string error = p.line("error");
  EXPECT_NE(error.find("INVALID_ARGUMENT worker:0 (192.0.2.1:2222)"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("BERTH_CLUSTER_SECRET"), std::string::npos);
}

TEST(Processes, RefuseAPortInUse) {
  for (const Words& common : {Words{}, Words{"secret=s"}}) {
    const Workers cluster(2, common);
    const auto taken = listen_tcp(parse_endpoint(cluster.address(0)), false);
    Process p = cluster.start(0, {"join"});
    const std::string error = p.line("error");
    EXPECT_NE(error.find("ALREADY_EXISTS the port of " + cluster.address(0)),
              std::string::npos)
        << error;
  }
}

TEST(Processes, FindEachOtherAndRefuseASecondOfOneIndex) {
  const std::string address = free_addresses(1)[0];
  const Words common{"workers=3", "rendezvous=" + address, "secret=s"};
  const auto start = [&](int index, Words words) {
    Words all{"worker:" + std::to_string(index)};
    all.insert(all.end(), common.begin(), common.end());
    all.insert(all.end(), words.begin(), words.end());
    return Process(all);
  };
  Process first = start(0, {"join", "call:worker:2/x", "leave"});
  Process second = start(1, {"join", "call:worker:2/x", "leave"});
  ::usleep(300'000);
  Process twin = start(1, {"join"});
  const std::string error = twin.line("error");
  EXPECT_NE(error.find("ALREADY_EXISTS"), std::string::npos) << error;
  EXPECT_NE(error.find("worker:1 is there already: process "),
            std::string::npos);
  Process third = start(2, {"join", "leave"});
  EXPECT_EQ(second.line("worker:2"), "worker:2 hears worker:1: x");
  for (Process* p : {&first, &second, &third}) {
    EXPECT_EQ(p->line("leave"), "leave");
    EXPECT_EQ(p->end(), 0);
  }
}

TEST(Processes, AreNotDisturbedByGarbageOnThePort) {
  const Workers cluster(2);
  Process first = cluster.start(0, {"join", "barrier:a", "leave"});
  const Words garbage{"GET / HTTP/1.1\r\n\r\n",
                      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                      std::string(100'000, '\xff'),
                      "B",
                      "",
                      std::string("BERTHLNK\xff\xff\xff\x7f", 12),
                      std::string("BERTHLNK\x04\0\0\0abcdefgh", 20)};
  std::vector<Socket> kept;
  for (const std::string& bytes : garbage) {
    Socket s;
    std::string why;
    for (int i = 0; i < 2000 && !s; ++i) {
      s = connect_tcp(parse_endpoint(cluster.address(0)), after(1), &why);
      if (!s) ::usleep(1000);
    }
    ASSERT_TRUE(s) << why;
    write_all(s.fd(), bytes.data(), bytes.size(), after(5));
    kept.push_back(std::move(s));
  }
  EXPECT_NE(first.line("berth: ").find("its first bytes are not Berth's"),
            std::string::npos);
  Process second = cluster.start(1, {"join", "barrier:a", "leave"});
  EXPECT_EQ(second.line("leave"), "leave");
  EXPECT_EQ(first.line("leave"), "leave");
}

TEST(Processes, ListenOnTheirOwnAddressAlone) {
  const Workers cluster(2);
  Process first = cluster.start(0, {"join", "leave"});
  Process second = cluster.start(1, {"join", "input", "leave"});
  second.line("joined");
  Endpoint own = parse_endpoint(cluster.address(1));
  std::string why;
  EXPECT_TRUE(connect_tcp(own, after(5), &why)) << why;
  own.host = "127.0.0.2";  // also of this machine
  EXPECT_FALSE(connect_tcp(own, after(5), &why));
  EXPECT_EQ(why, "connection refused");
  second.go();
  EXPECT_EQ(first.line("leave"), "leave");
}

TEST(Processes, SurviveStrangersWhereDescriptorsAreFew) {
  const Workers cluster(2);
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const rlim_t before = std::exchange(files.rlim_cur, 64);
  ::setrlimit(RLIMIT_NOFILE, &files);
  Process first = cluster.start(
      0, {"join", "barrier:a", "input", "call:worker:1/x", "leave"});
  Process second =
      cluster.start(1, {"join", "barrier:a", "call:worker:0/y", "leave"});
  files.rlim_cur = before;
  ::setrlimit(RLIMIT_NOFILE, &files);
  first.line("joined");
  std::vector<Socket> strangers;
  for (int i = 0; i < 200; ++i) {
    std::string why;
    strangers.push_back(
        connect_tcp(parse_endpoint(cluster.address(i % 2)), after(5), &why));
    ASSERT_TRUE(strangers.back()) << why;
  }
  first.go();
  EXPECT_EQ(first.line("leave"), "leave");
  EXPECT_EQ(second.line("leave"), "leave");
}

TEST(Processes, WaitForThoseThatAreNotDoneYet) {
  const Workers cluster(2);
  Process early = cluster.start(1, {"join", "leave"});
  Process late = cluster.start(0, {"join", "sleep:0.3", "put:x", "leave"});
  EXPECT_EQ(early.line("leave"), "leave");
  EXPECT_EQ(late.line("leave"), "leave");
  // Leaving without waiting is not a failure either.
  const Workers again(2);
  Process gone = again.start(1, {"join", "leave:0.2"});
  Process stays = again.start(0, {"join", "sleep:0.6", "put:x", "leave"});
  EXPECT_NE(gone.line("error").find("DEADLINE_EXCEEDED"), std::string::npos);
  EXPECT_EQ(stays.line("leave"), "leave");
}

TEST(Processes, HearThatAllAreDoneThoughTheyWereStopped) {
  const Workers cluster(3);
  Process first = cluster.start(0, {"join", "barrier:a", "leave"});
  Process second = cluster.start(1, {"join", "barrier:a", "leave"});
  Process third = cluster.start(2, {"join", "barrier:a", "input", "leave"});
  third.line("joined");
  ::usleep(200'000);  // usually long enough for the others to be done
  second.signal(SIGSTOP);
  third.go();
  EXPECT_EQ(third.line("leave"), "leave");
  ::usleep(1'300'000);
  second.signal(SIGCONT);
  EXPECT_EQ(second.line("leave"), "leave");
  EXPECT_EQ(second.end(), 0);
  EXPECT_EQ(first.line("leave"), "leave");
}

TEST(Processes, AbortWithOneTextOnAll) {
  const Workers cluster(3);
  std::vector<Process> all;
  for (int i = 0; i < 3; ++i) {
    all.push_back(cluster.start(
        i, {"join", i == 1 ? "abort:loss is nan" : "wait", "wait"}));
  }
  for (Process& p : all) {
    EXPECT_EQ(p.line("failed"), "failed INVALID_ARGUMENT " + cluster.name(1) +
                                    " failed: loss is nan, step 17");
  }
}

TEST(Processes, NameWhoIsMissingAtABarrier) {
  const Workers cluster(3);
  std::vector<Process> all;
  for (int i = 0; i < 3; ++i) {
    all.push_back(cluster.start(
        i, {"join", "barrier:a", i == 1 ? "wait" : "barrier:b/1", "wait"}));
  }
  for (Process& p : all) {
    EXPECT_EQ(p.line("failed"),
              "failed DEADLINE_EXCEEDED " + cluster.name(1) +
                  " is late: the barrier 'b' waited 1 s for " +
                  cluster.name(1));
  }
}

TEST(Processes, FormAnewWithOneThatCameBack) {
  for (const int killed : {1, 0}) {
    const Workers cluster(3);
    std::vector<Process> all;
    const Words words{"join", "wait", "again", "barrier:c", "leave"};
    for (int i = 0; i < 3; ++i) all.push_back(cluster.start(i, words));
    for (Process& p : all) p.line("joined");
    all[killed].signal(SIGKILL);
    all[killed].end();
    Process back = cluster.start(killed, {"join", "barrier:c", "leave"});
    const auto text = [](int i) {
      return "joined 2 rank " + std::to_string(i) + " of 3";
    };
    EXPECT_EQ(back.line("joined"), text(killed));
    for (int i = 0; i < 3; ++i) {
      if (i == killed) continue;
      EXPECT_EQ(all[i].line("joined"), text(i));
      EXPECT_EQ(all[i].line("leave"), "leave");
    }
    EXPECT_EQ(back.end(), 0);
  }
}

TEST(Processes, GoOnWithThoseThatAreLeft) {
  const Workers cluster(3);
  std::vector<Process> all;
  const Words words{"join", "wait", "shrink", "barrier:c", "leave"};
  for (int i = 0; i < 3; ++i) all.push_back(cluster.start(i, words));
  for (Process& p : all) p.line("joined");
  all[1].signal(SIGKILL);
  EXPECT_EQ(all[0].line("joined"), "joined 2 rank 0 of 2");
  EXPECT_EQ(all[2].line("joined"), "joined 2 rank 1 of 2");
  for (const int i : {0, 2}) EXPECT_EQ(all[i].line("leave"), "leave");
}

// The coordinator, by a kill and by a notice; another task takes over, and lets
// it join again.
TEST(Processes, ComeAndGoThoughTheyCoordinate) {
  for (const bool kill : {true, false}) {
    const Workers cluster(3, {"secret=s", "min=3"});
    std::vector<Process> all;
    all.push_back(cluster.start(
        0, {"join", "elastic:1", "barrier:a", "input", "announce", "leave:5"}));
    for (int i = 1; i < 3; ++i) {
      all.push_back(cluster.start(
          i, {"join", "elastic:1", "barrier:a", "wait", "shrink", "barrier:b",
              "wait", "shrink", "barrier:c", "leave"}));
    }
    for (Process& p : all) EXPECT_EQ(p.line("barrier"), "barrier");
    if (kill) {
      all[0].signal(SIGKILL);
    } else {
      all[0].go();
    }
    all[0].end();
    for (int i = 1; i < 3; ++i) {
      const std::string why = all[i].line("failed");
      EXPECT_NE(why.find(cluster.name(0)), std::string::npos) << why;
      EXPECT_NE(why.find(kill ? "was lost" : "was told to end"),
                std::string::npos)
          << why;
      EXPECT_EQ(all[i].line("joined"),
                "joined 2 rank " + std::to_string(i - 1) + " of 2");
      EXPECT_EQ(all[i].line("barrier"), "barrier");
    }
    Process back = cluster.start(0, {"join", "barrier:c", "leave"});
    for (int i = 1; i < 3; ++i) {
      const std::string why = all[i].line("failed");
      EXPECT_NE(why.find(cluster.name(0) + " changes the cluster: it joins"),
                std::string::npos)
          << why;
      EXPECT_EQ(all[i].line("joined"),
                "joined 3 rank " + std::to_string(i) + " of 3");
    }
    EXPECT_EQ(back.line("joined"), "joined 3 rank 0 of 3");
    for (Process* p : {&all[1], &all[2], &back}) {
      EXPECT_EQ(p->line("leave"), "leave");
    }
  }
}

TEST(Processes, OfAnElasticJobComeAndGo) {
  const Workers cluster(3, {"secret=s", "elastic=worker"});
  Process head = cluster.start(0, {"join", "call:worker:1/sleep", "input",
                                   "call:worker:1/x", "barrier:d", "leave"});
  Process other = cluster.start(2, {"join", "barrier:d", "leave"});
  Process lost = cluster.start(1, {"join", "wait"});
  lost.line("joined");
  ::usleep(100'000);  // usually long enough for the call to arrive
  lost.signal(SIGKILL);
  const std::string error = head.line("error");
  EXPECT_NE(error.find("UNAVAILABLE " + cluster.name(1) + " was lost"),
            std::string::npos)
      << error;
  lost.end();
  Process back = cluster.start(1, {"join", "barrier:d", "leave"});
  EXPECT_EQ(back.line("joined"), "joined 1 rank 1 of 3");
  head.go();
  EXPECT_EQ(head.line("worker:1"), "worker:1 hears worker:0: x");
  for (Process* p : {&head, &other, &back}) {
    EXPECT_EQ(p->line("leave"), "leave");
  }
}

}  // namespace
}  // namespace berth::rpc
