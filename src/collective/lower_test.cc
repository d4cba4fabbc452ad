// Steps of replicas on core sets give the results of one device.

#include "collective/lower.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/fresh_process_testing.h"
#include "berth/config.h"
#include "berth/custom_op.h"
#include "collective/shared_memory.h"
#include "collective/testing.h"
#include "device/device_manager.h"
#include "exec/plan.h"
#include "ops/training.h"

namespace berth {
namespace {

using namespace collective_tests;
using fresh_process::check;

constexpr int64_t kBatch = 12, kIn = 40, kOut = 70;

void use_cpus(int n) {
  std::vector<config::LogicalDeviceConfiguration> sets(
      static_cast<size_t>(n), {.workers = 2, .shared = true});
  config::set_logical_device_configuration({"/physical_device:CPU:0", "CPU"},
                                           sets);
}

enum class Update { kDescent, kMomentum, kAdam, kAssignSub, kUsers };

// accum = accum / 2 + grad; var -= rate accum.
void users_update(const KernelCall& c) {
  float *var = c.in[0].as<float>(), *accum = c.in[1].as<float>();
  const float rate = *c.in[2].as<float>(), *grad = c.in[3].as<float>();
  for (int64_t i = 0; i < c.in[0].size(); ++i) {
    accum[i] = accum[i] / 2 + grad[i];
    var[i] -= rate * accum[i];
  }
}

// A program's own optimizer.
const bool kUpdateRegistered = [] {
  register_op("TestUpdate")
      .writes_variable("var")
      .writes_variable("accum")
      .input("rate", kFloatingTypes)
      .input("slope", kFloatingTypes)
      .update("slope")
      .not_differentiable();
  register_kernels("CPU", [](KernelTable& t) {
    t.direct("TestUpdate", dtype_bit(float32), &users_update, "user");
  });
  return true;
}();

// A dense layer with slots; the bias and a scalar are never split.
struct OneLayer {
  Variable w, b, s;
  std::vector<Variable> slots;
  Update update;

  OneLayer(Update u, const std::string& home) : update(u) {
    const auto on = device(home);
    w = Variable(numbers({kIn, kOut}, 1));
    b = Variable(numbers({kOut}, 2));
    s = Variable(constant(0.7f));
    for (const Variable* v : all()) {
      slots.emplace_back(zeros(v->shape()));
      slots.emplace_back(zeros(v->shape()));
    }
  }
  std::vector<const Variable*> all() const { return {&w, &b, &s}; }

  Tensors gradients(const Tensor& x) const {
    GradientTape tape;
    const Tensor y = math::tanh(matmul(x, w) + b) * s.value();
    const Tensor loss = math::reduce_sum(math::square(y)) * 0.01f;
    Tensors g = tape.gradient(loss, std::vector<Variable>{w, b, s});
    g.push_back(loss);
    return g;
  }

  void apply(const Tensors& g) const {
    const auto number = [](float v) { return constant(v); };
    const auto vars = all();
    for (size_t i = 0; i < vars.size(); ++i) {
      const Tensor& v = vars[i]->handle();
      const Tensor &m = slots[2 * i].handle(), &n = slots[2 * i + 1].handle();
      switch (update) {
        case Update::kDescent:
          training::apply_gradient_descent(v, number(0.01f), g[i]);
          break;
        case Update::kMomentum:
          training::apply_momentum(v, m, number(0.01f), g[i], number(0.9f),
                                   true);
          break;
        case Update::kAdam:
          training::apply_adam(v, m, n,
                               {number(0.9f), number(0.99f), number(0.01f),
                                number(0.9f), number(0.99f), number(1e-7f)},
                               g[i], false);
          break;
        case Update::kAssignSub:
          vars[i]->assign_sub(g[i]);
          break;
        case Update::kUsers:
          call_op("TestUpdate", {v, m, number(0.01f), g[i]});
          break;
      }
    }
  }

  std::vector<float> values() const {
    std::vector<float> r;
    const auto add = [&](const Variable& v) {
      const auto x = v.value().to_vector<float>();
      r.insert(r.end(), x.begin(), x.end());
    };
    for (const Variable* v : all()) add(*v);
    for (const Variable& v : slots) add(v);
    return r;
  }
};

std::vector<std::string> cpus(int n) {
  std::vector<std::string> names;
  for (int i = 0; i < n; ++i) names.push_back(full_name("CPU", i));
  return names;
}

// The step with `n` replicas, replica r on CPU:r.
Graph replicated(const OneLayer& model, int n, int64_t pack_bytes,
                 const std::string& reduction = "sum") {
  const auto devices = cpus(n);
  return trace({{{kBatch, kIn}, float32, "x"}}, devices, [&](Tensors& args) {
    std::vector<Tensors> pieces;  // by variable, last the loss
    for (int r = 0; r < n; ++r) {
      const auto on = device(devices[static_cast<size_t>(r)]);
      const int64_t begin = kBatch * r / n, end = kBatch * (r + 1) / n;
      const Tensors g = model.gradients(rows(args[0], begin, end - begin));
      pieces.resize(g.size());
      for (size_t i = 0; i < g.size(); ++i) pieces[i].push_back(g[i]);
    }
    const auto on = device(devices[0]);
    Tensors sums;
    for (const Tensors& p : pieces) {
      sums.push_back(
          all_reduce(p, {.reduction = reduction, .pack_bytes = pack_bytes})[0]);
    }
    model.apply(sums);
    return Tensors{sums.back()};
  });
}

void check_close(const std::vector<float>& a, const std::vector<float>& b) {
  check(a.size() == b.size(), "equal sizes");
  for (size_t i = 0; i < a.size(); ++i) {
    check(std::abs(a[i] - b[i]) <= 1e-5f * (1 + std::abs(b[i])),
          fmt::format("element {}: {} and {}", i, a[i], b[i]).c_str());
  }
}

void trains_like_one_device(int n, Update update, int home,
                            int64_t pack_bytes) {
  use_cpus(n);
  const OneLayer one(update, "/CPU:0");
  const OneLayer many(update, fmt::format("/CPU:{}", home));
  GraphCallable step(replicated(many, n, pack_bytes), {});
  for (int i = 0; i < 5; ++i) {
    const Tensor x = numbers({kBatch, kIn}, i);
    const Tensors g = one.gradients(x);
    one.apply(g);
    const float loss = call(step, {x})[0].item<float>();
    check(std::abs(loss - g.back().item<float>()) < 1e-3f * std::abs(loss),
          "the loss of one device");
    // Eager work between steps sees the step's results, and vice versa.
    many.b.assign_add(ones({kOut}) * 0.1f);
    one.b.assign_add(ones({kOut}) * 0.1f);
  }
  check_close(many.values(), one.values());
  check(step.plan_info().copied_bytes == 0, "nothing is copied");
}

TEST(LowerCollectives, TwoCoreSetsTrainLikeOneDevice) {
  for (const Update u : {Update::kDescent, Update::kMomentum, Update::kAdam,
                         Update::kAssignSub, Update::kUsers}) {
    IN_A_FRESH_PROCESS(trains_like_one_device(2, u, 0, 0));
  }
}

TEST(LowerCollectives, SmallBucketsAndOddDevicesTrainLikeOneDevice) {
  IN_A_FRESH_PROCESS(trains_like_one_device(3, Update::kMomentum, 0, 512));
  IN_A_FRESH_PROCESS(trains_like_one_device(4, Update::kAdam, 0, 0));
}

TEST(LowerCollectives, VariablesMayLiveWithAnyReplica) {
  IN_A_FRESH_PROCESS(trains_like_one_device(2, Update::kAdam, 1, 0));
}

// Counts ops of a lowered graph.
int count(const Graph& g, const std::string& op, const std::string& device) {
  int n = 0;
  for (const Node& node : g.nodes) {
    n += node.op->name() == op && node.requested == device;
  }
  return n;
}

void cuts_updates(Update update, const std::string& op) {
  use_cpus(2);
  const OneLayer model(update, "/CPU:0");
  Graph g = replicated(model, 2, 0);
  lower_collectives(g);
  verify(g);
  const auto names = cpus(2);
  check(count(g, op, names[0]) == 1, "a part of w");
  check(count(g, op, names[1]) == 3, "the rest, b, s");
  int64_t elements[2] = {0, 0};
  for (const Node& n : g.nodes) {
    if (n.op->name() != op) continue;
    elements[n.requested == names[1]] +=
        g.spec(n.inputs[0]).shape.num_elements();
  }
  check(elements[0] + elements[1] == kIn * kOut + kOut + 1, "all of them");
  check(std::abs(elements[0] - elements[1]) <= 32, "even parts");
}

TEST(LowerCollectives, EachDeviceUpdatesItsRangeOfTheVariables) {
  IN_A_FRESH_PROCESS(cuts_updates(Update::kMomentum, "ResourceApplyMomentum"));
  IN_A_FRESH_PROCESS(cuts_updates(Update::kUsers, "TestUpdate"));
}

void gives_values() {
  use_cpus(2);
  const auto devices = cpus(2);
  Graph g = trace({{{6}, float32, "x"}}, devices, [&](Tensors& args) {
    Tensors pieces;
    for (int r = 0; r < 2; ++r) {
      const auto on = device(devices[static_cast<size_t>(r)]);
      pieces.push_back(rows(args[0], 3 * r, 3) * 2.0f);
    }
    const Tensors means =
        all_reduce(pieces, {.reduction = "mean", .replicas = {0, 1}});
    const Tensor a = with_device(devices[0], [&] { return means[0] + 1.0f; });
    const Tensor b = with_device(devices[1], [&] { return means[1] * 10.0f; });
    return Tensors{a, b};
  });
  GraphCallable f(std::move(g), {});
  const Tensor x = constant({1.0f, 2.0f, 3.0f, 5.0f, 7.0f, 9.0f});
  const Tensors y = call(f, {x});
  check(y[0].to_vector<float>() == std::vector<float>{7, 10, 13}, "mean + 1");
  check(y[1].to_vector<float>() == std::vector<float>{60, 90, 120}, "10 mean");
}

TEST(LowerCollectives, MeansAreReadOnEveryReplica) {
  IN_A_FRESH_PROCESS(gives_values());
}

// Dependent reductions never share a bucket.
void chains() {
  use_cpus(2);
  const auto devices = cpus(2);
  const Variable v = with_device("/CPU:0", [] { return Variable(zeros({3})); });
  Graph g = trace({{{2, 3}, float32, "x"}}, devices, [&](Tensors& args) {
    const auto reduce = [&](const Tensors& p) { return all_reduce(p)[0]; };
    Tensors a, b, c;
    for (int r = 0; r < 2; ++r) {
      const auto on = device(devices[static_cast<size_t>(r)]);
      a.push_back(reshape(rows(args[0], r, 1), {3}));
    }
    const Tensor s = reduce(a);
    for (int r = 0; r < 2; ++r) {
      const auto on = device(devices[static_cast<size_t>(r)]);
      b.push_back(a[static_cast<size_t>(r)] * s);
      c.push_back(s + 1.0f);
    }
    const auto on = device(devices[0]);
    const Tensor t = reduce(b), u = reduce(c);
    v.assign_add(t);
    return Tensors{u};
  });
  GraphCallable f(std::move(g), {});
  const Tensor x = constant({{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}});
  check(call(f, {x})[0].to_vector<float>() == std::vector<float>{12, 16, 20},
        "2 (sum + 1)");
  check(v.value().to_vector<float>() == std::vector<float>{25, 49, 81},
        "the sum squared");
}

TEST(LowerCollectives, SumsOfSumsAreOrdered) { IN_A_FRESH_PROCESS(chains()); }

// Pieces that are roots of subtrees: ((0 + 1) + (2 + 3)) + (4 + 5).
void follows_the_tree() {
  use_cpus(2);
  const auto devices = cpus(2);
  const float big = 1e8f;
  const std::vector<float> slices = {big, 1, -big, 1, 3, 1};
  Graph g = trace({{{6}, float32, "x"}}, devices, [&](Tensors& args) {
    const auto piece = [&](int r, int64_t begin, int64_t count) {
      const auto on = device(devices[static_cast<size_t>(r)]);
      return math::reduce_sum(rows(args[0], begin, count), {.keepdims = true});
    };
    // Replica 0 has slices 0 to 2, replica 1 the others.
    const Tensors pieces = {piece(0, 0, 2), piece(0, 2, 1), piece(1, 3, 1),
                            piece(1, 4, 2)};
    return all_reduce(pieces, {.owners = {0, 0, 1, 1}, .starts = {0, 2, 3, 4}});
  });
  GraphCallable f(std::move(g), {});
  const float* s = slices.data();
  const float expected = ((s[0] + s[1]) + (s[2] + s[3])) + (s[4] + s[5]);
  const Tensor x = constant(std::span<const float>(slices), {6});
  check(call(f, {x})[0].to_vector<float>()[0] == expected, "those bits");
}

TEST(LowerCollectives, PiecesAreAddedAlongTheTreeOverSlices) {
  IN_A_FRESH_PROCESS(follows_the_tree());
}

// A value read before the updates of all ranges, and used after them.
void keeps_old_values() {
  use_cpus(2);
  const auto devices = cpus(2);
  constexpr int64_t kN = 5000;
  const Variable v = with_device("/CPU:0", [] { return Variable(ones({kN})); });
  Graph g = trace({{{2, kN}, float32, "x"}}, devices, [&](Tensors& args) {
    Tensors pieces, old;
    for (int r = 0; r < 2; ++r) {
      const auto on = device(devices[static_cast<size_t>(r)]);
      const Tensor x = reshape(rows(args[0], r, 1), {kN});
      old.push_back(v.value());
      pieces.push_back(x * old.back());
    }
    const auto on = device(devices[0]);
    v.assign_sub(all_reduce(pieces)[0]);
    Tensors results;
    for (int r = 0; r < 2; ++r) {
      const auto there = device(devices[static_cast<size_t>(r)]);
      results.push_back(old[static_cast<size_t>(r)] * 3.0f);
      results.push_back(v.value());
    }
    return results;
  });
  GraphCallable f(std::move(g), {});
  float value = 1;
  for (int run = 0; run < 50; ++run) {
    const Tensors y = call(f, {fill({2, kN}, 0.25)});
    for (size_t i = 0; i < 4; ++i) {
      const float expected = i % 2 == 0 ? 3 * value : value / 2;
      for (const float x : y[i].to_vector<float>()) {
        check(x == expected, fmt::format("run {}: {}", run, x));
      }
    }
    value /= 2;
    if (run % 10 == 9) {
      v.assign(ones({kN}));
      value = 1;
    }
  }
}

TEST(LowerCollectives, WhatWasReadBeforeTheUpdatesStays) {
  IN_A_FRESH_PROCESS(keeps_old_values());
}

// A device that failed earlier ends the run; nothing waits for ever.
void ends_when_a_device_has_failed() {
  use_cpus(3);
  const OneLayer model(Update::kDescent, "/CPU:0");
  GraphCallable step(replicated(model, 3, 0), {});
  const Tensor x = numbers({kBatch, kIn}, 1);
  call(step, {x});
  for (const char* broken : {"/CPU:1", "/CPU:2"}) {
    Device& d = DeviceManager::get().lookup(DeviceName::parse(broken));
    Work work;
    work.what = "Bad";
    work.run = [](void*, Stream&) {
      throw errors::InvalidArgument("out of range");
    };
    d.compute_stream().launch(work);
    fresh_process::refuses<errors::InvalidArgument>([&] { call(step, {x}); },
                                                    "out of range");
    for (const char* name : {"/CPU:1", "/CPU:2"}) {
      config::reset_device_error(name);
    }
    for (const Variable* v : model.all())
      v->assign(v->shape().rank() == 0 ? constant(0.7f) : zeros(v->shape()));
    call(step, {x});
    check(std::abs(model.values()[0]) < 10, "it works again");
  }
}

TEST(LowerCollectives, ADeviceThatHasFailedEndsTheRun) {
  IN_A_FRESH_PROCESS(ends_when_a_device_has_failed());
}

// Rows are aliases of their source, even as results.
void returns_rows() {
  use_cpus(2);
  const auto devices = cpus(2);
  Graph g = trace({{{6, 2}, float32, "x"}}, devices, [&](Tensors& args) {
    const auto on = device(devices[0]);
    const Tensor y = reverse(args[0], {0});
    const Tensor tail = rows(y, 3, 3);
    return Tensors{tail,
                   rows(y, 0, 2),
                   rows(args[0], 4, 2),
                   rows(tail, 1, 1),
                   y,
                   with_device(devices[1], [&] { return tail * 2.0f; })};
  });
  GraphCallable f(std::move(g), {});
  std::vector<float> x(12);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const Tensors y = call(f, {constant(std::span<const float>(x), {6, 2})});
  using Floats = std::vector<float>;
  check(y[0].to_vector<float>() == Floats{4, 5, 2, 3, 0, 1}, "the last rows");
  check(y[1].to_vector<float>() == Floats{10, 11, 8, 9}, "the first rows");
  check(y[2].to_vector<float>() == Floats{8, 9, 10, 11}, "of an argument");
  check(y[3].to_vector<float>() == Floats{2, 3}, "rows of rows");
  check(y[4].to_vector<float>().size() == 12, "all of it");
  check(y[5].to_vector<float>() == Floats{8, 10, 4, 6, 0, 2}, "on CPU:1");
}

TEST(Rows, AreReadWhereTheyAre) { IN_A_FRESH_PROCESS(returns_rows()); }

TEST(CutForCache, KeepsEveryElement) {
  const int64_t most = kCachedSumBytes / 4;
  const auto cut = cut_for_cache({{0, 16, 5 * most + 7}, {3, 0, 12}}, 4);
  int64_t next = 16, total = 0;
  for (size_t i = 0; i + 1 < cut.size(); ++i) {
    EXPECT_EQ(cut[i].item, 0);
    EXPECT_EQ(cut[i].begin, next);
    EXPECT_LE(cut[i].count, most * 3 / 2);
    next += cut[i].count;
    total += cut[i].count;
  }
  EXPECT_EQ(total, 5 * most + 7);
  EXPECT_EQ(cut.back().item, 3);
  EXPECT_EQ(cut.back().count, 12);
}

TEST(CutEvenly, GivesEveryElementToOneDeviceInEvenParts) {
  const std::vector<std::vector<int64_t>> buckets = {{1000000},
                                                     {10, 20, 30},
                                                     {784 * 128, 128, 1280, 10},
                                                     {1, 5000, 1, 70000, 3},
                                                     {100},
                                                     {0, 7, 0}};
  for (const auto& elements : buckets) {
    for (int devices = 1; devices <= 5; ++devices) {
      const auto ranges = cut_evenly(elements, 4, devices);
      ASSERT_EQ(ranges.size(), static_cast<size_t>(devices));
      int64_t total = 0;
      for (const int64_t n : elements) total += n;
      std::vector<int64_t> next(elements.size(), 0);
      for (const auto& mine : ranges) {
        int64_t size = 0;
        for (const ItemRange& r : mine) {
          EXPECT_EQ(r.begin, next[static_cast<size_t>(r.item)]);
          EXPECT_GT(r.count, 0);
          EXPECT_EQ(r.begin % 16, 0);
          next[static_cast<size_t>(r.item)] += r.count;
          size += r.count;
        }
        EXPECT_LE(size, total / devices + 2 * kSmallestCutBytes / 4);
      }
      EXPECT_EQ(next, elements);
    }
  }
}

}  // namespace
}  // namespace berth
