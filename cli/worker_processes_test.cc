// Starts `berth worker` processes and uses their devices.

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "base/free_ports.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"

namespace berth {
namespace {

using fresh_process::check;
using Floats = std::vector<float>;

// Two workers, started before this process has threads; it is the chief.
class Workers {
 public:
  Workers() {
    const auto a = free_addresses(3);
    spec_ =
        distribute::ClusterSpec({{"chief", {a[0]}}, {"worker", {a[1], a[2]}}});
    for (int i = 0; i < 2; ++i) {
      const std::string config = "{\"cluster\": " + spec_.json() +
                                 ", \"task\": {\"type\": \"worker\", "
                                 "\"index\": " +
                                 std::to_string(i) + "}}";
      setenv("TF_CONFIG", config.c_str(), 1);
      pids_.push_back(start());
    }
    unsetenv("TF_CONFIG");
  }
  ~Workers() {
    for (const pid_t pid : pids_) kill_one(pid);
  }
  void connect() {
    config::set_logical_device_configuration({"/physical_device:CPU:0", "CPU"},
                                             {{.workers = 1, .shared = true}});
    config::connect_to_cluster(
        spec_, "chief", 0,
        {.join_timeout_seconds = 60, .call_timeout_seconds = 60});
  }
  void lose(int i) { kill_one(pids_[static_cast<size_t>(i)]); }
  // Waits for both to end; returns true when they ended well.
  bool ended_well() {
    bool well = true;
    for (const pid_t pid : pids_) {
      int status = 1;
      waitpid(pid, &status, 0);
      well = well && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    pids_.clear();
    return well;
  }

 private:
  static pid_t start() {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execl(BERTH_CLI_FILE, BERTH_CLI_FILE, "worker", nullptr);
    _exit(127);
  }
  static void kill_one(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }

  distribute::ClusterSpec spec_;
  std::vector<pid_t> pids_;
};

bool has_plugin() {
  return access(BERTH_RPC_FILE, R_OK) == 0;  // built where gRPC is available
}

constexpr const char* kFar[] = {"/job:worker/task:0/device:CPU:0",
                                "/job:worker/task:1/device:CPU:0"};

std::vector<Floats> train(const std::string& a, const std::string& b) {
  random::set_seed(3);
  const auto make = [](const std::string& where, const Shape& shape) {
    const Tensor value =
        with_device("/CPU:0", [&] { return random::normal(shape); });
    return with_device(where, [&] { return Variable(value); });
  };
  const Variable w = make(a, {8, 16}), u = make(b, {16, 4});
  auto step = function(
      [&](const Tensor& x) {
        GradientTape tape;
        const Tensor h =
            with_device(a, [&] { return nn::relu(linalg::matmul(x, w)); });
        const Tensor loss = with_device(b, [&] {
          return math::reduce_mean(math::square(linalg::matmul(h, u)));
        });
        const Tensors g = tape.gradient(loss, std::vector<Variable>{w, u});
        w.assign_sub(g[0] * 0.1f);
        u.assign_sub(g[1] * 0.1f);
        return loss;
      },
      {.slices = 2});
  std::vector<Floats> seen;
  for (int i = 0; i < 20; ++i) {
    const Tensor x = with_device("/CPU:0", [&] {
      return random::normal({32, 8});
    });
    seen.push_back(step(x).to_vector<float>());
  }
  seen.push_back(w.value().to_vector<float>());
  seen.push_back(u.value().to_vector<float>());
  return seen;
}

void work_and_leave() {
  Workers workers;
  workers.connect();
  check(config::list_logical_devices().size() >= 3, "their devices");
  const Tensor x = with_device(kFar[0], [] {
    return linalg::matmul(fill({4, 4}, 2.f), fill({4, 4}, 1.f));
  });
  const Tensor y = with_device(kFar[1], [&] { return x + 1.0f; });
  check(y.to_vector<float>() == Floats(16, 9.0f), "eager values");
  check(train(kFar[0], kFar[1]) == train("/CPU:0", "/CPU:0"), "equal bits");
  config::disconnect_from_cluster();
  check(workers.ended_well(), "workers end with their coordinator");
}

void lose_one() {
  Workers workers;
  workers.connect();
  const Tensor x = with_device(kFar[1], [] { return fill({4}, 2.f) * 2.0f; });
  check(x.to_vector<float>() == Floats(4, 4.0f), "before the loss");
  workers.lose(1);
  const auto begin = std::chrono::steady_clock::now();
  fresh_process::refuses<errors::Unavailable>(
      [&] {
        for (int i = 0; i < 1000; ++i) (x + 1.0f).to_vector<float>();
      },
      "worker:1");
  check(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30),
        "a loss is seen in bounded time");
}

TEST(WorkerProcesses, TrainWithTheBitsOfOneDeviceAndEndWithTheirCoordinator) {
  if (!has_plugin()) GTEST_SKIP() << "built without gRPC";
  IN_A_FRESH_PROCESS(work_and_leave());
}

TEST(WorkerProcesses, ALossIsNamed) {
  if (!has_plugin()) GTEST_SKIP() << "built without gRPC";
  IN_A_FRESH_PROCESS(lose_one());
}

}  // namespace
}  // namespace berth
