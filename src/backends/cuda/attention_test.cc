// A traced step with attention on a card: one op and its gradient where cuDNN
// has plans, else their parts. The fake driver's kernels compute nothing.

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "backends/cuda/cards.h"
#include "backends/cuda/cuda_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "conformance/gpu_stand_ins/fake_cuda/fake_cudnn.h"
#include "device/device_manager.h"
#include "function/place_bodies.h"
#include "graph/graph.h"

namespace berth::cuda {
namespace {

using fresh_process::check;

class AttentionDeathTest : public CudaTest {};

// Lets the plug-in find the fake libberth_cudnn.so, and a cuDNN that it does
// not open. Returns a folder to remove.
std::string use_fake_cudnn() {
  namespace fs = std::filesystem;
  std::string name = fs::temp_directory_path() / "berth_attention_XXXXXX";
  const std::string folder = mkdtemp(name.data());
  std::ofstream(folder + "/libcudnn.so.9") << "no library";
  const std::string own =
      fs::path(fake_file(BERTH_FAKE_CUDNN_FILE)).parent_path();
  setenv("BERTH_CUDA_LIBRARIES", (own + ":" + folder).c_str(), 1);
  setenv("BERTH_CACHE_DIR", folder.c_str(), 1);
  return folder;
}

bool computes(const std::string& text, const std::string& op) {
  return text.find(" = " + op + "(") != text.npos;
}

// Of 12 heads of 64, as in GPT-2.
void attend_on_card(bool cudnn, DType dtype, bool one_op) {
  setenv("BERTH_CUDNN", cudnn ? "on" : "off", 1);
  const std::string folder = cudnn ? use_fake_cudnn() : std::string();
  if (kFake != nullptr) kFake->begin("devices=1");
  const auto on = device("/GPU:0");
  const Tensor x = zeros({2, 12, 64, 64}, dtype);
  auto f = function([](const Tensors& in) {
    GradientTape tape;
    for (const Tensor& t : in) tape.watch(t);
    const Tensor y = nn::scaled_dot_product_attention(in[0], in[1], in[2],
                                                      {.is_causal = true});
    return tape.gradient(math::reduce_sum(y * y), {in[0], in[1], in[2]});
  });
  f(Tensors{x, x, x});
  const std::string text = f.text("place");
  check(computes(text, "ScaledDotProductAttention") == one_op, text);
  check(computes(text, "ScaledDotProductAttentionGrad") == one_op, text);
  check(computes(text, "MaskedSoftmax") != one_op, text);
  if (!folder.empty()) std::filesystem::remove_all(folder);
}

TEST_F(AttentionDeathTest, IsOneOpOf16BitsWhereCudnnHasPlansSlow) {
  IN_A_FRESH_PROCESS(attend_on_card(true, bfloat16, true));
  IN_A_FRESH_PROCESS(attend_on_card(true, float16, true));
}

TEST_F(AttentionDeathTest, IsItsPartsInFloat32AndWithoutCudnnSlow) {
  IN_A_FRESH_PROCESS(attend_on_card(true, float32, false));
  IN_A_FRESH_PROCESS(attend_on_card(false, bfloat16, false));
}

TEST_F(AttentionDeathTest, SaysWhyItIsNotByCudnn) {
  IN_A_FRESH_PROCESS({
    setenv("BERTH_CUDNN", "on", 1);
    const std::string folder = use_fake_cudnn();
    kFake->begin("devices=1");
    void* library = dlopen(fake_file(BERTH_FAKE_CUDNN_FILE).c_str(), RTLD_NOW);
    using Get = FakeCudnn& (*)();
    reinterpret_cast<Get>(dlsym(library, "berth_fake_cudnn"))().fails =
        "run_plan";
    const std::string why = why_none();
    check(why.find("attention on Fake GPU 0 is by Berth's own kernels: ") !=
              why.npos,
          why);
    check(why.find("run_plan was told to fail") != why.npos, why);
    std::filesystem::remove_all(folder);
  });
}

// What binds kernels refuses such parts: they must have decomposed before.
void part_of_a_batch(int64_t heads, bool fits) {
  setenv("BERTH_CUDNN", "on", 1);
  const std::string folder = use_fake_cudnn();
  kFake->begin("devices=1");
  const DeviceId gpu =
      DeviceManager::get().find(DeviceName::parse("/GPU:0"))->id();
  const OutSpec x{bfloat16, {2, heads, 5, 8}};
  Graph g;
  Node arg;
  arg.name = "x";
  arg.op = &op_named("_Arg");
  arg.outputs = {x};
  g.add(std::move(arg));
  Node n;
  n.op = &op_named("ScaledDotProductAttention");
  n.inputs = {{0, 0}, {0, 0}, {0, 0}};
  n.outputs = {x, {float32, {2, heads, 5}}};
  n.assigned = gpu;
  check(has_kernel(n, g), "whole");
  NodePart part;
  part.unsplit = {4, heads, 5, 8};
  n.part = std::make_shared<const NodePart>(part);
  check(has_kernel(n, g) == fits, "a part");
  std::filesystem::remove_all(folder);
}

TEST_F(AttentionDeathTest, IsItsPartsWhereAPartMayBeginAnywhereSlow) {
  IN_A_FRESH_PROCESS(part_of_a_batch(4, true));
  IN_A_FRESH_PROCESS(part_of_a_batch(3, false));
}

}  // namespace
}  // namespace berth::cuda
