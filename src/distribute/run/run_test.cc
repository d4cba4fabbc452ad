// run(), by its results in closed form: TensorFlow's documented examples.

#include <gtest/gtest.h>

#include "base/diagnostics.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "distribute/strategy/strategy_testing.h"
#include "tensor/mirrors.h"

namespace berth::distribute {
namespace {

using fresh_process::check;
using fresh_process::refuses;
using Floats = std::vector<float>;

TEST(Run, CallsTheFunctionInEveryReplicaWithItsOwnValues) {
  on_two([](const MirroredStrategy& strategy) {
    const auto step = berth::function(
        [](const Tensor& x, const Tensor& y) { return x * 2.f + y; });
    const PerReplica x = pair_of(constant({1.f, 2.f}), constant({5.f}));
    for (int i = 0; i < 3; ++i) {
      const PerReplica z = strategy.run(step, x, constant(10.f));
      check(values(z[0]) == Floats{12, 14}, "replica 0");
      check(values(z[1]) == Floats{20}, "replica 1");
      check(z[0].device() == strategy.devices()[0][0], "there");
      check(z[1].device() == strategy.devices()[1][0], "there too");
    }
    check(step.num_traces() == 1, "traced once");
  });
}

TEST(Run, ReplicasKnowTheirNumber) {
  on_two([](const MirroredStrategy& strategy) {
    const PerReplica z = strategy.run([] {
      const auto c = *get_replica_context();
      check(c.num_replicas_in_sync() == 2, "two");
      check(get_strategy().name() == "MirroredStrategy", "strategy");
      check(!in_cross_replica_context() && has_strategy(), "context");
      return constant(static_cast<float>(c.replica_id_in_sync_group()));
    });
    check(values(z[0]) == Floats{0} && values(z[1]) == Floats{1}, "ids");
    check(!get_replica_context(), "outside");
  });
}

TEST(Run, TakesAndReturnsNestedStructures) {
  on_two([](const MirroredStrategy& strategy) {
    const PerReplica x = pair_of(constant(1.f), constant(2.f));
    const std::pair<std::vector<PerReplica>, float> in{{x, x}, 10.f};
    const auto f = [](const std::pair<std::vector<Tensor>, float>& p, int n) {
      const std::map<std::string, Tensor> more = {{"a", p.first[0] * p.second}};
      return std::tuple(p.first[0] + p.first[1], more, n);
    };
    const auto z = strategy.run(f, in, 7);
    check(values(std::get<0>(z)[1]) == Floats{4}, "sum");
    check(values(std::get<1>(z).at("a")[1]) == Floats{20}, "map");
    check(std::get<2>(z) == 7, "number");
    int calls = 0;
    strategy.run([&] { ++calls; });
    check(calls == 2, "void");
  });
}

TEST(Run, AllReduceSumsAndAverages) {
  on_two([](const MirroredStrategy& strategy) {
    const auto f = [](const Tensor& x) {
      const auto c = *get_replica_context();
      return std::pair(c.all_reduce(ReduceOp::kSum, x),
                       c.all_reduce(ReduceOp::kMean, x) + 1.f);
    };
    const auto x = pair_of(constant({1.f, 2.f}), constant({3.f, 6.f}));
    const auto [sum, mean] = strategy.run(f, x);
    for (int r = 0; r < 2; ++r) {
      check(values(sum[r]) == Floats{4, 8}, "sum");
      check(values(mean[r]) == Floats{3, 5}, "mean");
      check(sum[r].device() == strategy.devices()[r][0], "everywhere");
    }
  });
}

// d/dx_r of the sum over replicas r' of c_r' * all_reduce(x)^2, where each
// replica differentiates its own part: 2 * s * (c_0 + c_1) with s the sum.
TEST(Run, GradientsPassThroughAllReduce) {
  on_two([](const MirroredStrategy& strategy) {
    const auto f = [](const Tensor& x, const Tensor& c) {
      GradientTape tape;
      tape.watch(x);
      const Tensor s = get_replica_context()->all_reduce(ReduceOp::kSum, x);
      return tape.gradient(s * s * c, x);
    };
    const auto g = strategy.run(f, pair_of(constant(1.f), constant(4.f)),
                                pair_of(constant(1.f), constant(2.f)));
    check(values(g[0]) == Floats{30} && values(g[1]) == Floats{30}, "2*5*3");
  });
}

TEST(Run, AllGatherConcatenatesPartsOfAnyLength) {
  on_two([](const MirroredStrategy& strategy) {
    const auto f = [](const Tensor& x) {
      GradientTape tape;
      tape.watch(x);
      const Tensor all = get_replica_context()->all_gather(x, 0);
      // Weights 1, 2, 3 in the order of the whole batch.
      const Tensor dx = tape.gradient(all * constant({1.f, 2.f, 3.f}), x);
      return std::pair(all, dx);
    };
    const auto [all, dx] =
        strategy.run(f, pair_of(constant({1.f}), constant({2.f, 3.f})));
    check(values(all[0]) == Floats{1, 2, 3}, "all");
    check(values(all[1]) == Floats{1, 2, 3}, "all");
    // Each element counts in both replicas.
    check(values(dx[0]) == Floats{2}, "first");
    check(values(dx[1]) == Floats{4, 6}, "rest");
  });
}

TEST(Run, VariablesAreWrittenOnceByAllReplicas) {
  on_two([](const MirroredStrategy& strategy) {
    using enum VariableAggregation;
    const auto make = [&](VariableAggregation how) {
      const auto scope = strategy.scope();
      return Variable(constant(10.f), {.aggregation = how});
    };
    const Variable sum = make(kSum), mean = make(kMean);
    const Variable first = make(kOnlyFirstReplica), none = make(kNone);
    const auto f = berth::function([&](const Tensor& x) {
      sum.assign_add(x);
      mean.assign(x);
      first.assign_sub(x);
      return sum.value();
    });
    const auto x = pair_of(constant(1.f), constant(4.f));
    const auto seen = strategy.run(f, x);
    check(values(seen[0]) == Floats{15} && values(seen[1]) == Floats{15},
          "both see the sum");
    strategy.run(f, x);
    check(values(sum.value()) == Floats{20}, "twice 5");
    check(values(mean.value()) == Floats{2.5}, "the mean");
    check(values(first.value()) == Floats{8}, "the first");
    refuses<errors::InvalidArgument>(
        [&] { strategy.run([&](const Tensor& t) { none.assign(t); }, x); },
        "its aggregation is none");
    refuses<errors::InvalidArgument>(
        [&] { strategy.run([] { Variable v(constant(1.f)); }); },
        "made inside strategy.run()");
  });
}

TEST(Run, AReplicaSeesAWriteOnlyBehindItsOwn) {
  on_two([](const MirroredStrategy& strategy) {
    Variable v;
    {
      const auto scope = strategy.scope();
      v = Variable(constant(1.f), {.aggregation = VariableAggregation::kSum});
    }
    const auto f = berth::function([&](const Tensor& x) {
      const Tensor before = v.value();
      v.assign_add(x);
      const Tensor between = v.value();
      v.assign_add(between);
      return std::tuple(before, between, v.value());
    });
    const auto x = pair_of(constant(1.f), constant(2.f));
    for (const float old : {1.f, 12.f}) {
      const auto [before, between, after] = strategy.run(f, x);
      for (int r = 0; r < 2; ++r) {
        check(values(before[r]) == Floats{old}, "before");
        check(values(between[r]) == Floats{old + 3}, "between");
        check(values(after[r]) == Floats{3 * (old + 3)}, "after");
      }
    }
  });
}

TEST(Run, PartsOfAVariableThatSynchronisesOnReading) {
  on_two([](const MirroredStrategy& strategy) {
    using enum VariableAggregation;
    const auto make = [&](VariableAggregation how) {
      const auto scope = strategy.scope();
      return Variable(constant(0.f),
                      {.synchronization = VariableSynchronization::kOnRead,
                       .aggregation = how});
    };
    const Variable sum = make(kSum), mean = make(kMean);
    const Variable first = make(kOnlyFirstReplica), none = make(kNone);
    const auto f = berth::function([&](const Tensor& x) {
      for (const Variable& v : {sum, mean, first, none}) v.assign_add(x);
      return none.value();
    });
    const auto x = pair_of(constant(1.f), constant(4.f));
    strategy.run(f, x);
    const auto own = strategy.run(f, x);
    check(values(own[0]) == Floats{2} && values(own[1]) == Floats{8}, "own");
    check(values(sum.value()) == Floats{10}, "sum");
    check(values(mean.value()) == Floats{5}, "mean");
    check(values(first.value()) == Floats{2}, "first");
    refuses<errors::InvalidArgument>([&] { none.value(); },
                                     "its aggregation is none");
    sum.assign(constant(6.f));
    mean.assign(constant(6.f));
    check(values(sum.value()) == Floats{6}, "each has its part");
    check(values(mean.value()) == Floats{6}, "each has the value");
    const auto now = strategy.run(f, x);
    check(values(sum.value()) == Floats{11}, "3 + 1 + 3 + 4");
    check(values(mean.value()) == Floats{8.5}, "6 + 5 / 2");
    refuses<errors::InvalidArgument>([&] { sum.assign_add(constant(1.f)); },
                                     "outside of replicas");
  });
}

TEST(Run, MergeCallSeesAllReplicasOnce) {
  on_two([](const MirroredStrategy& strategy) {
    Variable v;
    {
      const auto scope = strategy.scope();
      v = Variable(constant(100.f));
    }
    int calls = 0;
    const auto f = berth::function([&](const Tensor& x) {
      const Tensor before = v.value();
      const Tensors result = get_replica_context()->merge_call(
          [&](const Strategy& s, const std::vector<PerReplica>& args) {
            ++calls;
            check(in_cross_replica_context(), "cross-replica");
            check(args.size() == 2 && args[0].size() == 2, "all values");
            const Tensor total = s.reduce(ReduceOp::kSum, args[0]);
            s.update(
                v, [&](const Tensor& t) { v.assign_add(t); }, total);
            return Tensors{total * 2.f};
          },
          {x, x});
      return std::tuple(before, result[0], v.value());
    });
    const auto x = pair_of(constant(1.f), constant(4.f));
    for (const float old : {100.f, 105.f}) {
      const auto [before, result, after] = strategy.run(f, x);
      for (int r = 0; r < 2; ++r) {
        check(values(before[r]) == Floats{old}, "before");
        check(values(result[r]) == Floats{10}, "result");
        check(values(after[r]) == Floats{old + 5}, "after");
      }
    }
    check(calls == 1, "once for all");
    check(values(v.value()) == Floats{110}, "written once");
  });
}

TEST(Run, OtherOrdersAreErrorsThatNameBothLines) {
  on_two([](const MirroredStrategy& strategy) {
    const auto first = [] {
      return get_replica_context()->replica_id_in_sync_group() == 0;
    };
    Variable v;
    {
      const auto scope = strategy.scope();
      v = Variable(constant(1.f), {.aggregation = VariableAggregation::kSum});
    }
    const Tensor one = constant(1.f);
    const auto wrong = [&](const std::function<void()>& fn,
                           const std::string& part) {
      refuses<errors::InvalidArgument>([&] { strategy.run(fn); }, part);
    };
    wrong(
        [&] {
          const auto c = *get_replica_context();
          if (first()) c.all_reduce(ReduceOp::kSum, one);
          v.assign_add(one);
          if (!first()) c.all_reduce(ReduceOp::kSum, one);
        },
        "replicas meet in different order: replica 0 comes to all_reduce "
        "(run_test.cc:");
    wrong(
        [&] {
          if (first()) v.assign_add(one);
        },
        "replica 1 to its end");
    wrong(
        [&] {
          const auto c = *get_replica_context();
          c.all_reduce(first() ? ReduceOp::kSum : ReduceOp::kMean, one);
        },
        "different order");
    wrong(
        [&] {
          if (first()) return;
          get_replica_context()->merge_call(
              [](const Strategy&, const auto&) { return Tensors{}; }, {});
        },
        "more often than replica 0");
  });
}

TEST(Run, InsideATracedFunctionItBecomesPartOfIt) {
  on_two([](const MirroredStrategy& strategy) {
    Variable v;
    {
      const auto scope = strategy.scope();
      v = Variable(constant(0.f), {.aggregation = VariableAggregation::kSum});
    }
    const auto step =
        berth::function([&](const PerReplica& x, const Tensor& bias) {
          const Tensor twice = bias * 2.f;
          // Captures a value of the surrounding trace.
          const PerReplica z = strategy.run(
              [&](const Tensor& t) {
                v.assign_add(t);
                return t * v.value() + twice;
              },
              x);
          return std::pair(strategy.reduce(ReduceOp::kSum, z), z);
        });
    const auto x = pair_of(constant(1.f), constant(4.f));
    for (const float now : {5.f, 10.f}) {
      const auto [sum, z] = step(x, constant(3.f));
      check(values(z[0]) == Floats{now + 6}, "replica 0");
      check(values(z[1]) == Floats{4 * now + 6}, "replica 1");
      check(values(sum) == Floats{5 * now + 12}, "sum");
    }
    check(step.num_traces() == 1, "one trace");
  });
}

// Steps in a loop of the function: 2^18 elements are updated in parts.
TEST(Run, WorksInLoopsAndBranches) {
  on_two([](const MirroredStrategy& strategy) {
    for (const int64_t n : {int64_t{1}, int64_t{1} << 18}) {
      Variable v;
      {
        const auto scope = strategy.scope();
        v = Variable(zeros({n}), {.aggregation = VariableAggregation::kSum});
      }
      const auto step = [&](const Tensor& t) {
        v.assign_add(t);
        return math::reduce_mean(v.value());
      };
      const auto f = berth::function([&](const PerReplica& x, const Tensor& k) {
        const Tensors turns = while_loop(
            [&](const Tensors& a) { return math::less(a[0], k); },
            [&](const Tensors& a) {
              const PerReplica means = strategy.run(step, x);
              return Tensors{a[0] + 1, strategy.reduce(ReduceOp::kSum, means)};
            },
            Tensors{constant(0), constant(0.f)});
        const Tensor once = cond(
            math::greater(k, constant(3)),
            [&] { return strategy.run(step, x)[1]; },
            [&] { return constant(-1.f); });
        return std::pair(turns[1], once);
      });
      const auto x = pair_of(ones({n}), ones({n}) * 4.f);
      const auto [three, none] = f(x, constant(3));
      check(values(three) == Floats{30} && values(none) == Floats{-1}, "3 * 5");
      const auto [four, more] = f(x, constant(4));
      check(values(four) == Floats{70} && values(more) == Floats{40}, "8 * 5");
      check(values(v.value())[static_cast<size_t>(n) - 1] == 40, "the end");
    }
  });
}

TEST(Run, ReplicasSeeWhatTheTraceAroundThemWrites) {
  on_two([](const MirroredStrategy& strategy) {
    Variable v;
    {
      const auto scope = strategy.scope();
      v = Variable(constant(1.f), {.aggregation = VariableAggregation::kSum});
    }
    const auto add = [&](const Tensor& t) {
      v.assign_add(t);
      return v.value();
    };
    const auto x = pair_of(constant(1.f), constant(4.f));
    const auto step = berth::function([&](const PerReplica& t) {
      v.assign(v.value() * 10.f);
      const PerReplica one = strategy.run(add, t);
      v.assign_sub(constant(2.f));
      const PerReplica two = strategy.run(add, t);
      v.assign_add(constant(1.f));
      return std::tuple(one, two, v.value());
    });
    float now = 1;
    for (int i = 0; i < 3; ++i) {
      const auto [one, two, last] = step(x);
      now = now * 10 + 5;
      check(values(one[0]) == Floats{now} && values(one[1]) == Floats{now},
            "after the assignment");
      now += -2 + 5;
      check(values(two[0]) == Floats{now} && values(two[1]) == Floats{now},
            "after the second");
      now += 1;
      check(values(last) == Floats{now}, "at the end");
      const auto seen = strategy.run([&] { return v.value(); });
      check(values(seen[1]) == Floats{now}, "also by the next step");
    }
  });
}

TEST(Run, ReplicasWithoutExamplesHaveNoWeight) {
  on_two([](const MirroredStrategy& strategy) {
    Variable mean, local;
    {
      const auto scope = strategy.scope();
      mean =
          Variable(constant(0.f), {.aggregation = VariableAggregation::kMean});
      local = Variable(constant(0.f),
                       {.synchronization = VariableSynchronization::kOnRead,
                        .aggregation = VariableAggregation::kSum});
    }
    const auto f = berth::function([&](const Tensor& x) {
      const auto c = *get_replica_context();
      const Tensor m = math::reduce_mean(x);
      mean.assign(m);
      local.assign_add(m);
      return std::tuple(m, c.all_reduce(ReduceOp::kSum, m),
                        c.all_reduce(ReduceOp::kMean, m), x * 2.f);
    });
    const auto [m, sum, avg, twice] =
        strategy.run(f, pair_of(zeros({0}), constant({2.f, 4.f})));
    check(values(m[0]) == Floats{0} && values(m[1]) == Floats{3}, "0 not NaN");
    check(values(sum[1]) == Floats{3} && values(avg[1]) == Floats{3}, "sums");
    check(values(sum[0]) == Floats{3}, "the same for all");
    check(twice[0].shape() == Shape{0}, "shape");
    check(values(mean.value()) == Floats{3}, "written");
    check(values(local.value()) == Floats{3}, "own parts");
  });
}

TEST(Run, DeviceScopesInsideMeanTheReplica) {
  in_a_fresh_process([] {
    two(true);
    debugging::set_diagnostic_handler([](const debugging::Diagnostic&) {});
    const MirroredStrategy strategy;
    const auto f = [](const char* device) {
      return berth::function([device](const Tensor& x) {
        const auto on = berth::device(device);
        return x + 1.f;
      });
    };
    const auto x = pair_of(constant(1.f), constant(2.f));
    for (const char* device : {"/GPU:0", "/GPU:1"}) {
      const auto z = strategy.run(f(device), x);
      for (int r = 0; r < 2; ++r) {
        check(z[r].device() == strategy.devices()[r][0], "its own device");
      }
    }
    check(debugging::diagnostic_counts()["strategy-scope-ignored"] == 1,
          "GPU:0 is replica 0's own");
    // Work requested for the host stays there.
    const auto host = strategy.run(f("/CPU:0"), x);
    check(host[1].device().ends_with("CPU:0"), "the host");
  });
}

TEST(Run, ReplicasThatSpanDevicesNameThemByNumber) {
  in_a_fresh_process([] {
    test::use_gpus(4);
    const MirroredStrategy strategy({.devices_per_replica = 2});
    Variable a, b;
    {
      const auto scope = strategy.scope();
      using enum VariableAggregation;
      a = with_device("/GPU:0", [] {
        return Variable(constant(1.f), {.aggregation = kSum});
      });
      b = with_device("/GPU:1", [] {
        return Variable(constant(2.f), {.aggregation = kSum});
      });
    }
    const auto f = berth::function([&](const Tensor& x) {
      const Tensor y = with_device("/GPU:0", [&] { return x * a.value(); });
      const Tensor z = with_device("/GPU:1", [&] { return y + b.value(); });
      a.assign_add(z);
      b.assign_add(z);
      return std::pair(y, z);
    });
    const auto x = pair_of(constant(1.f), constant(10.f));
    // y: a x; z: a x + b; both grow by the sum of z.
    float va = 1, vb = 2;
    for (int i = 0; i < 3; ++i) {
      const auto [y, z] = strategy.run(f, x);
      for (int r = 0; r < 2; ++r) {
        check(y[r].device() == strategy.devices()[r][0], "first");
        check(z[r].device() == strategy.devices()[r][1], "second");
      }
      const float z0 = va + vb, z1 = 10 * va + vb;
      check(values(z[0]) == Floats{z0} && values(z[1]) == Floats{z1}, "values");
      va += z0 + z1;
      vb += z0 + z1;
    }
    check(values(a.value()) == Floats{va}, "a");
    check(values(b.value()) == Floats{vb}, "b");
  });
}

TEST(Run, OneReplicaNeedsNoAggregation) {
  on_two([](const MirroredStrategy& strategy) {
    const OneDeviceStrategy one(strategy.devices()[1][0]);
    Variable v;
    {
      const auto scope = one.scope();
      v = Variable(constant(1.f));
    }
    const auto z = one.run(
        [&](const Tensor& x) {
          v.assign_add(x);
          const Tensors t = get_replica_context()->merge_call(
              [](const Strategy& s, const std::vector<PerReplica>& all) {
                return Tensors{s.reduce(ReduceOp::kMean, all[0])};
              },
              {x});
          return get_replica_context()->all_reduce(ReduceOp::kSum, x) + t[0];
        },
        constant(2.f));
    check(values(z[0]) == Floats{4} && values(v.value()) == Floats{3}, "sums");
    check(z[0].device() == strategy.devices()[1][0], "there");
  });
}

TEST(Run, VariablesOfCentralStorageStayThere) {
  on_two([](const MirroredStrategy&) {
    const CentralStorageStrategy central;
    Variable v;
    {
      const auto scope = central.scope();
      v = Variable(constant(1.f), {.aggregation = VariableAggregation::kSum});
    }
    const auto f = berth::function([&](const Tensor& x) {
      v.assign_add(x * v.value());
      return v.value();
    });
    // 1 + 5 * 1, then 6 + 5 * 6.
    const auto x = pair_of(constant(1.f), constant(4.f));
    for (const float now : {6.f, 36.f}) {
      const auto z = central.run(f, x);
      check(values(z[0]) == Floats{now} && values(z[1]) == Floats{now}, "now");
    }
    check(v.device().ends_with("CPU:0"), "central");
  });
}

TEST(Run, RefusesWhatCannotBe) {
  on_two([](const MirroredStrategy& strategy) {
    const auto id = [](const Tensor& x) { return x; };
    refuses<errors::InvalidArgument>(
        [&] { strategy.run(id, PerReplica({constant(1.f)})); },
        "an argument has values of 1 replicas, the strategy has 2");
    refuses<errors::FailedPrecondition>(
        [&] { strategy.run([&] { strategy.run([] {}); }); },
        "run() is called inside run()");
    refuses<errors::FailedPrecondition>(
        [&] { strategy.run([&] { const auto s = strategy.scope(); }); },
        "inside run()");
    refuses<errors::InvalidArgument>(
        [&] {
          strategy.run([] {
            const int n = get_replica_context()->replica_id_in_sync_group();
            return Tensors(static_cast<size_t>(n), constant(1.f));
          });
        },
        "returns 1 tensors in replica 1 and 0 in replica 0");
    refuses<errors::Unimplemented>(
        [&] {
          strategy.run(
              [](const Tensor& x) {
                return cond(
                    math::greater(x, constant(0.f)),
                    [&] {
                      return get_replica_context()->all_reduce(ReduceOp::kSum,
                                                               x);
                    },
                    [&] { return x; });
              },
              pair_of(constant(1.f), constant(2.f)));
        },
        "inside of cond()");
  });
}

TEST(Run, SaysWhenItTracesEachTime) {
  on_two([](const MirroredStrategy& strategy) {
    debugging::set_diagnostic_handler([](const debugging::Diagnostic&) {});
    const auto f = [](const Tensor& x) { return x; };
    for (int i = 0; i < 8; ++i) strategy.run(f, constant(1.f));
    check(debugging::diagnostic_counts()["retrace"] == 1, "once");
  });
}

TEST(Run, VariablesOfNoStrategyAreWrittenOnceToo) {
  on_two([](const MirroredStrategy& strategy) {
    const Variable v = with_device("/CPU:0", [] {
      return Variable(constant(1.f),
                      {.aggregation = VariableAggregation::kSum});
    });
    const auto f = berth::function([&](const Tensor& x) {
      v.assign_add(x * v.value());
      return v.value();
    });
    const auto x = pair_of(constant(1.f), constant(4.f));
    for (const float now : {6.f, 36.f}) {
      const auto z = strategy.run(f, x);
      check(values(z[0]) == Floats{now} && values(z[1]) == Floats{now}, "now");
    }
  });
}

TEST(Run, RowsAreScatteredByTheFirstReplicaOrNotAtAll) {
  on_two([](const MirroredStrategy& strategy) {
    using enum VariableAggregation;
    const auto make = [&](VariableAggregation how) {
      const auto scope = strategy.scope();
      return Variable(zeros({3}), {.aggregation = how});
    };
    const Variable first = make(kOnlyFirstReplica), sum = make(kSum);
    const auto add = [](const Variable& v) {
      return berth::function([v](const Tensor& at, const Tensor& x) {
        v.scatter_add({x, at});
      });
    };
    const auto at = pair_of(constant({1}), constant({2}));
    const auto x = pair_of(constant({5.f}), constant({7.f}));
    strategy.run(add(first), at, x);
    check(values(first.value()) == Floats{0, 5, 0}, "replica 0");
    refuses<errors::Unimplemented>([&] { strategy.run(add(sum), at, x); },
                                   "rows of several replicas");
  });
}

TEST(Run, OneTraceServesAllLengthsOfASignature) {
  on_two([](const MirroredStrategy& strategy) {
    const auto f = berth::function(
        [](const Tensor& x) {
          const auto c = *get_replica_context();
          const Tensor all = c.all_gather(x * 2.f, 0);
          return std::pair(c.all_reduce(ReduceOp::kMean, math::reduce_sum(x)),
                           all);
        },
        {.input_signature = {{{-1}, float32}}});
    for (int i = 0; i < 2; ++i) {
      const Tensor a = i == 0 ? constant({1.f}) : constant({1.f, 2.f});
      const auto [mean, all] =
          strategy.run(f, pair_of(a, constant({3.f, 4.f, 5.f})));
      check(values(mean[1]) == Floats{i == 0 ? 6.5f : 7.5f}, "mean");
      const Floats wanted =
          i == 0 ? Floats{2, 6, 8, 10} : Floats{2, 4, 6, 8, 10};
      check(values(all[0]) == wanted && values(all[1]) == wanted, "all");
    }
    check(f.num_traces() == 1, "one trace");
    refuses<errors::InvalidArgument>(
        [&] {
          strategy.run(
              berth::function(
                  [](const Tensor& x) { return keras::Loss("mse")(x, x); },
                  {.input_signature = {{{-1, 1}, float32}}}),
              pair_of(zeros({1, 1}), zeros({2, 1})));
        },
        "how many examples each replica has is not known");
  });
}

TEST(Run, ReplicasDrawNumbersOfTheirOwn) {
  on_two([](const MirroredStrategy& strategy) {
    const auto f = berth::function([] { return random::uniform({64}); });
    const auto a = strategy.run(f), b = strategy.run(f);
    check(values(a[0]) != values(a[1]), "each its own");
    check(values(a[0]) != values(b[0]), "new ones each time");
  });
}

TEST(Run, WhatAFunctionThrowsLeavesNothingBehind) {
  on_two([](const MirroredStrategy& strategy) {
    refuses<errors::InvalidArgument>(
        [&] {
          strategy.run([](const Tensor& x) { return matmul(x, x); },
                       pair_of(zeros({2, 3}), zeros({2, 3})));
        },
        "MatMul");
    check(!has_strategy() && !get_replica_context(), "closed");
    const Tensor x = constant(1.f) + 1.f;
    check(values(x) == Floats{2}, "eager again");
  });
}

// Otherwise each step would copy homes to mirrors.
TEST(Run, StepsLeaveMirrorsFresh) {
  in_a_fresh_process([] {
    test::use_gpus(3);
    for (const auto& devices :
         {std::vector<std::string>{"GPU:0", "GPU:1", "GPU:2"},
          std::vector<std::string>{"GPU:0", "CPU:0"}}) {
      const MirroredStrategy strategy({.devices = devices});
      const auto scope = strategy.scope();
      keras::Sequential model({keras::Dense(64), keras::Dense(1)});
      model.build({-1, 300});
      model.compile({.optimizer = "adam", .loss = "mse"});
      const auto check_fresh = [&](const char* when) {
        for (const Variable& v : model.trainable_variables()) {
          const auto mirrors = mirrors_of(v.handle());
          check(mirrors.size() + 1 == devices.size(), when);
          for (const Tensor& m : mirrors) {
            check(!is_stale(variable_state(m)), when);
          }
        }
      };
      const Tensor x = ones({12, 300}), y = ones({12, 1});
      model.fit(x, y, {.batch_size = 6, .verbose = 0});
      check_fresh("after fit");
      const keras::Adam adam;
      const auto step = berth::function([&](const Tensor& a, const Tensor& b) {
        GradientTape tape;
        const Tensor loss = keras::Loss("mse")(b, model(a));
        const auto weights = model.trainable_variables();
        adam.apply_gradients(tape.gradient(loss, weights), weights);
      });
      const auto part = [&](const Tensor& t) {
        return PerReplica(Tensors(devices.size(), t));
      };
      strategy.run(step, part(x), part(y));
      strategy.run(step, part(x), part(y));
      check_fresh("after run");
    }
  });
}

}  // namespace
}  // namespace berth::distribute
