// The search against every plan of small models, and its bound.

#include "distribute/search/search_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>

namespace berth::distribute {
namespace {

constexpr double kMega = 1 << 20;

Machine search_machine(const std::vector<double>& speeds,
                       const std::vector<int64_t>& limits) {
  Machine m;
  for (size_t d = 0; d < speeds.size(); ++d) {
    const std::string name = "/job:localhost/replica:0/task:0/device:GPU:";
    m.classes.push_back({.name = std::to_string(d),
                         .type = "GPU",
                         .flops_per_us = 1e6 * speeds[d],
                         .bytes_per_us = 1e6,
                         .launch_us = 5});
    m.devices.push_back({.name = name + std::to_string(d),
                         .device_class = static_cast<int32_t>(d),
                         .memory_limit = limits[d]});
  }
  m.links = {{.latency_us = 5, .bytes_per_us = 1e4}};
  return m;
}

// A layer that takes `us` on a device of speed 1 for a batch, both ways.
ChainLayer search_layer(const std::vector<double>& speeds, int64_t batch,
                        double us, double bytes) {
  ChainLayer l;
  const auto examples = static_cast<double>(batch);
  for (const double speed : speeds) {
    const PassTime pass{5, us / 3 / examples / speed};
    l.forward.push_back(pass);
    l.input.push_back(pass);
    l.weight.push_back(pass);
    l.update_us.push_back(5 + bytes / 1e6);
  }
  l.trained_bytes = static_cast<int64_t>(bytes);
  l.slot_bytes = 2 * l.trained_bytes;
  l.num_trained = 2;
  l.kept_bytes = bytes / examples;
  l.sent_bytes = 0.1 * bytes / examples;
  return l;
}

ModelChain drawn_chain(std::mt19937& random, bool limits) {
  const auto from = [&](double a, double b) {
    return std::uniform_real_distribution<double>(a, b)(random);
  };
  const int devices = 2 + static_cast<int>(random() % 2);
  std::vector<double> speeds;
  std::vector<int64_t> memory;
  for (int d = 0; d < devices; ++d) {
    speeds.push_back(random() % 2 == 0 ? 1 : from(0.5, 2));
    memory.push_back(limits ? static_cast<int64_t>(from(4, 60) * kMega) : 0);
  }
  ModelChain chain;
  chain.batch = 32;
  chain.machine = search_machine(speeds, memory);
  const int layers = 4 + static_cast<int>(random() % 3);
  for (int k = 0; k < layers; ++k) {
    chain.layers.push_back(search_layer(speeds, chain.batch, from(100, 3000),
                                        from(0.1, 3) * kMega));
  }
  return chain;
}

// Calls `see` with every cut of `layers` into `stages`.
template <class See>
void every_search_cut(int32_t layers, int stages, std::vector<int32_t> begin,
                      const See& see) {
  const auto left = stages - static_cast<int>(begin.size());
  if (left == 0) return see(begin);
  for (int32_t b = begin.back() + 1; b + left <= layers; ++b) {
    std::vector<int32_t> more = begin;
    more.push_back(b);
    every_search_cut(layers, stages, std::move(more), see);
  }
}

int stages_of(const ParallelCandidate& c) {
  const bool two = c.schedule == PipelineSchedule::kZbV ||
                   c.schedule == PipelineSchedule::kInterleaved1F1B;
  return (two ? 2 : 1) * c.groups();
}

// The fastest cut of a pipeline that fits; kImpossible: none does.
double best_cut(const ModelChain& chain, ParallelCandidate c) {
  double best = kImpossible;
  every_search_cut(static_cast<int32_t>(chain.layers.size()), stages_of(c), {0},
                   [&](const auto& begin) {
                     c.begin = begin;
                     estimate(chain, c);
                     if (c.fits()) best = std::min(best, c.step_us);
                   });
  return best;
}

std::vector<ParallelCandidate> all_pipelines(const ModelChain& chain) {
  using enum PipelineSchedule;
  std::vector<ParallelCandidate> all;
  std::vector<int> devices;
  for (size_t d = 0; d < chain.machine.devices.size(); ++d) {
    devices.push_back(static_cast<int>(d));
  }
  std::sort(devices.begin(), devices.end());
  do {
    for (size_t n = 2; n <= devices.size(); ++n) {
      for (const int m : {2, 4, 6, 8, 16, 32}) {
        for (const auto s : {kGPipe, k1F1B, kInterleaved1F1B, kZbH1, kZbV}) {
          if (s == kInterleaved1F1B && m % static_cast<int>(n) != 0) continue;
          ParallelCandidate c{.kind = ParallelKind::kPipeline,
                              .schedule = s,
                              .micro_batches = m};
          c.devices.assign(devices.begin(),
                           devices.begin() + static_cast<std::ptrdiff_t>(n));
          if (chain.layers.size() < static_cast<size_t>(stages_of(c))) continue;
          all.push_back(c);
        }
      }
    }
  } while (std::next_permutation(devices.begin(), devices.end()));
  return all;
}

TEST(SearchPlans, SlowNoCutIsUnderItsBound) {
  std::mt19937 random(5);
  int never = 0, tight = 0, seen = 0;
  for (int k = 0; k < 20; ++k) {
    const ModelChain chain = drawn_chain(random, k % 2 == 1);
    for (const ParallelCandidate& c : all_pipelines(chain)) {
      const double bound = bound_of(chain, c), best = best_cut(chain, c);
      ASSERT_LE(bound, best * (1 + 1e-9))
          << k << " schedule " << static_cast<int>(c.schedule) << " m "
          << c.micro_batches;
      never += bound == kImpossible;
      if (bound == 0) continue;  // interleaved stages
      ++seen;
      tight += bound * 1.1 >= best;
    }
  }
  EXPECT_GT(never, 0);
  EXPECT_GT(tight, seen / 3);
}

TEST(SearchPlans, SlowFindsWhatEveryPipelineGives) {
  std::mt19937 random(11);
  int found = 0;
  for (int k = 0; k < 20; ++k) {
    const ModelChain chain = drawn_chain(random, k % 2 == 1);
    double best = kImpossible;
    for (const ParallelCandidate& c : all_pipelines(chain)) {
      best = std::min(best, best_cut(chain, c));
    }
    SearchLimits only;
    only.replicas = only.tensor = false;
    const SearchResult got = search_plans(chain, only);
    for (const ParallelCandidate& c : got.best) {
      if (c.kind != ParallelKind::kPipeline || !c.fits()) continue;
      ++found;
      EXPECT_LE(c.step_us, best * 1.05) << k;
      EXPECT_GE(c.step_us, got.bound_us * (1 - 1e-9)) << k;
    }
  }
  EXPECT_GT(found, 12);
}

// Replicas on devices of speeds 1 and 3, of which the sums are nothing: three
// quarters of the batch go to the second.
TEST(SearchPlans, SharesFollowSpeeds) {
  ModelChain chain;
  chain.batch = 64;
  chain.machine = search_machine({1, 3}, {0, 0});
  chain.layers = {search_layer({1, 3}, 64, 40000, 1000)};
  SearchLimits only;
  only.pipelines = only.sharding = false;
  const ParallelCandidate best = search_plans(chain, only).best[0];
  EXPECT_EQ(best.kind, ParallelKind::kMirrored);
  EXPECT_EQ(best.shares, (std::vector<int>{8, 24}));
  EXPECT_NEAR(best.step_us, 10000 + 15, 60);
}

// Hosts of two devices each, between which a sum takes longer than the step:
// two devices of one host are used, however the devices are listed.
TEST(SearchPlans, LinksDecideWhichDevicesWorkTogether) {
  ModelChain chain;
  chain.batch = 32;
  const std::vector<double> speeds(4, 1);
  chain.machine = search_machine(speeds, {0, 0, 0, 0});
  chain.machine.host = {0, 1, 0, 1};
  chain.machine.num_hosts = 2;
  const LinkCost within{.latency_us = 5, .bytes_per_us = 1e5};
  const LinkCost network{.latency_us = 1e6, .bytes_per_us = 1e3};
  chain.machine.links = {within, network, network, within};
  for (int k = 0; k < 4; ++k) {
    chain.layers.push_back(search_layer(speeds, 32, 4000, kMega));
  }
  const SearchResult got = search_plans(chain, {});
  const ParallelCandidate& best = got.best[0];
  EXPECT_LT(best.step_us, 0.7 * 16000);
  ASSERT_EQ(best.devices.size(), 2U);
  EXPECT_EQ(best.devices[0] % 2, best.devices[1] % 2);
}

// Each of n replicas sends a small gradient to each other: n (n - 1) copies.
TEST(SearchPlans, CountsTheCopiesOfASum) {
  for (const int n : {2, 3}) {
    const std::vector<double> speeds(static_cast<size_t>(n), 1);
    ModelChain chain;
    chain.batch = 32;
    chain.machine =
        search_machine(speeds, std::vector<int64_t>(static_cast<size_t>(n), 0));
    chain.layers = {search_layer(speeds, 32, 4000, 1000)};
    ParallelCandidate c{.kind = ParallelKind::kMirrored};
    for (int d = 0; d < n; ++d) c.devices.push_back(d);
    estimate(chain, c);
    EXPECT_EQ(c.copies, n * (n - 1));
  }
}

// 1,024 devices in hosts of eight, of two speeds.
TEST(SearchPlans, SlowSearchesManyDevices) {
  constexpr int kDevices = 1024;
  std::vector<double> speeds;
  for (int d = 0; d < kDevices; ++d) speeds.push_back(d < 512 ? 1 : 2);
  ModelChain chain;
  chain.batch = 2048;
  chain.machine =
      search_machine(speeds, std::vector<int64_t>(kDevices, int64_t{80} << 30));
  for (int d = 0; d < kDevices; ++d) {
    chain.machine.devices[static_cast<size_t>(d)].device_class = d / 512;
    chain.machine.host.push_back(d / 8);
  }
  chain.machine.classes = {chain.machine.classes[0],
                           chain.machine.classes[1023]};
  chain.machine.num_hosts = kDevices / 8;
  const LinkCost within{.latency_us = 5, .bytes_per_us = 2e5};
  const LinkCost network{.latency_us = 20, .bytes_per_us = 2.5e4};
  for (int from = 0; from < kDevices / 8; ++from) {
    for (int to = 0; to < kDevices / 8; ++to) {
      chain.machine.links.push_back(from == to ? within : network);
    }
  }
  chain.machine.links.erase(chain.machine.links.begin());
  for (int k = 0; k < 48; ++k) {
    ChainLayer l = search_layer(speeds, 2048, 1.6e7, 200 * kMega);
    l.kept_bytes = 34.0 * 512 * 2048;
    l.sent_bytes = 4.0 * 512 * 2048;
    chain.layers.push_back(l);
  }
  const SearchResult got = search_plans(chain, {});
  const ParallelCandidate& best = got.best[0];
  std::cerr << best.step_us << " us, bound " << got.bound_us << ", "
            << got.candidates << " candidates, " << got.estimates
            << " estimates, " << best.devices.size() << " devices\n";
  ASSERT_TRUE(best.fits());
  EXPECT_LE(got.estimates, 3000);
  EXPECT_LT(best.step_us, 48 * 1.6e7 / 2 / 32);  // far better than one device
  EXPECT_GE(best.step_us, got.bound_us * (1 - 1e-9));
}

// A kind whose built plan took longer than predicted is chosen only if it is
// still the fastest; what was built keeps its time, and bounds stay below.
TEST(SearchPlans, TimesOfBuiltPlansDecide) {
  ModelChain chain;
  chain.batch = 32;
  chain.machine = search_machine({1, 1}, {0, 0});
  for (int k = 0; k < 4; ++k) {
    chain.layers.push_back(search_layer({1, 1}, 32, 2000, kMega));
  }
  const ParallelCandidate first = search_plans(chain, {}).best[0];
  const auto kind = static_cast<size_t>(first.kind);
  SearchLimits known;
  known.built = {first};
  known.built[0].step_us *= 3;
  chain.took_over_predicted[kind] = 3;
  const SearchResult got = search_plans(chain, known);
  EXPECT_NE(got.best[0].kind, first.kind);
  EXPECT_LE(got.bound_us, got.best[0].step_us);
  bool seen = false;
  for (const ParallelCandidate& c : got.best) {
    if (c.kind != first.kind) continue;
    seen = true;
    EXPECT_GE(c.step_us, 2.9 * first.step_us);
  }
  EXPECT_TRUE(seen);
  known.built[0].step_us = first.step_us / 3;  // faster: it is the best
  chain.took_over_predicted[kind] = chain.least_over_predicted[kind] = 1.0 / 3;
  const ParallelCandidate again = search_plans(chain, known).best[0];
  EXPECT_TRUE(again.is_as(first));
  EXPECT_DOUBLE_EQ(again.step_us, first.step_us / 3);
}

// A plan that took longer than predicted says nothing of others of its kind,
// which may take what was predicted: the bound stays below that. One that was
// faster lowers it.
TEST(SearchPlans, BoundsAreNotRaisedByWhatWasBuilt) {
  ModelChain chain;
  chain.batch = 32;
  chain.machine = search_machine({1, 1}, {0, 0});
  for (int k = 0; k < 4; ++k) {
    chain.layers.push_back(search_layer({1, 1}, 32, 2000, kMega));
  }
  const ParallelCandidate first = search_plans(chain, {}).best[0];
  const auto kind = static_cast<size_t>(first.kind);
  for (const double took : {3.0, 0.5}) {
    SearchLimits known;
    known.built = {first};
    known.built[0].step_us *= took;
    ModelChain scaled = chain;
    scaled.took_over_predicted[kind] = took;
    scaled.least_over_predicted[kind] = std::min(1.0, took);
    const SearchResult got = search_plans(scaled, known);
    const double others = search_plans(chain, known).bound_us;
    EXPECT_LE(got.bound_us, others + 1e-6);
    EXPECT_LE(got.bound_us, got.best[0].step_us);
    if (took > 1) {
      EXPECT_GE(got.bound_us, others - 1e-6);
    }
  }
}

// What one device cannot hold is sharded, or cut.
TEST(SearchPlans, MemoryDecides) {
  ModelChain chain;
  chain.batch = 32;
  const int64_t limit = 46 * static_cast<int64_t>(kMega);
  chain.machine = search_machine({1, 1}, {limit, limit});
  for (int k = 0; k < 4; ++k) {
    chain.layers.push_back(search_layer({1, 1}, 32, 1000, 3 * kMega));
  }
  // Variables, gradients and slots: 4 times 12 MiB.
  const SearchResult got = search_plans(chain, {});
  ASSERT_TRUE(got.best[0].fits());
  for (const ParallelCandidate& c : got.best) {
    const bool whole =
        c.kind == ParallelKind::kOneDevice || c.kind == ParallelKind::kMirrored;
    EXPECT_EQ(c.fits(), !whole) << static_cast<int>(c.kind);
  }
  chain.machine = search_machine({1, 1}, {limit / 8, limit / 8});
  EXPECT_FALSE(search_plans(chain, {}).best[0].fits());
}

// 48 equal blocks of a transformer on eight equal devices.
TEST(SearchPlans, SlowIsNearItsBoundOnDeepModels) {
  const std::vector<double> speeds(8, 1);
  ModelChain chain;
  chain.batch = 256;
  chain.machine =
      search_machine(speeds, std::vector<int64_t>(8, int64_t{80} << 30));
  for (int k = 0; k < 48; ++k) {
    // 12 d^2 parameters of d = 2048, 512 letters an example.
    ChainLayer l = search_layer(speeds, 256, 2.0e6, 200 * kMega);
    l.kept_bytes = 34.0 * 512 * 2048;
    l.sent_bytes = 4.0 * 512 * 2048;
    chain.layers.push_back(l);
  }
  SearchLimits only;
  only.replicas = only.tensor = false;
  for (const bool all : {true, false}) {
    const SearchResult got = search_plans(chain, all ? SearchLimits{} : only);
    const ParallelCandidate& best = got.best[0];
    std::cerr << best.step_us << " us, bound " << got.bound_us << ", "
              << got.candidates << " candidates\n";
    ASSERT_TRUE(best.fits());
    EXPECT_EQ(best.kind,
              all ? ParallelKind::kSharded : ParallelKind::kPipeline);
    EXPECT_LT(best.step_us, 1.05 * got.bound_us);
    EXPECT_GE(best.step_us, got.bound_us * (1 - 1e-9));
  }
}

}  // namespace
}  // namespace berth::distribute
