#include "distribute/search/chain_costs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "collective/device_allreduce.h"

namespace berth::distribute {

namespace {

// What a replica holds of activations, relative to a device alone.
constexpr double kReplicasHold = 1.1;

}  // namespace

ChainCosts::ChainCosts(const ModelChain& chain, const ParallelCandidate& c)
    : chain_(chain),
      c_(c),
      split_(c.split < 0 ? nullptr
                         : &chain.splits[static_cast<size_t>(c.split)]) {}

const DeviceClass& ChainCosts::class_of(int g) const {
  return chain_.machine.class_of(static_cast<int32_t>(device_of(g)));
}

const LinkCost& ChainCosts::link_to(int g) const {
  return chain_.machine.link(
      static_cast<int32_t>(device_of((g + 1) % c_.groups())),
      static_cast<int32_t>(device_of(g)));
}

// Parts wait for the slowest of them.
LayerTimes ChainCosts::layer(int g, size_t k, double rows) const {
  const ChainLayer& l = chain_.layers[k];
  LayerTimes t;
  for (int p = 0; p < c_.parts; ++p) {
    const auto d =
        static_cast<size_t>(c_.devices[static_cast<size_t>(g * c_.parts + p)]);
    const SplitLayer s = split_ ? split_->layers[k] : SplitLayer{};
    const auto of = [&](const PassTime& pass, double share) {
      return pass.fixed_us + pass.example_us * rows * share;
    };
    t.forward_us = std::max(t.forward_us, of(l.forward[d], s.forward));
    t.input_us = std::max(t.input_us, of(l.input[d], s.backward));
    t.weight_us = std::max(t.weight_us, of(l.weight[d], s.backward));
    t.update_us = std::max(t.update_us, l.update_us[d] * s.update);
  }
  if (split_ == nullptr) return t;
  const SplitLayer& s = split_->layers[k];
  t.forward_sum_us =
      between_parts_us(g, s.forward_bytes * rows, s.forward_sums);
  t.backward_sum_us =
      between_parts_us(g, s.backward_bytes * rows, s.backward_sums);
  return t;
}

std::vector<double> ChainCosts::speeds_of(int g, double rows) const {
  std::vector<double> all = {rows};
  const int n = c_.groups();
  const auto to = static_cast<int32_t>(device_of(g));
  const auto add_link = [&](size_t from) {
    const LinkCost& link = chain_.machine.link(static_cast<int32_t>(from), to);
    all.insert(all.end(), {link.latency_us, link.bytes_per_us});
  };
  for (int p = 0; p < c_.parts; ++p) {
    const auto d =
        static_cast<size_t>(c_.devices[static_cast<size_t>(g * c_.parts + p)]);
    all.push_back(chain_.machine.devices[d].device_class);
    add_link(d);
  }
  add_link(device_of((g + 1) % n));
  return all;
}

std::vector<int> ChainCosts::distinct_groups() const {
  std::set<std::vector<double>> seen;
  std::vector<int> all;
  for (int g = 0; g < c_.groups(); ++g) {
    if (seen.insert(speeds_of(g, 0)).second) all.push_back(g);
  }
  return all;
}

double ChainCosts::trained_bytes(size_t k) const {
  return static_cast<double>(chain_.layers[k].trained_bytes) *
         (split_ ? split_->layers[k].trained : 1);
}

// Each of the parts sends what it has to each other, and adds what it gets.
double ChainCosts::between_parts_us(int g, double bytes, int values) const {
  if (values == 0) return 0;
  const auto others = static_cast<double>(c_.parts - 1);
  const auto to = static_cast<int32_t>(device_of(g));
  double link_us = 0;  // of the slowest
  for (int p = 1; p < c_.parts; ++p) {
    const LinkCost& link = chain_.machine.link(
        c_.devices[static_cast<size_t>(g * c_.parts + p)], to);
    link_us =
        std::max(link_us, values * link.latency_us + bytes / link.bytes_per_us);
  }
  const DeviceClass& at = class_of(g);
  return others * (link_us + values * at.launch_us + at.moving_us(3 * bytes));
}

// By parts of the elements, round a ring or directly: each device gets as much.
double ChainCosts::sum_us(int g, double bytes, int n) const {
  const LinkCost& link = link_to(g);
  const DeviceClass& at = class_of(g);
  const double others = n - 1;
  if (bytes < kSmallBytes) {
    return others * (link.latency_us + bytes / link.bytes_per_us +
                     at.launch_us + at.moving_us(3 * bytes));
  }
  return 2 * others * (link.latency_us + bytes / n / link.bytes_per_us) +
         others * (at.launch_us + at.moving_us(3 * bytes / n)) +
         2 * (at.launch_us + at.moving_us(2 * bytes));
}

double ChainCosts::apart_us(int g) const {
  int variables = 0;
  for (const ChainLayer& l : chain_.layers) variables += l.num_trained;
  return 2 * (c_.groups() - 1) * variables * link_to(g).latency_us;
}

int64_t ChainCosts::sum_copies(double bytes, int n) const {
  const int64_t pairs = static_cast<int64_t>(n) * (n - 1);
  return bytes < kSmallBytes ? pairs : 2 * pairs;
}

double ChainCosts::gather_us(int g, double bytes, int n) const {
  const LinkCost& link = link_to(g);
  return (n - 1) * (link.latency_us + bytes / n / link.bytes_per_us);
}

int64_t ChainCosts::layer_copies() const {
  if (split_ == nullptr) return 0;
  int64_t values = 0;
  for (const SplitLayer& l : split_->layers) {
    values += l.forward_sums + l.backward_sums;
  }
  return values * c_.parts * (c_.parts - 1) * c_.micro_batches;
}

// Variables, what the optimizer keeps of them, and gradients.
double ChainCosts::state_bytes(size_t k, double gradients) const {
  const ChainLayer& l = chain_.layers[k];
  const double share = split_ ? split_->layers[k].trained : 1;
  return share * (static_cast<double>(l.trained_bytes) * (1 + gradients) +
                  static_cast<double>(l.slot_bytes)) +
         static_cast<double>(l.other_bytes);
}

int64_t ChainCosts::limit(size_t d) const {
  const double held = chain_.held_over_predicted[static_cast<size_t>(c_.kind)];
  const int64_t bytes = chain_.machine.devices[d].memory_limit;
  if (bytes == 0) return 0;
  return std::max<int64_t>(1, std::llround(static_cast<double>(bytes) / held));
}

std::vector<int64_t> ChainCosts::bytes_of_replicas(
    const std::vector<double>& rows) const {
  const double n = c_.groups();
  const auto part = [&](Sharding from) { return c_.sharding >= from ? n : 1.; };
  double state = 0, kept = 0, largest = 0, second = 0, trained = 0;
  for (size_t k = 0; k < chain_.layers.size(); ++k) {
    const ChainLayer& l = chain_.layers[k];
    const double share = split_ ? split_->layers[k].trained : 1;
    const double bytes = share * static_cast<double>(l.trained_bytes);
    const double held = c_.devices.size() > 1 ? 1 : chain_.gradients_held;
    state +=
        bytes / part(Sharding::kParameters) +
        bytes * held / part(Sharding::kGradients) +
        share * static_cast<double>(l.slot_bytes) / part(Sharding::kOptimizer) +
        static_cast<double>(l.other_bytes);
    kept += l.kept_bytes * (split_ ? split_->layers[k].kept : 1);
    trained += bytes;
    second = std::max(second, std::min(bytes, largest));
    largest = std::max(largest, bytes);
  }
  if (c_.sharding == Sharding::kParameters) state += largest + second;
  // Packs that are on their way, and their sums.
  if (n > 1) state += 2 * std::min(trained, double{4 << 20});
  if (c_.parts > 1) state += std::min(trained, double{4 << 20});
  std::vector<int64_t> bytes;
  const double hold = c_.devices.size() < 2 ? 1 : kReplicasHold;
  for (const double r : rows) {
    const double all = state + hold * (kept * r + transient(r));
    bytes.insert(bytes.end(), static_cast<size_t>(c_.parts), std::llround(all));
  }
  return bytes;
}

ScheduleShape ChainCosts::shape() const {
  const bool two = c_.schedule == PipelineSchedule::kZbV ||
                   c_.schedule == PipelineSchedule::kInterleaved1F1B;
  const int n = c_.groups();
  return {c_.schedule, n, two ? 2 * n : n, c_.micro_batches};
}

double ChainCosts::rows() const {
  return static_cast<double>(chain_.batch) / c_.micro_batches;
}

// What a device works on, or the gradients of micro-batches whose weights wait.
int ChainCosts::beside(int in_flight) const {
  const bool waits = c_.schedule == PipelineSchedule::kZbH1 ||
                     c_.schedule == PipelineSchedule::kZbV;
  return waits ? in_flight : 2;
}

std::vector<int> ChainCosts::held() const {
  const ScheduleShape s = shape();
  const std::vector<int> by_device = in_flight(actions_of(s));
  const int per_device = s.stages / s.devices;
  std::vector<int> held;
  for (int k = 0; k < s.stages; ++k) {
    const int all = by_device[static_cast<size_t>(s.device_of(k))];
    held.push_back((all + beside(all) + per_device - 1) / per_device);
  }
  return held;
}

// Sums over micro-batches are added in place, a launch for each variable.
double ChainCosts::accumulate_us(int g, size_t k) const {
  const int variables = chain_.layers[k].num_trained;
  if (c_.micro_batches < 2 || variables == 0) return 0;
  const DeviceClass& at = class_of(g);
  return variables * at.launch_us + at.moving_us(3 * trained_bytes(k));
}

StageSum ChainCosts::start_stage(size_t stage) const {
  return {.stage = static_cast<int>(stage)};
}

void ChainCosts::extend(StageSum& sum, size_t k) const {
  const int g = shape().device_of(sum.stage);
  const LayerTimes t = layer(g, k, rows());
  sum.forward_us += t.forward_us + t.forward_sum_us;
  sum.input_us += t.input_us + t.backward_sum_us;
  sum.weight_us += t.weight_us + accumulate_us(g, k);
  sum.update_us += t.update_us;
  sum.sums_us += t.forward_sum_us + t.backward_sum_us;
  sum.kept += state_bytes(k, 1);
  sum.passing += chain_.layers[k].kept_bytes * rows() *
                 (split_ ? split_->layers[k].kept : 1);
  sum.largest = std::max(sum.largest, trained_bytes(k));
}

StageSum ChainCosts::stage(const std::vector<int32_t>& begin, size_t k) const {
  const auto end = k + 1 < begin.size() ? static_cast<size_t>(begin[k + 1])
                                        : chain_.layers.size();
  StageSum sum = start_stage(k);
  for (auto u = static_cast<size_t>(begin[k]); u < end; ++u) extend(sum, u);
  return sum;
}

bool ChainCosts::fits(const StageSum& sum, size_t stage, int held) const {
  const int g = shape().device_of(static_cast<int>(stage));
  for (int p = 0; p < c_.parts; ++p) {
    const auto d =
        static_cast<size_t>(c_.devices[static_cast<size_t>(g * c_.parts + p)]);
    const auto limit = static_cast<double>(this->limit(d));
    const double all =
        sum.kept + sum.passing * held + sum.largest + transient(rows());
    if (limit > 0 && all > limit) return false;
  }
  return true;
}

ChainStageTimes ChainCosts::stages(const std::vector<int32_t>& begin) const {
  const ScheduleShape s = shape();
  ChainStageTimes all;
  all.update_us.assign(static_cast<size_t>(s.devices), 0);
  all.sums_us = all.update_us;
  for (size_t k = 0; k < begin.size(); ++k) {
    const StageSum sum = stage(begin, k);
    const auto device = static_cast<size_t>(s.device_of(sum.stage));
    all.sums_us[device] += sum.sums_us * c_.micro_batches;
    all.times.forward.push_back(sum.forward_us);
    all.times.input.push_back(sum.input_us);
    all.times.weight.push_back(sum.weight_us);
    all.update_us[device] += sum.update_us;
    if (k == 0) continue;
    const double sent =
        chain_.layers[static_cast<size_t>(begin[k]) - 1].sent_bytes;
    all.times.hop =
        std::max(all.times.hop, hop_us(static_cast<int>(k), sent * rows()));
  }
  return all;
}

std::vector<int64_t> ChainCosts::bytes_of_stages(
    const std::vector<int32_t>& begin, const std::vector<int>& held) const {
  const ScheduleShape s = shape();
  const int per_device = s.stages / s.devices;
  std::vector<double> state(static_cast<size_t>(s.devices), 0);
  std::vector<double> passing = state, largest = state;
  for (size_t k = 0; k < begin.size(); ++k) {
    const StageSum sum = stage(begin, k);
    const auto d = static_cast<size_t>(s.device_of(sum.stage));
    state[d] += sum.kept;
    passing[d] += sum.passing / per_device;
    largest[d] = std::max(largest[d], sum.largest);
  }
  std::vector<int64_t> bytes;
  for (size_t d = 0; d < state.size(); ++d) {
    const double all = state[d] + passing[d] * (held[d] + beside(held[d])) +
                       largest[d] + transient(rows());
    bytes.insert(bytes.end(), static_cast<size_t>(c_.parts), std::llround(all));
  }
  return bytes;
}

double ChainCosts::hop_us(int stage, double bytes) const {
  const ScheduleShape s = shape();
  const int from = s.device_of(stage - 1), to = s.device_of(stage);
  if (from == to) return 0;
  return chain_.machine
      .link(static_cast<int32_t>(device_of(from)),
            static_cast<int32_t>(device_of(to)))
      .time_us(std::llround(bytes));
}

double ChainCosts::least_hop_us() const {
  double least = kImpossible;
  for (int s = 1; s < shape().stages; ++s) {
    if (shape().device_of(s) == shape().device_of(s - 1)) continue;
    for (size_t k = 1; k < chain_.layers.size(); ++k) {
      least =
          std::min(least, hop_us(s, chain_.layers[k - 1].sent_bytes * rows()));
    }
  }
  return least == kImpossible ? 0 : least;
}

UnitCosts ChainCosts::unit_costs() const {
  const ScheduleShape s = shape();
  const size_t n = chain_.layers.size();
  UnitCosts c{{},
              std::vector<int64_t>(n, 0),
              std::vector<int64_t>(n, 0),
              std::vector<int64_t>(n, 0)};
  std::map<std::vector<double>, size_t> known;
  for (int g = 0; g < s.devices; ++g) {
    const auto [same, fresh] = known.emplace(speeds_of(g, 0), c.us.size());
    if (!fresh) {
      c.us.push_back(std::vector<double>(c.us[same->second]));
      continue;
    }
    auto& us = c.us.emplace_back();
    for (size_t k = 0; k < n; ++k) {
      const LayerTimes t = layer(g, k, rows());
      us.push_back(t.forward_us + t.input_us + t.weight_us + t.forward_sum_us +
                   t.backward_sum_us + accumulate_us(g, k));
    }
  }
  for (size_t k = 0; k < n; ++k) {
    const double share = split_ ? split_->layers[k].kept : 1;
    c.kept_bytes[k] = std::llround(state_bytes(k, 1));
    c.passing_bytes[k] =
        std::llround(chain_.layers[k].kept_bytes * rows() * share);
    c.sent_bytes[k] = std::llround(chain_.layers[k].sent_bytes * rows());
  }
  return c;
}

std::vector<StageOn> ChainCosts::stages_on() const {
  const ScheduleShape s = shape();
  const std::vector<int> held = this->held();
  double largest = 0;
  for (size_t k = 0; k < chain_.layers.size(); ++k) {
    largest = std::max(largest, trained_bytes(k));
  }
  const auto beside = std::llround(largest + transient(rows()));
  std::vector<StageOn> stages;
  for (int k = 0; k < s.stages; ++k) {
    const int g = s.device_of(k);
    int64_t limit = 0;
    for (int p = 0; p < c_.parts; ++p) {
      const auto d = static_cast<size_t>(
          c_.devices[static_cast<size_t>(g * c_.parts + p)]);
      const int64_t l = this->limit(d);
      if (l > 0 && (limit == 0 || l < limit)) limit = l;
    }
    if (limit > 0) {
      limit = std::max<int64_t>(1, limit - beside) / (s.stages / s.devices);
    }
    const bool overlaps =
        chain_.machine.devices[device_of(g)].copies == CopyRule::kOverlap;
    stages.push_back({g, limit, held[static_cast<size_t>(k)], overlaps,
                      [this, k](int64_t bytes) {
                        return k == 0
                                   ? 0
                                   : 2 * hop_us(k, static_cast<double>(bytes));
                      }});
  }
  return stages;
}

ChainCosts::Least ChainCosts::least(double rows) const {
  const size_t n = chain_.layers.size();
  Least sums{std::vector<double>(n + 1, 0), std::vector<double>(n + 1, 0),
             std::vector<double>(n + 1, 0)};
  const std::vector<int> groups = distinct_groups();
  for (size_t k = 0; k < n; ++k) {
    double f = kImpossible, i = kImpossible, w = kImpossible;
    for (const int g : groups) {
      const LayerTimes t = layer(g, k, rows);
      f = std::min(f, t.forward_us + t.forward_sum_us);
      i = std::min(i, t.input_us + t.backward_sum_us);
      w = std::min(w, t.weight_us + accumulate_us(g, k));
    }
    sums.forward[k + 1] = sums.forward[k] + f;
    sums.input[k + 1] = sums.input[k] + i;
    sums.weight[k + 1] = sums.weight[k] + w;
  }
  return sums;
}

}  // namespace berth::distribute
