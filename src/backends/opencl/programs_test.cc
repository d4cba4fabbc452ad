// How many programs are built for a plan. The plug-in finds these calls first;
// each passes on to the driver.

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>

#include <mutex>
#include <string>
#include <vector>

#include "backends/opencl/opencl_testing.h"
#include "berth/berth.h"

namespace {

std::mutex g_mutex;
std::vector<std::string> g_texts;  // of programs

}  // namespace

extern "C" cl_program clCreateProgramWithSource(cl_context context,
                                                cl_uint count,
                                                const char** texts,
                                                const size_t* lengths,
                                                cl_int* error) {
  static const auto call =
      reinterpret_cast<decltype(&clCreateProgramWithSource)>(
          dlsym(RTLD_NEXT, "clCreateProgramWithSource"));
  {
    std::lock_guard lock(g_mutex);
    if (count == 1 && lengths == nullptr) g_texts.emplace_back(texts[0]);
  }
  return call(context, count, texts, lengths, error);
}

namespace berth::opencl {
namespace {

using Programs = OpenClTest;

// Returns the number of kernels of fused ops in each program that has any, and
// forgets the programs.
std::vector<int> fused_kernels() {
  std::lock_guard lock(g_mutex);
  std::vector<int> counts;
  for (const std::string& text : g_texts) {
    int count = 0;
    const std::string word = ", fused_";
    for (size_t at = text.find(word); at != text.npos;
         at = text.find(word, at + 1)) {
      ++count;
    }
    if (count > 0) counts.push_back(count);
  }
  g_texts.clear();
  return counts;
}

// A product stands between two chains: they are not one.
Tensor chain(const Tensor& x, float by) {
  return linalg::matmul(math::tanh(x * by + 1.0f) - x, x);
}

TEST_F(Programs, OfTheChainsOfAPlanAreOneSlow) {
  const auto on = device("/GPU:0");
  const Tensor x = ones({64, 64});
  g_texts.clear();
  auto four = function([](const Tensor& in) {
    return chain(chain(chain(chain(in, 2), 3), 4), 5);
  });
  const Tensor y = four(x);
  EXPECT_EQ(fused_kernels(), std::vector<int>{4});
  four(x);
  EXPECT_EQ(fused_kernels(), std::vector<int>{});
  // Another plan builds what is new.
  auto other = function([](const Tensor& in) {
    return chain(chain(chain(chain(in, 2), 3), 6), 7);
  });
  other(x);
  EXPECT_EQ(fused_kernels(), std::vector<int>{2});
}

}  // namespace
}  // namespace berth::opencl
