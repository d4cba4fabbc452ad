// Kernels run by the rules of the dialect.

#include "conformance/gpu_stand_ins/host_card/host_card.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <numeric>

#include "berth/errors.h"
#include "conformance/gpu_stand_ins/host_card/host_testing.h"

namespace berth::gpu {
namespace {

// Returns the error that f throws; "": none.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const errors::Internal& e) {
    return e.what();
  }
  return "";
}

constexpr char kSums[] = R"(
KERNEL(GROUP_SIZE, f)(BUF(const i32, x), BUF(i32, sums)) {
  AT(const i32, x);
  AT(i32, sums);
  LOCAL_ARRAY(i32, box, GROUP_SIZE);
  box[LID] = x[ITEM];
  BARRIER();
  for (i32 s = GROUP_SIZE / 2; s > 0; s /= 2) {
    if (LID < s) box[LID] += box[LID + s];
    BARRIER();
  }
  if (LID == 0) sums[GROUP] = box[0];
})";

TEST(Items, MeetAtBarriersInWhateverOrderTheyRun) {
  std::vector<int32_t> numbers(3 * 256);
  std::iota(numbers.begin(), numbers.end(), 1);
  for (const uint64_t seed : {0, 1, 2, 77}) {
    HostCard card(seed);
    const CardArray<int32_t> x(card, numbers);
    const CardArray<int32_t> sums(card, {0, 0, 0});
    launch_f(card, kSums, 3, {x.arg(), sums.arg()});
    // 256 k + 1 ... 256 k + 256.
    EXPECT_EQ(sums.values(),
              (std::vector<int32_t>{256 * 257 / 2, 256 * (256 + 513) / 2,
                                    256 * (2 * 512 + 257) / 2}))
        << "seed " << seed;
  }
}

TEST(Items, RunInAnOrderThatTheSeedDraws) {
  // Each item records how many ran before it.
  const std::string text = R"(
    KERNEL(GROUP_SIZE, f)(BUF(i32, count), BUF(i32, turns)) {
      AT(i32, count);
      AT(i32, turns);
      turns[ITEM] = count[0];
      count[0] = count[0] + 1;
    })";
  std::vector<int32_t> in_order(4 * 256);
  std::iota(in_order.begin(), in_order.end(), 0);
  std::vector<std::vector<int32_t>> turns;
  for (const uint64_t seed : {0, 1, 1, 2}) {
    HostCard card(seed);
    const CardArray<int32_t> count(card, {0}), all(card, in_order);
    launch_f(card, text, 4, {count.arg(), all.arg()});
    EXPECT_EQ(count.values()[0], 4 * 256);
    turns.push_back(all.values());
  }
  EXPECT_EQ(turns[0], in_order);
  EXPECT_NE(turns[1], in_order);
  EXPECT_EQ(turns[1], turns[2]);
  EXPECT_NE(turns[1], turns[3]);
  std::sort(turns[1].begin(), turns[1].end());
  EXPECT_EQ(turns[1], in_order);  // each exactly once
}

TEST(Items, FindMemoryOfTheGroupAsGarbage) {
  const std::string text = R"(
    KERNEL(GROUP_SIZE, f)(BUF(f32, y)) {
      AT(f32, y);
      LOCAL_ARRAY(f32, box, GROUP_SIZE);
      if (LID == 0) y[GROUP] = box[0] + box[255];
      BARRIER();
      box[LID] = 1.0f;
    })";
  HostCard card(0);
  const CardArray<float> y(card, {0, 0});
  launch_f(card, text, 2, {y.arg()});
  for (const float v : y.values()) EXPECT_NE(v, v);
}

TEST(Barriers, ThatOnlySomeItemsPassAreAnError) {
  HostCard card(0);
  const CardArray<float> y(card, std::vector<float>(256));
  EXPECT_NE(error_of([&] {
              launch_f(card, R"(
                KERNEL(GROUP_SIZE, f)(BUF(f32, y)) {
                  AT(f32, y);
                  if (LID >= 250) return;
                  BARRIER();
                  y[LID] = 1;
                })",
                       1, {y.arg()});
            })
                .find("f, group (0, 0, 0): 6 of 256 items ended while the "
                      "others wait"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              launch_f(card, R"(
                KERNEL(GROUP_SIZE, f)(BUF(f32, y)) {
                  AT(f32, y);
                  if (LID & 1) { BARRIER(); } else { BARRIER(); }
                  y[LID] = 1;
                })",
                       1, {y.arg()});
            }).find("items of a group wait at different barriers"),
            std::string::npos);
  // The card works again.
  launch_f(card, R"(
    KERNEL(GROUP_SIZE, f)(BUF(f32, y)) {
      AT(f32, y);
      BARRIER();
      y[LID] = 2;
    })",
           1, {y.arg()});
  EXPECT_EQ(y.values()[255], 2);
}

TEST(Calls, OfWhatTheKernelDoesNotTakeAreErrors) {
  const std::string text = R"(
    KERNEL(GROUP_SIZE, f)(BUF(f32, y), const i64 n) {
      AT(f32, y);
      if (ITEM < n) y[ITEM] = 1;
    })";
  HostCard card(0);
  const CardArray<float> y(card, {0});
  const int32_t narrow = 1;
  const int64_t wide = 1;
  EXPECT_NE(error_of([&] {
              launch_f(card, text, 1, {y.arg()});
            }).find("given 1 arguments; expected 2"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              launch_f(card, text, 1, {y.arg(), value_arg(narrow)});
            }).find("argument 1: 4 bytes; expected 8"),
            std::string::npos);
  launch_f(card, text, 1, {y.arg(), value_arg(wide)});
  EXPECT_EQ(y.values()[0], 1);
}

TEST(Code, ThatDoesNotCompileIsAnErrorWithTheCompilersWords) {
  HostCard card(0);
  EXPECT_NE(error_of([&] {
              launch_f(card, "KERNEL(GROUP_SIZE, f)(BUF(f32, y)) { rum(); }", 1,
                       {});
            }).find("rum"),
            std::string::npos);
  EXPECT_NE(error_of([&] { launch_f(card, "", 1, {}); }).find("kernel f"),
            std::string::npos);
}

// A folder of its own: tests that run beside this one compile too.
TEST(Code, IsCompiledOnceAndKept) {
  namespace fs = std::filesystem;
  std::string folder = fs::temp_directory_path() / "berth_kernels_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  setenv("BERTH_GPU_HOST_CACHE", folder.c_str(), 1);
  const auto kept = [&] {
    std::map<std::string, fs::file_time_type> files;
    for (const auto& f : fs::directory_iterator(folder)) {
      files[f.path().extension()] = f.last_write_time();
    }
    return files;
  };
  const auto launch = [] {
    HostCard card(0);
    const int64_t n = 1;
    launch_f(card, "KERNEL(GROUP_SIZE, f)(const i64 n) {}", 1, {value_arg(n)});
  };
  launch();
  const auto before = kept();
  EXPECT_EQ(before.size(), 2u);  // the library and its source
  EXPECT_EQ(before.count(".so"), 1u);
  launch();
  EXPECT_EQ(kept(), before);
  unsetenv("BERTH_GPU_HOST_CACHE");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace berth::gpu
