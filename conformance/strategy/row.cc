#include "conformance/strategy/row.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <random>
#include <sstream>

#include "berth/errors.h"
#include "berth/multi_worker.h"

namespace berth::strategy_suite {

namespace {

distribute::Shares shares_of(const std::string& text) {
  if (text == "equal") return {};
  if (text == "auto") return distribute::Auto;
  std::vector<double> weights;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ':');) {
    weights.push_back(std::stod(part));
  }
  return weights;
}

distribute::CrossDeviceOps algorithm_of(const std::string& name) {
  using enum distribute::CrossDeviceOps;
  if (name == "auto") return kAuto;
  if (name == "ring") return kRing;
  if (name == "pairs") return kHierarchicalCopyAllReduce;
  if (name == "one") return kReductionToOneDevice;
  if (name == "direct") return kDirect;
  throw errors::NotFound("no algorithm \"" + name + "\" in the suite");
}

distribute::Sharding sharding_of(const std::string& name) {
  using enum distribute::Sharding;
  if (name == "none") return kNone;
  if (name == "optimizer") return kOptimizer;
  if (name == "gradients") return kGradients;
  if (name == "parameters") return kParameters;
  throw errors::NotFound("no sharding \"" + name + "\" in the suite");
}

}  // namespace

int64_t count_of(Examples examples) {
  switch (examples) {
    case Examples::kEven:
      return 3 * kBatch;
    case Examples::kUneven:
      return 2 * kBatch + 13;
    case Examples::kEmpty:
      return 2 * kBatch + 1;
  }
  return 0;
}

std::string Row::name() const {
  static constexpr const char* kExamples[] = {"even", "uneven", "empty"};
  std::string s =
      fmt::format("{}_{}_{}_{}_{}", model, optimizer,
                  kExamples[static_cast<int>(examples)], strategy, devices);
  if (shares != "equal") s += "_shares_" + shares;
  if (devices_per_replica != 1) s += fmt::format("_of_{}", devices_per_replica);
  if (slices) s += fmt::format("_slices_{}", slices);
  if (algorithm != "auto") s += "_" + algorithm;
  if (sharding != "none") s += "_" + sharding;
  if (pack_bytes) s += fmt::format("_pack_{}", pack_bytes);
  if (seed) s += fmt::format("_seed_{}", seed);
  if (way == Way::kTrainOnBatch) s += "_train_on_batch";
  for (char& c : s) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return s;
}

std::string Row::kind() const { return devices.substr(0, 3); }

std::ostream& operator<<(std::ostream& out, const Row& row) {
  return out << row.name();
}

std::vector<std::string> device_names(const std::string& devices) {
  std::vector<std::string> names;
  const size_t x = devices.find('x');
  if (x != std::string::npos) {
    for (int i = 0; i < std::stoi(devices.substr(x + 1)); ++i) {
      names.push_back(fmt::format("{}:{}", devices.substr(0, x), i));
    }
    return names;
  }
  std::istringstream in(devices);
  for (std::string part; std::getline(in, part, ',');) names.push_back(part);
  return names;
}

distribute::Strategy strategy_of(const Row& row) {
  const auto names = device_names(row.devices);
  if (row.strategy == "one_device") {
    return distribute::OneDeviceStrategy(names.front());
  }
  const distribute::StrategyOptions options = {
      .devices = names,
      .cross_device_ops = algorithm_of(row.algorithm),
      .communication = {.bytes_per_pack = row.pack_bytes,
                        .timeout_seconds = row.timeout_seconds},
      .devices_per_replica = row.devices_per_replica,
      .shares = shares_of(row.shares),
      .slices = row.slices,
      .sharding = sharding_of(row.sharding)};
  if (row.strategy == "central") {
    return distribute::CentralStorageStrategy(options);
  }
  if (row.strategy == "multi_worker") {
    return distribute::MultiWorkerMirroredStrategy(
        distribute::cluster_resolver::from_environment(), options);
  }
  if (row.strategy == "mirrored") return distribute::MirroredStrategy(options);
  throw errors::NotFound("no strategy \"" + row.strategy + "\" in the suite");
}

namespace {

class Dice {
 public:
  explicit Dice(uint32_t seed) : engine_(seed) {}
  int below(int n) {
    return static_cast<int>(engine_() % static_cast<uint32_t>(n));
  }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int>(list.size())))];
  }
  std::vector<std::string> devices(bool one_kind) {
    const char* kind = below(2) ? "CPU" : "GPU";
    std::vector<std::string> names;
    for (const int count = 1 + below(4);
         static_cast<int>(names.size()) < count;) {
      if (!one_kind) kind = below(2) ? "CPU" : "GPU";
      const std::string name = fmt::format("{}:{}", kind, below(4));
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(name);
      }
    }
    return names;
  }

 private:
  std::mt19937 engine_;  // the same numbers everywhere
};

}  // namespace

std::vector<Row> random_rows(const std::vector<std::string>& models, int count,
                             bool one_kind) {
  Dice dice(one_kind ? 1 : 2);
  std::vector<Row> rows;
  while (static_cast<int>(rows.size()) < count) {
    Row row;
    row.model = dice.of(models);
    row.optimizer = dice.of<std::string>({"sgd", "momentum", "nesterov"});
    row.examples = static_cast<Examples>(dice.below(3));
    const auto names = dice.devices(one_kind);
    row.devices = fmt::format("{}", fmt::join(names, ","));
    // The host updates: another backend than that of GPUs.
    if (dice.below(4) == 0 && !(one_kind && names[0][0] == 'G')) {
      row.strategy = "central";
    }
    if (dice.below(3) == 0) {
      row.shares.clear();
      for (size_t i = 0; i < names.size(); ++i) {
        row.shares += fmt::format("{}{}", i ? ":" : "", 1 + dice.below(5));
      }
    } else if (dice.below(6) == 0) {
      row.shares = "auto";
    }
    if (one_kind || dice.below(3) == 0) row.slices = 4 + dice.below(13);
    row.algorithm = dice.of<std::string>(
        one_kind ? std::vector<std::string>{"auto", "one", "direct"}
                 : std::vector<std::string>{"auto", "ring", "pairs", "one",
                                            "direct"});
    row.pack_bytes = dice.of<int64_t>({0, 16, 500, 1 << 30});
    row.seed = static_cast<uint64_t>(dice.below(1000));
    row.way = dice.below(4) ? Way::kFit : Way::kTrainOnBatch;
    rows.push_back(row);
  }
  return rows;
}

}  // namespace berth::strategy_suite
