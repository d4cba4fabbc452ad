// The planner against known results: public inputs of a benchmark, layered
// graphs made here, and large graphs; value, bound, gap and seconds of each.
//
// The public inputs are files, in $BERTH_DATA/placement/{throughput,experts};
// they are not part of the repository. --cores: threads of a search.

#include "planner/planner.h"

#include <cctype>
#include <filesystem>
#include <map>

#include "bench_common.h"
#include "cli/planner/problem_file.h"
#include "planner/layered_testing.h"
#include "planner/list_schedule.h"
#include "planner/plan_file.h"

using namespace berth;
using namespace berth_bench;

namespace {

// What is known about an input: our prototype's plan and bound in one second,
// and the dynamic program of the inputs' authors (0: it does not finish).
struct Known {
  double value, bound, authors;
};
const std::map<std::string, Known> kThroughput = {
    {"layergraphs-bert24_inference", {17.715, 17.695, 17.79}},
    {"layergraphs-bert24_training", {39.790, 39.733, 41.75}},
    {"layergraphs-gnmt_inference", {31.687, 31.647, 32.91}},
    {"layergraphs-gnmt_training", {88.462, 88.319, 107.00}},
    {"layergraphs-resnet50_inference", {33.50, 33.092, 33.77}},
    {"layergraphs-resnet50_training", {76.82, 75.945, 78.63}},
    {"layergraphs-inceptionv3_inference", {51.46, 51.027, 0}},
    {"layergraphs-inceptionv3_training", {117.68, 116.603, 0}},
    {"operatorgraphs-bert_l-3_inference", {21.908, 21.908, 27.92}},
    {"operatorgraphs-bert_l-3_training", {54.207, 54.207, 65.30}},
    {"operatorgraphs-bert_l-6_inference", {28.332, 26.553, 29.58}},
    {"operatorgraphs-bert_l-6_training", {71.642, 65.586, 72.86}},
    {"operatorgraphs-bert_l-12_inference", {130.04, 113.95, 147.48}},
    {"operatorgraphs-bert_l-12_training", {373.42, 328.33, 438.00}},
    {"operatorgraphs-resnet50_inference", {124.349, 124.349, 124.35}},
    {"operatorgraphs-resnet50_training", {255.194, 253.587, 255.19}},
};
std::filesystem::path inputs() {
  const char* data = std::getenv("BERTH_DATA");
  return data ? std::filesystem::path(data) / "placement" : "";
}

// What tools/plan_problem prints for the arguments.
std::string converted(const std::string& arguments) {
  const std::string command =
      "python3 " BERTH_SOURCE_DIR "/tools/plan_problem " + arguments;
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  for (int c; pipe != nullptr && (c = std::fgetc(pipe)) != EOF;) {
    text += static_cast<char>(c);
  }
  if (pipe == nullptr || pclose(pipe) != 0) {
    std::fprintf(stderr, "%s: failed\n", command.c_str());
    std::exit(1);
  }
  return text;
}

std::string lower(std::string s) {
  for (char& c : s) c = static_cast<char>(std::tolower(c));
  return s;
}

PlannerOptions options(const Args& args) {
  PlannerOptions o;
  o.seconds = args.seconds;
  o.threads = args.cores;
  return o;
}

Line& add(Line& line, const PlanAnswer& a) {
  return line.add("value", a.value)
      .add("bound", a.bound.value)
      .add("gap", a.gap())
      .add("seconds", a.seconds)
      .add("source", a.source);
}

// The value of the experts' split of an input; 0: there is none.
double expert_value(const PlanProblem& p, const std::string& input,
                    const std::string& name) {
  if (!name.starts_with("LayerGraphs-")) return 0;  // experts split layers
  std::string file = name.substr(name.find('-') + 1) + ".json";
  std::filesystem::path path = inputs() / "experts" / file;
  if (!std::filesystem::exists(path)) {  // forward ops decide for backward ones
    const size_t at = file.find("training");
    if (at == std::string::npos) return 0;
    path = inputs() / "experts" / file.replace(at, 8, "inference");
    if (!std::filesystem::exists(path)) return 0;
  }
  const std::string plan =
      converted("\"" + input + "\" --split \"" + path.string() + "\"");
  return evaluate(p, read_plan(p, plan, file).plan).value;
}

// All public inputs; the worst ratios in a last line.
void bench_inputs(const Args& args) {
  const std::string row = "throughput";
  double worst_value = 0, worst_bound = 0, worst_other = 0;
  int known = 0, count = 0;
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(inputs() / row)) {
    for (const auto& f : std::filesystem::directory_iterator(inputs() / row)) {
      if (f.path().extension() == ".json") files.push_back(f.path());
    }
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    const std::string name = file.stem().string();
    const PlanProblem p =
        read_problem(converted("\"" + file.string() + "\""), name);
    const PlanAnswer a = plan_placement(p, options(args));
    Line line("plan_" + row, args.cores);
    add(line.add("input", name), a);
    const double expert = expert_value(p, file.string(), name);
    if (expert > 0) {
      line.add("expert", expert);
      worst_other = std::max(worst_other, a.value / expert);
    }
    if (const auto k = kThroughput.find(lower(name)); k != kThroughput.end()) {
      line.add("known_value", k->second.value)
          .add("known_bound", k->second.bound);
      worst_value = std::max(worst_value, a.value / k->second.value);
      worst_bound = std::max(worst_bound, k->second.bound / a.bound.value);
      if (k->second.authors > 0) {
        worst_other = std::max(worst_other, a.value / k->second.authors);
      }
      ++known;
    }
    line.print();
    ++count;
  }
  Line all("plan_" + row + "_all", args.cores);
  if (known == 0) {
    all.add("skipped", "no inputs in $BERTH_DATA/placement/" + row).print();
    std::exit(kSkipStatus);
  }
  all.add("inputs", count)
      .add("value_over_known", worst_value)
      .add("known_bound_over_bound", worst_bound)
      .add("over_expert_and_authors", worst_other)
      .print();
}

// Layered graphs as training steps have them, 76 to 367 ops.
void bench_layered(const Args& args) {
  double worst = 0;
  for (const testing::LayeredShape& shape : testing::layered_shapes()) {
    const PlanProblem p = testing::Layered(shape).make();
    const PlanAnswer a = plan_placement(p, options(args));
    Line line("plan_layered", args.cores);
    add(line.add("ops", p.num_ops()).add("devices", p.num_devices()), a)
        .print();
    worst = std::max(worst, a.gap());
  }
  Line("plan_layered_all", args.cores).add("gap", worst).print();
}

// Layers of 32 ops that each read two of the layer before, on 8 equal GPUs.
PlanProblem large_problem(int ops) {
  constexpr int kWide = 32;
  testing::ProblemMaker m(PlanModel::kStep);
  const int gpu = m.device_class("GPU");
  for (int d = 0; d < 8; ++d) m.device("GPU:" + std::to_string(d), gpu);
  m.links(5, 1e4);
  StreamRandom random(1, 0);
  for (int i = 0; i < ops; ++i) {
    std::vector<int> inputs;
    for (int k = 0; i >= kWide && k < 2; ++k) {
      inputs.push_back(i / kWide * kWide - 1 -
                       static_cast<int>(random.below(kWide)));
    }
    m.op("op" + std::to_string(i), {20 + 100 * random.uniform()}, inputs,
         static_cast<int64_t>(random.below(400'000)));
  }
  return m.make();
}

// One pass of list scheduling, and the whole planner within `seconds`.
void bench_large(const char* name, int ops, double seconds, const Args& args) {
  const PlanProblem p = large_problem(ops);
  const StepUnits units(p);
  ListScheduler scheduler(units);
  StreamRandom random(1, 0);
  const Timing list = measure([&] { scheduler.run(kListRules[0], random); },
                              0.2 * args.seconds);
  PlannerOptions o = options(args);
  o.seconds = seconds;
  const PlanAnswer a = plan_placement(p, o);
  Line line(name, args.cores);
  add(line.add("ops", ops).add("list_ms", list.best * 1e3), a).print();
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  if (args.model == "throughput") {
    bench_inputs(args);
  } else if (args.model == "layered") {
    bench_layered(args);
  } else if (args.model == "large") {
    bench_large("plan_large_10k", 10000, 1, args);
    bench_large("plan_large_100k", 100000, 3, args);
  } else {
    std::fprintf(stderr, "--model throughput, layered or large\n");
    return 2;
  }
}
