// Training steps across processes of this machine, on loopback: two tasks of a
// core each against one process of two, the same with equal bits, how long a
// cluster of four takes until its first step is done, and what plans predict.
//
//   bench_task_steps --model mlp|cnn|start|predict
//
// The tasks are this program, started anew with TF_CONFIG. Their peers are
// peers/python/torch_workers.py and tensorflow_workers.py.

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "bench_common.h"
#include "berth/berth.h"
#include "distribute/multi_worker/gradient_exchange.h"
#include "distribute/multi_worker/task_rates.h"
#include "distribute/strategy/strategy_core.h"

using namespace berth;
using namespace berth_bench;

namespace {

constexpr int kWarmUp = 10, kBlocks = 12;

struct StepCase {
  std::string model;
  int64_t batch = 256;  // of all tasks together
  int slices = 0;
  const char* transport = "";
};

keras::Sequential model_of(const std::string& name) {
  if (name == "cnn") {
    return keras::Sequential(
        {keras::InputLayer({28, 28, 1}),
         keras::Conv2D(32, 3, {.activation = "relu"}), keras::MaxPooling2D(2),
         keras::Conv2D(64, 3, {.activation = "relu"}), keras::MaxPooling2D(2),
         keras::Flatten(), keras::Dense(10, {.activation = "softmax"})});
  }
  const bool wide = name == "wide", deep = name == "deep";
  const int layers = deep ? 16 : 2, width = deep ? 128 : wide ? 2048 : 512;
  std::vector<keras::Layer> all{keras::InputLayer({784})};
  for (int i = 0; i < layers; ++i) {
    all.push_back(keras::Dense(width, {.activation = "relu"}));
  }
  all.push_back(keras::Dense(10, {.activation = "softmax"}));
  return keras::Sequential(all);
}

// After measuring the links.
double predicted_seconds(const distribute::MultiWorkerMirroredStrategy& s,
                         const keras::Sequential& model, int64_t batch) {
  if (const auto link = s.core()->link()) {
    distribute::keep_rates(link->member(),
                           distribute::measure_tasks(link->member(), true));
  }
  return s.plan(model, batch).step_us * 1e-6;
}

// One task: prints its best time of a step and what its plan said, or when its
// first was done.
int child(const StepCase& of) {
  const auto& [name, batch, slices, transport] = of;
  const distribute::MultiWorkerMirroredStrategy strategy(
      distribute::cluster_resolver::from_environment(), {.slices = slices});
  const auto scope = strategy.scope();
  auto model = model_of(name);
  model.compile({.optimizer = "sgd",
                 .loss = "sparse_categorical_crossentropy",
                 .slices = slices});
  random::set_seed(1);
  const Tensor x = random::uniform(name == "cnn" ? Shape{batch, 28, 28, 1}
                                                 : Shape{batch, 784});
  const Tensor y = random::uniform({batch}, {.maxval = 10, .dtype = int32});
  double result = 0, predicted = 0;
  if (name == "start") {
    model.train_on_batch(x, y);
    result = now_seconds();
  } else {
    predicted = predicted_seconds(strategy, model, batch);
    const int calls = name == "cnn" || name == "wide" ? 2 : 20;
    for (int i = 0; i < kWarmUp; ++i) model.train_on_batch(x, y);
    result = 1e9;
    for (int block = 0; block < kBlocks; ++block) {
      const double begin = now_seconds();
      for (int i = 0; i < calls; ++i) model.train_on_batch(x, y);
      result = std::min(result, (now_seconds() - begin) / calls);
    }
  }
  strategy.leave();
  std::printf("%.9f %.9f\n", result, predicted);
  return 0;
}

std::vector<int> ports_that_are_free(int count) {
  std::vector<int> sockets, ports;
  for (int i = 0; i < count; ++i) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    sockets.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    bind(sockets.back(), reinterpret_cast<sockaddr*>(&at), size);
    getsockname(sockets.back(), reinterpret_cast<sockaddr*>(&at), &size);
    ports.push_back(ntohs(at.sin_port));
  }
  for (const int s : sockets) close(s);
  return ports;
}

struct Started {
  pid_t pid = -1;
  int out = -1;
};

Started start_task(const std::string& config, const std::string& cores,
                   const StepCase& of) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) return {};
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out[1], 1);
    if (!config.empty()) setenv("TF_CONFIG", config.c_str(), 1);
    setenv("BERTH_CORES", cores.c_str(), 1);
    setenv("BERTH_DEVICES", "CPUx1", 1);
    if (*of.transport) setenv("BERTH_TRANSPORT", of.transport, 1);
    execl("/proc/self/exe", "bench_task_steps", "child", of.model.c_str(),
          std::to_string(of.batch).c_str(), std::to_string(of.slices).c_str(),
          nullptr);
    _exit(127);
  }
  close(out[1]);
  return {pid, out[0]};
}

struct Said {
  double seconds = 0, predicted = 0;
};

Said numbers_of(const Started& task) {
  std::string text;
  char bytes[256];
  for (ssize_t n; (n = read(task.out, bytes, sizeof bytes)) > 0;) {
    text.append(bytes, static_cast<size_t>(n));
  }
  close(task.out);
  waitpid(task.pid, nullptr, 0);
  Said said;
  if (std::sscanf(text.c_str(), "%lf %lf", &said.seconds, &said.predicted) ==
      2) {
    return said;
  }
  std::fprintf(stderr, "a task failed: %s\n", text.c_str());
  std::exit(1);
}

// The largest of what the tasks say: one process of two cores, or `tasks` of
// one each.
Said run_tasks(const StepCase& of, int tasks) {
  std::string addresses;
  for (const int port : ports_that_are_free(tasks)) {
    addresses += (addresses.empty() ? "\"127.0.0.1:" : ", \"127.0.0.1:") +
                 std::to_string(port) + "\"";
  }
  std::vector<Started> all;
  for (int i = 0; i < tasks; ++i) {
    all.push_back(start_task(
        tasks == 1 ? ""
                   : "{\"cluster\": {\"worker\": [" + addresses +
                         "]}, \"task\": {\"type\": \"worker\", \"index\": " +
                         std::to_string(i) + "}}",
        tasks == 1 ? "0-1" : std::to_string(i % 2), of));
  }
  Said most;
  for (const Started& t : all) {
    const Said s = numbers_of(t);
    most = {std::max(most.seconds, s.seconds),
            std::max(most.predicted, s.predicted)};
  }
  return most;
}

void start_row() {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double begin = now_seconds();
    best = std::min(best, run_tasks({"start"}, 4).seconds - begin);
  }
  Line("task_start", 4).add("first_step_s", best).print();
}

// Best against best: what the plan said in the fastest of the rounds.
void predict_rows() {
  const std::vector<StepCase> cases = {{"mlp", 64},
                                       {"mlp"},
                                       {"mlp", 1024},
                                       {"mlp", 256, 4},
                                       {"cnn", 64},
                                       {"cnn"},
                                       {"cnn", 256, 4},
                                       {"mlp", 256, 0, "sockets"},
                                       {"deep"},
                                       {"wide", 128},
                                       {"wide", 128, 0, "sockets"}};
  std::vector<double> errors;
  for (const StepCase& c : cases) {
    Said best{1e9, 0};
    for (int i = 0; i < 3; ++i) {
      const Said s = run_tasks(c, 2);
      if (s.seconds < best.seconds) best = s;
    }
    const double ratio = best.predicted / best.seconds;
    errors.push_back(std::abs(ratio - 1));
    Line("task_prediction", 2)
        .add("model", c.model)
        .add("batch", static_cast<double>(c.batch))
        .add("slices", c.slices)
        .add("transport", c.transport)
        .add("best_us", best.seconds * 1e6)
        .add("predicted_over_measured", ratio)
        .print();
  }
  std::sort(errors.begin(), errors.end());
  Line("task_predictions", 2)
      .add("median_error", errors[errors.size() / 2])
      .add("largest_error", errors.back())
      .print();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5 && !std::strcmp(argv[1], "child")) {
    return child({argv[2], std::atoi(argv[3]), std::atoi(argv[4])});
  }
  const Args args = parse_args(argc, argv);
  if (allowed_cores().size() < 2) {
    return skip("task_steps", 2, "fewer than two cores");
  }
  if (args.model == "start") {
    start_row();
    return 0;
  }
  if (args.model == "predict") {
    predict_rows();
    return 0;
  }
  const std::string name = args.model.empty() ? "mlp" : args.model;
  double one = 1e9, two = 1e9, bits = 1e9, predicted = 0;
  for (int i = 0; i < 3; ++i) {
    one = std::min(one, run_tasks({name}, 1).seconds);
    const Said s = run_tasks({name}, 2);
    if (s.seconds < two) predicted = s.predicted;
    two = std::min(two, s.seconds);
    bits = std::min(bits, run_tasks({name, 256, 4}, 2).seconds);
  }
  Line("task_step", 2)
      .add("model", name)
      .add("best_us", two * 1e6)
      .add("one_process_us", one * 1e6)
      .add("equal_bits_us", bits * 1e6)
      .add("over_one_process", two / one)
      .add("predicted_over_measured", predicted / two)
      .add("equal_bits_over_default", bits / two)
      .print();
  return 0;
}
