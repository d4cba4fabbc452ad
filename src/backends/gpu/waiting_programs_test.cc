#include "backends/gpu/waiting_programs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "backends/gpu/card.h"
#include "berth/errors.h"

namespace berth::gpu {
namespace {

std::atomic<int> g_launches{0};

class CountingKernel final : public Kernel {
 public:
  void launch(Queue&, const Grid&, const KernelArg*, int) override {
    ++g_launches;
  }
};

class CountingModule final : public Module {
 public:
  std::unique_ptr<Kernel> kernel(const char*) override {
    return std::make_unique<CountingKernel>();
  }
};

class NoQueue final : public Queue {
 public:
  void copy(const Copy&) override {}
  void fill(void*, int, size_t) override {}
  Mark mark() override { return nullptr; }
  void release(Mark) noexcept override {}
  bool passed(Mark) override { return true; }
  void await(Mark) override {}
  void follow(Mark) override {}
  double passed_us(Mark) override { return 0; }
};

class Waiting : public testing::Test {
 protected:
  void launch(const std::unique_ptr<Kernel>& kernel) {
    kernel->launch(queue_, {}, nullptr, 0);
  }

  std::vector<std::string> compiled_;  // texts, in order
  std::string refused_;                // no program with this text compiles
  WaitingPrograms programs_{[this](const std::string& beginning,
                                   const std::vector<std::string>& parts) {
    std::string text = beginning;
    for (const std::string& p : parts) text += p;
    compiled_.push_back(text);
    if (!refused_.empty() && text.find(refused_) != text.npos) {
      throw errors::Internal(fmt::format("refused: {}", text));
    }
    return std::vector<std::shared_ptr<Module>>(
        parts.size(), std::make_shared<CountingModule>());
  }};
  NoQueue queue_;
};

using Texts = std::vector<std::string>;

// Before a recording, in which nothing may be compiled.
TEST_F(Waiting, AreCompiledWhenTheirKernelsAreLookedUp) {
  const auto a = programs_.kernel("1:", "a", "f");
  a->look_up();
  EXPECT_EQ(compiled_, Texts{"1:a"});
  launch(a);
  EXPECT_EQ(compiled_.size(), 1u);
}

TEST_F(Waiting, ProgramsOfOneBeginningAreCompiledAsOne) {
  const auto c = programs_.kernel("1:", "c", "f");
  const auto a = programs_.kernel("1:", "a", "f");
  const auto b = programs_.kernel("2:", "b", "f");
  const auto again = programs_.kernel("1:", "a", "f");
  EXPECT_EQ(compiled_, Texts{});
  programs_.compile_all();
  EXPECT_EQ(compiled_, (Texts{"1:ac", "2:b"}));
  g_launches = 0;
  for (int i = 0; i < 2; ++i) {
    for (const auto* k : {&a, &b, &c, &again}) launch(*k);
  }
  EXPECT_EQ(g_launches, 8);
  EXPECT_EQ(compiled_.size(), 2u);
}

TEST_F(Waiting, ProgramsAreCompiledOncePerProcess) {
  programs_.kernel("1:", "a", "f");
  programs_.compile_all();
  const auto known = programs_.kernel("1:", "a", "f");
  const auto fresh = programs_.kernel("1:", "d", "f");
  programs_.compile_all();
  launch(known);
  launch(fresh);
  EXPECT_EQ(compiled_, (Texts{"1:a", "1:d"}));
}

TEST_F(Waiting, AFirstLaunchCompilesAllThatWait) {
  const auto a = programs_.kernel("1:", "a", "f");
  const auto b = programs_.kernel("1:", "b", "f");
  launch(b);
  launch(a);
  EXPECT_EQ(compiled_, Texts{"1:ab"});
}

TEST_F(Waiting, OneThatDoesNotCompileLeavesTheOthersUsable) {
  refused_ = "b";
  const auto a = programs_.kernel("1:", "a", "f");
  const auto b = programs_.kernel("1:", "b", "f");
  EXPECT_THROW(programs_.compile_all(), errors::Internal);
  launch(a);
  EXPECT_THROW(launch(b), errors::Internal);
  EXPECT_EQ(compiled_, (Texts{"1:ab", "1:a", "1:b"}));
  refused_.clear();
  launch(b);
}

TEST_F(Waiting, ThreadsThatLaunchAtOnceCompileOnce) {
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (int i = 0; i < 8; ++i) {
    kernels.push_back(programs_.kernel("1:", fmt::format("{}", i), "f"));
  }
  g_launches = 0;
  std::vector<std::thread> threads;
  for (const auto& k : kernels) threads.emplace_back([&] { launch(k); });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(g_launches, 8);
  EXPECT_EQ(compiled_, Texts{"1:01234567"});
}

}  // namespace
}  // namespace berth::gpu
