// Devices of another process on loopback: what an eager call costs until its
// value is here, what one costs whose value nobody reads, and a step of two
// layers of which one is there.

#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "bench_common.h"
#include "berth/berth.h"

using namespace berth;
using namespace berth_bench;

namespace {

constexpr const char* kFar = "/job:worker/task:0/device:CPU:0";

// A port that the kernel chose.
std::string free_address() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(at);
  auto* generic = reinterpret_cast<sockaddr*>(&at);
  if (bind(fd, generic, length) != 0) return "127.0.0.1:29500";
  getsockname(fd, generic, &length);
  close(fd);
  return "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
}

pid_t start_worker(const distribute::ClusterSpec& spec) {
  const std::string program =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "berth")
          .string();
  const std::string config =
      "{\"cluster\": " + spec.json() +
      ", \"task\": {\"type\": \"worker\", \"index\": 0}}";
  setenv("TF_CONFIG", config.c_str(), 1);
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execl(program.c_str(), program.c_str(), "worker", "--devices", "CPUx1",
          nullptr);
    _exit(127);
  }
  unsetenv("TF_CONFIG");
  return pid;
}

// Milliseconds of a step whose second layer is on `device`.
Timing step_on(const char* second, double seconds) {
  random::set_seed(1);
  Variable w(random::normal({256, 256}));
  Variable u = with_device(second, [] {
    return Variable(fill({256, 256}, 0.01f));
  });
  const Tensor x = random::normal({64, 256});
  auto step = function([&](const Tensor& x) {
    GradientTape tape;
    const Tensor h = nn::relu(linalg::matmul(x, w));
    const Tensor loss = with_device(second, [&] {
      return math::reduce_mean(math::square(linalg::matmul(h, u)));
    });
    const Tensors g = tape.gradient(loss, std::vector<Variable>{w, u});
    w.assign_sub(g[0] * 0.01f);
    u.assign_sub(g[1] * 0.01f);
    return loss;
  });
  return measure([&] { step(x).item<float>(); }, seconds);
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  const distribute::ClusterSpec spec(
      {{"chief", {free_address()}}, {"worker", {free_address()}}});
  const pid_t worker = start_worker(spec);
  try {
    config::connect_to_cluster(spec, "chief", 0, {.join_timeout_seconds = 30});
  } catch (const errors::Error& e) {
    kill(worker, SIGKILL);
    waitpid(worker, nullptr, 0);
    return skip("remote_eager_call", args.cores, e.what());
  }
  {
    const auto on = device(kFar);
    const Tensor a = fill({4}, 1.0f);
    Line("remote_eager_call", args.cores)
        .timing(measure([&] { (a + a).to_vector<float>(); }, args.seconds),
                "us", 1e6)
        .print();
    Tensor b = a;
    const Timing t = measure(
        [&] {
          for (int i = 0; i < 100; ++i) b = a + a;
          b.to_vector<float>();
        },
        args.seconds);
    Line("remote_eager_op", args.cores).timing(t, "us", 1e4).print();
  }
  const Timing here = step_on("/CPU:0", args.seconds);
  const Timing there = step_on(kFar, args.seconds);
  Line("remote_split_step", args.cores)
      .timing(there, "us", 1e6)
      .add("over_one_process", there.best / here.best)
      .print();
  config::disconnect_from_cluster();
  waitpid(worker, nullptr, 0);
}
