// Functions whose parts run on several tasks, among threads.

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "remote/remote_testing.h"

namespace berth::remote {
namespace {

using Floats = std::vector<float>;

class RemoteFunctions : public testing::Test {
 protected:
  TestCluster& cluster_ = test_cluster();
};

// Two layers and their optimizer's state on the given devices.
struct Mlp {
  Variable w0, b0, w1, b1;
  std::string first, second;

  Mlp(std::string a, std::string b)
      : first(std::move(a)), second(std::move(b)) {
    random::set_seed(5);
    const Tensor x = random::normal({8, 16}), y = random::normal({16, 4});
    const auto make = [](const std::string& where, const Tensor& value) {
      const auto on = device(where);
      return Variable(value);
    };
    w0 = make(first, x);
    b0 = make(first, fill({16}, 0.1f));
    w1 = make(second, y);
    b1 = make(second, fill({4}, 0.0f));
  }

  Tensor step(const Tensor& x, const Tensor& y) {
    GradientTape tape;
    Tensor h = with_device(first, [&] {
      return nn::relu(linalg::matmul(x, w0.value()) + b0.value());
    });
    Tensor loss = with_device(second, [&] {
      const Tensor z = linalg::matmul(h, w1.value()) + b1.value();
      return math::reduce_mean(math::square(z - y));
    });
    const std::vector<Variable> all = {w0, b0, w1, b1};
    const auto grads = tape.gradient(loss, all);
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].assign_sub(grads[i] * 0.05f);
    }
    return loss;
  }

  std::vector<Floats> train(int slices) {
    auto fn = function(
        [this](const Tensor& x, const Tensor& y) { return step(x, y); },
        {.name = "step", .slices = slices});
    std::vector<Floats> seen;
    random::set_seed(9);
    for (int i = 0; i < 20; ++i) {
      const auto on = device("/CPU:0");
      const Tensor x = random::normal({32, 8}), y = random::normal({32, 4});
      seen.push_back(fn(x, y).to_vector<float>());
    }
    for (const Variable* v : {&w0, &b0, &w1, &b1}) {
      seen.push_back(v->value().to_vector<float>());
    }
    text = fn.text("plan");
    return seen;
  }
  std::string text;
};

TEST_F(RemoteFunctions, LayersOnTwoTasksTrainToTheBitsOfOneDevice) {
  const auto here = Mlp("/CPU:0", "/CPU:0").train(4);
  Mlp split(kWorker0, kWorker1);
  EXPECT_EQ(split.train(4), here);
  EXPECT_NE(split.text.find("_TaskSend"), std::string::npos) << split.text;
  EXPECT_NE(split.text.find("@worker:1"), std::string::npos);
  // This task and another.
  EXPECT_EQ(Mlp("/CPU:0", kWorker1).train(4), here);
  EXPECT_EQ(Mlp(kWorker0, "/CPU:0").train(4), here);
  EXPECT_EQ(Mlp(kWorker1, kWorker1).train(4), here);
}

TEST_F(RemoteFunctions, ResultsStayWhereTheyAreMade) {
  auto fn = function([](const Tensor& x) {
    const auto on = device(kWorker1);
    return x * 2.0f;
  });
  const Tensor y = fn(constant({1.f, 2.f}));
  EXPECT_NE(y.device().find("worker/replica:0/task:1"), std::string::npos);
  EXPECT_EQ(y.to_vector<float>(), (Floats{2, 4}));
  EXPECT_EQ(fn(y).to_vector<float>(), (Floats{4, 8}));
}

TEST_F(RemoteFunctions, AcceleratorsOfATaskTakePart) {
  auto fn = function([](const Tensor& x) {
    Tensor y = with_device(kWorkerGpu, [&] { return x + 1.0f; });
    Tensor z = with_device("/GPU:0", [&] { return y * 3.0f; });
    return with_device(kWorker0, [&] { return z - x; });
  });
  EXPECT_EQ(fn(constant({1.f, 2.f})).to_vector<float>(), (Floats{5, 7}));
}

TEST_F(RemoteFunctions, RandomNumbersGoOnAsOnOneDevice) {
  const auto draw = [&](const char* where) {
    random::set_seed(3);
    auto fn = function([&] {
      const auto on = device(where);
      return random::uniform({50});
    });
    Floats all;
    for (int i = 0; i < 4; ++i) {
      // The part is compiled again, and has not run before.
      if (i == 2) connect(cluster_.cluster.member({"chief", 0}));
      for (const float f : fn().to_vector<float>()) all.push_back(f);
    }
    return all;
  };
  EXPECT_EQ(draw(kWorker0), draw("/CPU:0"));
}

TEST_F(RemoteFunctions, LargeConstantsTravelWithTheGraph) {
  std::vector<float> values(500);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.5f * float(i);
  const Tensor table = with_device("/CPU:0", [&] {
    return constant(std::span<const float>(values), {500});
  });
  auto fn = function([&](const Tensor& x) {
    const auto on = device(kWorker0);
    return x + table;
  });
  EXPECT_EQ(fn(fill({500}, 1.0f)).to_vector<float>()[499], 250.5f);
}

TEST_F(RemoteFunctions, LoopsRunInsideOneTaskAndOverSeveral) {
  const auto run = [](const char* body_on) {
    auto fn = function([&](const Tensor& x) {
      const auto on = device(kWorker0);
      const Tensors start = {constant(0), x};
      return while_loop([](const Tensors& v) { return v[0] < 4; },
                        [&](const Tensors& v) {
                          const Tensor next =
                              with_device(body_on, [&] { return v[1] * 2.0f; });
                          return Tensors{v[0] + 1, next};
                        },
                        start)[1];
    });
    return fn(constant({1.f, 3.f})).to_vector<float>();
  };
  EXPECT_EQ(run(kWorker0), (Floats{16, 48}));
  EXPECT_EQ(run(kWorker1), (Floats{16, 48}));
}

TEST_F(RemoteFunctions, AFailureNamesTaskOpAndLineAndPartsGoOn) {
  auto fn = function([](const Tensor& x, const Tensor& at) {
    Tensor y = with_device(kWorker0, [&] { return gather(x, at); });
    Tensor z = with_device(kWorker1, [&] { return y * 2.0f; });
    return with_device("/CPU:0", [&] { return z + 1.0f; });
  });
  const Tensor x = constant({1.f, 2.f, 3.f});
  EXPECT_EQ(fn(x, constant({2})).to_vector<float>(), (Floats{7}));
  try {
    fn(x, constant({9})).to_vector<float>();
    FAIL();
  } catch (const errors::Error& e) {
    const std::string message = e.what();
    EXPECT_NE(message.find("worker:0"), std::string::npos) << message;
    EXPECT_NE(message.find("GatherV2"), std::string::npos) << message;
    EXPECT_NE(message.find("split_test.cc:"), std::string::npos) << message;
  }
  EXPECT_EQ(fn(x, constant({0})).to_vector<float>(), (Floats{3}));
}

TEST_F(RemoteFunctions, ExplainAndReportsSpeakOfOtherTasks) {
  auto fn = function(
      [](const Tensor& x) {
        const Tensor y = with_device(kWorker0, [&] { return x * 2.0f; });
        return with_device(kWorker1, [&] { return math::tanh(y); });
      },
      {.name = "told"});
  fn(constant({1.f, 2.f}));
  EXPECT_NE(fn.explain("Tanh").str().find("worker"), std::string::npos);
  EXPECT_NE(fn.placement().str().find("worker"), std::string::npos);
  EXPECT_GE(fn.plan_info().ops, 2);
}

TEST_F(RemoteFunctions, KerasModelsTrainOverTasks) {
  const auto losses = [](const std::string& a, const std::string& b) {
    random::set_seed(2);
    keras::utils::set_random_seed(2);
    std::optional<keras::Model> model;
    auto first = [&] {
      const auto on = device(a);
      return keras::Dense(8, {.activation = "tanh"});
    }();
    auto second = [&] {
      const auto on = device(b);
      return keras::Dense(1);
    }();
    auto seq = keras::Sequential({first, second});
    seq.compile({.optimizer = keras::Adam(0.01), .loss = "mse"});
    const auto on = device("/CPU:0");
    const Tensor x = random::normal({64, 4});
    const Tensor y = math::reduce_sum(x, {.axis = {{1}}, .keepdims = true});
    return seq
        .fit(x, y,
             {.epochs = 2, .batch_size = 16, .verbose = 0, .shuffle = false})
        .history.at("loss");
  };
  EXPECT_EQ(losses(kWorker0, kWorker1), losses("/CPU:0", "/CPU:0"));
}

TEST_F(RemoteFunctions, ContractsHoldForOtherTasks) {
  const auto make = [](const char* where, const char* stays) {
    auto fn = function(
        [where](const Tensor& x) {
          const auto on = device(where);
          return math::tanh(x);
        },
        {.name = "kept", .contract = placement::Contract{.stays_on = stays}});
    fn(constant({1.f}));
  };
  EXPECT_NO_THROW(make(kWorker0, kWorker0));
  EXPECT_THROW(make(kWorker0, kWorker1), errors::FailedPrecondition);
}

TEST_F(RemoteFunctions, EffectsOnOtherTasksKeepTheirOrder) {
  Variable v = with_device(kWorker0, [] { return Variable(constant({1.f})); });
  Variable w = with_device(kWorker1, [] { return Variable(constant({1.f})); });
  auto fn = function([&](const Tensor& x) {
    const Tensor before = v.value();
    w.assign_add(before);  // reads v before it is written
    v.assign(w.value() * x);
    w.assign_add(v.value());
    return before + w.value();
  });
  float a = 1, b = 1;
  for (int i = 0; i < 5; ++i) {
    const float before = a;
    b += before;
    a = b * 0.5f;
    b += a;
    EXPECT_EQ(fn(constant({0.5f})).to_vector<float>(), (Floats{before + b}));
  }
  EXPECT_EQ(v.value().to_vector<float>(), (Floats{a}));
  EXPECT_EQ(w.value().to_vector<float>(), (Floats{b}));
}

TEST_F(RemoteFunctions, CheckpointsHaveVariablesOfOtherTasks) {
  Variable v = with_device(
      kWorker1, [] { return Variable(fill({300}, 1.5f), {.name = "v"}); });
  train::Checkpoint checkpoint({{"v", v}});
  const std::string path =
      checkpoint.save((std::filesystem::temp_directory_path() /
                       ("remote_checkpoint_" + std::to_string(getpid())))
                          .string());
  v.assign(fill({300}, 9.0f));
  checkpoint.restore(path);
  EXPECT_EQ(v.value().to_vector<float>(), Floats(300, 1.5f));
  EXPECT_NE(v.device().find("task:1"), std::string::npos);
  std::filesystem::remove_all(path);
}

TEST_F(RemoteFunctions, ThePlannerMayUseThem) {
  auto fn = function(
      [](const Tensor& x) {
        const Tensor y = with_device(kWorker0, [&] { return math::exp(x); });
        return math::reduce_sum(y * y);
      },
      {.placement = placement::Auto{.measure = false}});
  EXPECT_EQ(fn(fill({4}, 0.0f)).item<float>(), 4.0f);
}

TEST_F(RemoteFunctions, SeveralThreadsMayRunSplitSteps) {
  auto fn = function([](const Tensor& x) {
    const Tensor y = with_device(kWorker0, [&] { return x + 1.0f; });
    const Tensor z = with_device(kWorker1, [&] { return y * 2.0f; });
    return with_device("/CPU:0", [&] { return z - x; });
  });
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const float x = static_cast<float>(t * 100 + i);
        good += fn(constant({x})).to_vector<float>()[0] == x + 2;
        const Tensor far =
            with_device(kWorker1, [&] { return constant({x}) * 2.0f; });
        good += with_device(kWorker0, [&] {
                  return far + 1.0f;
                }).to_vector<float>()[0] == 2 * x + 1;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(good, 160);
}

// Must come last: it ends the cluster of the other tests.
TEST_F(RemoteFunctions, TheLossOfATaskIsNamedAndConnectingAnewHelps) {
  Variable v = with_device(kWorker0, [] { return Variable(constant({1.f})); });
  Variable w = with_device(kWorker1, [] { return Variable(constant({2.f})); });
  auto fn = function([&] {
    const auto on = device(kWorker0);
    v.assign_add(constant({1.f}));
    return v.value() + w.value();
  });
  EXPECT_EQ(fn().to_vector<float>(), (Floats{4}));
  cluster_.cluster.lose({"worker", 1}, "killed");
  for (int times = 0; times < 2; ++times) {
    try {
      fn().to_vector<float>();
      FAIL();
    } catch (const errors::Unavailable& e) {
      EXPECT_NE(std::string(e.what()).find("worker:1"), std::string::npos)
          << e.what();
    }
  }
  new_test_cluster();
  EXPECT_THROW(v.value().to_vector<float>(), errors::Error);
  v.assign(constant({10.f}));
  w.assign(constant({5.f}));
  EXPECT_EQ(fn().to_vector<float>(), (Floats{16}));
}

}  // namespace
}  // namespace berth::remote
