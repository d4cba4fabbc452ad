// Convolutions, batch norms and attention by cuDNN, as far as they can be
// tested without it: a fake library stands in for libberth_cudnn.so.

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "backends/cuda/cubin_cache.h"
#include "backends/cuda/cuda_card.h"
#include "backends/cuda/cuda_testing.h"
#include "backends/cuda/cudnn_library.h"
#include "backends/gpu/kernels.h"
#include "backends/gpu/queue_stream.h"
#include "berth/errors.h"
#include "conformance/gpu_stand_ins/fake_cuda/fake_cudnn.h"
#include "op/infer.h"

namespace berth::cuda {
namespace {

namespace fs = std::filesystem;

struct FakeCudnnLibrary {
  const BerthCudnnApi* api = nullptr;
  FakeCudnn* fake = nullptr;
  FakeCudnnLibrary() {
    void* library =
        dlopen(fake_file(BERTH_FAKE_CUDNN_FILE).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    api = static_cast<const BerthCudnnApi*>(dlsym(library, "berth_cudnn_api"));
    using Get = FakeCudnn& (*)();
    fake = &reinterpret_cast<Get>(dlsym(library, "berth_fake_cudnn"))();
  }
};

const FakeCudnnLibrary& fake_library() {
  static const FakeCudnnLibrary& one = *new FakeCudnnLibrary;
  return one;
}

std::string fake_folder() {
  return fs::path(fake_file(BERTH_FAKE_CUDNN_FILE)).parent_path();
}

// A temporary folder for this test.
class Folder {
 public:
  Folder() {
    std::string name = fs::temp_directory_path() / "berth_cudnn_XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path() const { return path_; }
  std::string with(const char* file) const {
    std::ofstream(path_ + "/" + file) << "no library";
    return path_;
  }

 private:
  std::string path_;
};

class Cudnn : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_NE(fake_library().fake, nullptr) << BERTH_FAKE_CUDNN_FILE;
    *fake_library().fake = FakeCudnn();
    // It is read when a card's library is first used.
    const char* before = getenv("BERTH_CACHE_DIR");
    before_ = before == nullptr ? "" : before;
    setenv("BERTH_CACHE_DIR", folder_.path().c_str(), 1);
    changed_ = true;
  }
  void TearDown() override {
    if (!changed_) return;
    if (before_.empty()) {
      unsetenv("BERTH_CACHE_DIR");
    } else {
      setenv("BERTH_CACHE_DIR", before_.c_str(), 1);
    }
    EXPECT_EQ(fake().plans, 0);
    EXPECT_EQ(fake().cards, 0);
  }

  static FakeCudnn& fake() { return *fake_library().fake; }
  static std::unique_ptr<CudaCard> card() {
    std::string why;
    auto card =
        std::make_unique<CudaCard>(*driver(&why), *Nvrtc::find(&why), 0);
    card->cudnn().use(fake_library().api);
    return card;
  }
  // Returns the only file of the plans on disk.
  fs::path kept() const {
    for (const auto& f : fs::directory_iterator(folder_.path() + "/cudnn")) {
      return f.path();
    }
    return {};
  }

  const Folder folder_;

 private:
  std::string before_;
  bool changed_ = false;
};

gpu::LibraryOp small_conv() {
  gpu::LibraryOp op;
  op.dtype = float32;
  op.conv = {2, 5, 4, 3, 3, 2, 3, 4, 6, 1, {2, 1}, {1, 1}, {1, 0}};
  return op;
}

TEST(CudnnLibrary, SaysThatItsOwnLibraryIsMissing) {
  const Folder empty;
  std::string why;
  EXPECT_EQ(open_cudnn({empty.path()}, {""}, &why), nullptr);
  EXPECT_NE(why.find("no libberth_cudnn.so"), std::string::npos) << why;
}

TEST(CudnnLibrary, SaysThatAFileIsNoLibrary) {
  const Folder bad;
  std::string why;
  EXPECT_EQ(open_cudnn({bad.with("libberth_cudnn.so")}, {""}, &why), nullptr);
  EXPECT_NE(why.find(bad.path()), std::string::npos) << why;
}

TEST(CudnnLibrary, SaysThatCudnnIsMissing) {
  const Folder empty;
  std::string why;
  EXPECT_EQ(open_cudnn({fake_folder()}, {empty.path()}, &why), nullptr);
  EXPECT_NE(why.find("pip install nvidia-cudnn-cu13"), std::string::npos);
  EXPECT_NE(why.find("no folder has it"), std::string::npos) << why;
}

TEST_F(Cudnn, IsOpenedFromTheFirstFolderThatHasAllOfIt) {
  const Folder empty, bad, good;
  fake().bad_folder = bad.with("libcudnn.so.9");
  std::string why;
  EXPECT_NE(
      open_cudnn({empty.path(), fake_folder()},
                 {empty.path(), bad.path(), good.with("libcudnn.so.9")}, &why),
      nullptr);
  EXPECT_EQ(why, "");
  EXPECT_EQ(fake().folder, good.path());
}

TEST_F(Cudnn, SaysWhichFoldersWereTriedInVain) {
  const Folder bad;
  fake().bad_folder = bad.with("libcudnn.so.9");
  std::string why;
  EXPECT_EQ(open_cudnn({fake_folder()}, {bad.path()}, &why), nullptr);
  EXPECT_NE(why.find(bad.path() + " (a part is missing)"), std::string::npos)
      << why;
}

// cuDNN's rule: out = (in + before + after - span) / stride + 1, rounded down.
TEST(CudnnGraph, PaddingBehindMakesTheResultAsLongAsItIs) {
  gpu::LibraryOp op = small_conv();
  for (int64_t in = 1; in < 12; ++in) {
    for (int64_t window = 1; window < 5; ++window) {
      for (int64_t stride = 1; stride < 4; ++stride) {
        for (int64_t dilation = 1; dilation < 3; ++dilation) {
          for (int64_t before = 0; before < 3; ++before) {
            const int64_t span = (window - 1) * dilation + 1;
            for (int64_t out = 1; out < 9; ++out) {
              const int64_t end = (out - 1) * stride + span;
              // Some padding after is enough for this one.
              if (end + stride <= in + before) continue;
              op.conv.h = in, op.conv.oh = out, op.conv.kh = window;
              op.conv.stride[0] = stride, op.conv.dilation[0] = dilation;
              op.conv.pad[0] = before;
              const BerthCudnnGraph g = cudnn_graph(op, false);
              ASSERT_GE(g.pad_after[0], 0);
              ASSERT_EQ((in + before + g.pad_after[0] - span) / stride + 1,
                        out);
            }
          }
        }
      }
    }
  }
}

TEST(CudnnGraph, SaysTheDtypeOrThatThereIsNone) {
  gpu::LibraryOp op = small_conv();
  EXPECT_EQ(cudnn_graph(op, false).type, BERTH_CUDNN_FLOAT32);
  EXPECT_EQ(cudnn_graph(op, false).tf32, 0);
  EXPECT_EQ(cudnn_graph(op, true).tf32, 1);
  op.dtype = bfloat16;
  EXPECT_EQ(cudnn_graph(op, false).type, BERTH_CUDNN_BFLOAT16);
  op.dtype = float64;
  EXPECT_EQ(cudnn_graph(op, false).what, -1);
}

TEST_F(Cudnn, RunsAPlanWithItsArgumentsAndScratch) {
  const auto card = this->card();
  {
    const gpu::LibraryKernel k = card->library_kernel(small_conv());
    ASSERT_NE(k.kernel, nullptr);
    EXPECT_EQ(k.scratch_bytes, 512u);
    const auto queue = card->make_queue();
    void* addresses[4];
    gpu::KernelArg args[4];
    for (uintptr_t i = 0; i < 4; ++i) {
      addresses[i] = reinterpret_cast<void*>(256 * (i + 1));
      args[i] = {&addresses[i], 0};
    }
    k.kernel->launch(*queue, {}, args, 4);
    EXPECT_EQ(fake().arguments, std::vector<void*>(addresses, addresses + 4));
    EXPECT_NE(fake().stream, nullptr);
    EXPECT_EQ(queue->appended(), 1u);
    fake().fails = "run_plan";
    EXPECT_THROW(k.kernel->launch(*queue, {}, args, 4), errors::Internal);
    addresses[1] = reinterpret_cast<void*>(260);
    EXPECT_THROW(k.kernel->launch(*queue, {}, args, 4), errors::Internal);
    // Where there is a substitute, it is left to that.
    EXPECT_TRUE(k.kernel->may_refuse());
    EXPECT_FALSE(k.kernel->try_launch(*queue, {}, args, 4));
  }
  EXPECT_EQ(fake().plans, 0);
}

TEST_F(Cudnn, LeavesAnOpThatIsRefusedToOtherKernels) {
  const auto card = this->card();
  fake().fails = "make_plan";
  EXPECT_EQ(card->library_kernel(small_conv()).kernel, nullptr);
  EXPECT_EQ(card->cudnn().why(), "make_plan was told to fail");
  fake().fails = "";
  gpu::LibraryOp other = small_conv();
  other.conv.n = 7;
  EXPECT_NE(card->library_kernel(other).kernel, nullptr);
}

TEST_F(Cudnn, IsNotAskedAgainForWhatItRefused) {
  const auto card = this->card();
  fake().fails = "make_plan";
  EXPECT_EQ(card->library_kernel(small_conv()).kernel, nullptr);
  fake().fails = "";
  EXPECT_EQ(card->library_kernel(small_conv()).kernel, nullptr);
  EXPECT_EQ(card->cudnn().why(), "make_plan was told to fail");
  EXPECT_EQ(fake().made, 0);
}

TEST_F(Cudnn, LeavesAllOpsToOtherKernelsOnACardThatItDoesNotTake) {
  const auto card = this->card();
  fake().fails = "make_card";
  EXPECT_EQ(card->library_kernel(small_conv()).kernel, nullptr);
  EXPECT_EQ(card->cudnn().why(), "make_card was told to fail");
  fake().fails = "";
  EXPECT_EQ(card->library_kernel(small_conv()).kernel, nullptr);
}

TEST_F(Cudnn, ReadsPlansThatAnotherProcessKept) {
  EXPECT_NE(card()->library_kernel(small_conv()).kernel, nullptr);
  EXPECT_EQ(fake().made, 1);
  EXPECT_NE(card()->library_kernel(small_conv()).kernel, nullptr);
  EXPECT_EQ(fake().made, 1);
  EXPECT_EQ(fake().loaded, 1);
}

TEST_F(Cudnn, MakesAPlanForEachGraphAndCard) {
  gpu::LibraryOp op = small_conv();
  card()->library_kernel(op);
  op.conv.n = 7;
  card()->library_kernel(op);
  EXPECT_EQ(fake().made, 2);
  fake().card = "another card";
  card()->library_kernel(op);
  EXPECT_EQ(fake().made, 3);
  EXPECT_EQ(fake().loaded, 0);
}

TEST_F(Cudnn, MakesAPlanAnewWhoseFileIsDamaged) {
  card()->library_kernel(small_conv());
  const fs::path file = kept();
  ASSERT_TRUE(fs::exists(file));
  const auto size = fs::file_size(file);
  for (const bool shorter : {true, false}) {
    const int before = fake().made;
    if (shorter) {
      fs::resize_file(file, size - 1);
    } else {
      std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
      f.seekp(static_cast<std::streamoff>(size - 5));
      f.put('\x7f');
    }
    EXPECT_NE(card()->library_kernel(small_conv()).kernel, nullptr);
    EXPECT_EQ(fake().made, before + 1);
    EXPECT_EQ(fs::file_size(file), size);  // and it is kept
  }
  EXPECT_EQ(fake().loaded, 0);
}

TEST_F(Cudnn, MakesAPlanAnewThatDoesNotLoad) {
  card()->library_kernel(small_conv());
  fake().fails = "load_plan";
  EXPECT_NE(card()->library_kernel(small_conv()).kernel, nullptr);
  EXPECT_EQ(fake().made, 2);
}

TEST_F(Cudnn, KeepsNothingOfACardWithoutAKey) {
  fake().card = "";
  EXPECT_NE(card()->library_kernel(small_conv()).kernel, nullptr);
  EXPECT_FALSE(fs::exists(folder_.path() + "/cudnn"));
}

TEST_F(Cudnn, IsUsedByThreadsAtOnce) {
  const auto card = this->card();
  constexpr int kThreads = 4, kGraphs = 5;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&card] {
      const auto queue = card->make_queue();
      void* address = nullptr;
      const gpu::KernelArg arg{&address, 0};
      const gpu::KernelArg args[] = {arg, arg, arg, arg};
      for (int i = 0; i < kGraphs; ++i) {
        gpu::LibraryOp op = small_conv();
        op.conv.n = i + 1;
        const gpu::LibraryKernel k = card->library_kernel(op);
        if (k.kernel) k.kernel->launch(*queue, {}, args, 4);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(fake().cards, 1);
  EXPECT_EQ(fake().made + fake().loaded, kThreads * kGraphs);
  EXPECT_EQ(fake().plans, 0);
}

// Prepares an op's first kernel on `card`. Images and filters are of `dtype`;
// parameters of norms are float32.
std::unique_ptr<Prepared> prepared(CudaCard& card, const char* name,
                                   const std::vector<Shape>& shapes,
                                   const AttrsRef& attrs, DType dtype = float32,
                                   bool part = false) {
  KernelTable table;
  gpu::Kernels kernels(card, table);
  gpu::add_conv(kernels);
  gpu::add_norm(kernels);
  gpu::add_attention(kernels);
  const OpDef& op = op_named(name);
  std::vector<SpecView> in;
  for (const Shape& s : shapes) {
    // Logarithms beside sequences.
    const bool sums = in.size() == 4 && s.rank() + 1 == shapes[0].rank();
    in.push_back({s.rank() == 1 || sums ? float32 : dtype, &s});
  }
  std::vector<OutSpec> out(static_cast<size_t>(op.num_outputs(attrs.get())));
  infer_outputs(op, attrs.get(), in, out);
  PrepareArgs args{.op = &op, .attrs = attrs.get(), .in = in, .out = out};
  args.table = &table;
  if (part) args.unsplit = &shapes[0];
  const BoundKernel bound = bind_kernel(table, args);
  return bound.def == nullptr ? nullptr : bound.def->prepare(args);
}

TEST_F(Cudnn, TakesConvolutionsWithTheirGeometry) {
  const auto card = this->card();
  using Ints = std::vector<int64_t>;
  const AttrsRef attrs({{"strides", Ints{1, 2, 1, 1}},
                        {"padding", std::string("SAME")},
                        {"dilations", Ints{1, 1, 2, 1}},
                        {"groups", int64_t{2}}});
  // Height 6 in steps of 2, window 3: 1 pixel of padding after. Width 9,
  // window 3, dilation 2: 2 before and 2 after.
  const auto p =
      prepared(*card, "Conv2D", {{4, 6, 9, 8}, {3, 3, 4, 10}}, attrs);
  ASSERT_NE(p, nullptr);
  const BerthCudnnGraph& g = fake().graph;
  EXPECT_EQ(g.what, BERTH_CUDNN_CONV);
  EXPECT_EQ(g.n, 4);
  EXPECT_EQ(g.h, 6);
  EXPECT_EQ(g.w, 9);
  EXPECT_EQ(g.c, 8);
  EXPECT_EQ(g.kh, 3);
  EXPECT_EQ(g.kw, 3);
  EXPECT_EQ(g.groups, 2);
  EXPECT_EQ(g.oh, 3);
  EXPECT_EQ(g.ow, 9);
  EXPECT_EQ(g.o, 10);
  EXPECT_EQ(g.stride[0], 2);
  EXPECT_EQ(g.stride[1], 1);
  EXPECT_EQ(g.dilation[0], 1);
  EXPECT_EQ(g.dilation[1], 2);
  EXPECT_EQ(g.pad_before[0], 0);
  EXPECT_EQ(g.pad_after[0], 1);
  EXPECT_EQ(g.pad_before[1], 2);
  EXPECT_EQ(g.pad_after[1], 2);
  // The library's 512 bytes and the transposed filter.
  EXPECT_EQ(p->scratch_bytes(), 512u + 1536u);
}

TEST_F(Cudnn, LeavesConvolutionsOfEachChannelToOtherKernels) {
  const auto card = this->card();
  using Ints = std::vector<int64_t>;
  const AttrsRef attrs({{"strides", Ints{1, 1, 1, 1}},
                        {"padding", std::string("SAME")},
                        {"groups", int64_t{8}}});
  EXPECT_NE(prepared(*card, "Conv2D", {{4, 6, 9, 8}, {3, 3, 1, 8}}, attrs),
            nullptr);
  EXPECT_EQ(fake().made, 0);
}

TEST_F(Cudnn, TakesBatchNormsInTrainingAlone) {
  const auto card = this->card();
  const auto norm = [&](bool training, const Shape& x) {
    const AttrsRef attrs({{"epsilon", 0.25}, {"is_training", training}});
    const Shape c{x[x.rank() - 1]};
    return prepared(*card, "FusedBatchNormV3", {x, c, c, c, c}, attrs);
  };
  EXPECT_NE(norm(true, {4, 6, 5, 8}), nullptr);
  EXPECT_EQ(fake().graph.what, BERTH_CUDNN_BATCH_NORM);
  EXPECT_EQ(fake().graph.n, 120);
  EXPECT_EQ(fake().graph.c, 8);
  EXPECT_EQ(fake().graph.epsilon, 0.25);
  EXPECT_EQ(fake().made, 1);
  EXPECT_NE(norm(false, {4, 6, 5, 8}), nullptr);
  EXPECT_NE(norm(true, {1, 8}), nullptr);  // one row has no sample variance
  EXPECT_EQ(fake().made, 1);
}

TEST_F(Cudnn, TakesConvolutionsAndBatchNormsOf16Bits) {
  const auto card = this->card();
  using Ints = std::vector<int64_t>;
  const AttrsRef conv(
      {{"strides", Ints{1, 1, 1, 1}}, {"padding", std::string("SAME")}});
  const AttrsRef norm({{"epsilon", 0.25}, {"is_training", true}});
  for (const auto& [dtype, type] :
       {std::pair<DType, int32_t>{bfloat16, BERTH_CUDNN_BFLOAT16},
        {float16, BERTH_CUDNN_FLOAT16}}) {
    const int made = fake().made;
    const auto p =
        prepared(*card, "Conv2D", {{4, 6, 9, 8}, {3, 3, 8, 8}}, conv, dtype);
    EXPECT_EQ(fake().graph.type, type);
    // The library's 512 bytes and the transposed filter, of 2 bytes each.
    EXPECT_EQ(p->scratch_bytes(), 512u + 1280u);
    prepared(*card, "FusedBatchNormV3", {{4, 6, 5, 8}, {8}, {8}}, norm, dtype);
    EXPECT_EQ(fake().graph.what, BERTH_CUDNN_BATCH_NORM);
    EXPECT_EQ(fake().graph.type, type);
    prepared(*card, "FusedBatchNormGradV3",
             {{4, 6, 5, 8}, {4, 6, 5, 8}, {8}, {8}, {8}}, norm, dtype);
    EXPECT_EQ(fake().graph.what, BERTH_CUDNN_BATCH_NORM_GRAD);
    EXPECT_EQ(fake().graph.type, type);
    EXPECT_EQ(fake().made, made + 3);
  }
}

AttrsRef attended() { return AttrsRef({{"scale", 0.25}, {"is_causal", true}}); }

// Opens the fake library, and with it the runtime of runs of attention.
const BerthCudnnApi* opened() {
  const Folder cudnn;
  std::string why;
  return open_cudnn({fake_folder()}, {cudnn.with("libcudnn.so.9")}, &why);
}

TEST_F(Cudnn, TakesAttentionOf16BitsWithItsGeometry) {
  ASSERT_NE(opened(), nullptr);
  const auto card = this->card();
  const Shape q{2, 3, 16, 8}, k{2, 3, 24, 8}, v{2, 3, 24, 40}, y{2, 3, 16, 40},
      sums{2, 3, 16};
  for (const auto& [dtype, type] :
       {std::pair<DType, int32_t>{bfloat16, BERTH_CUDNN_BFLOAT16},
        {float16, BERTH_CUDNN_FLOAT16}}) {
    for (const bool grad : {false, true}) {
      const auto p = grad ? prepared(*card, "ScaledDotProductAttentionGrad",
                                     {q, k, v, y, sums, y}, attended(), dtype)
                          : prepared(*card, "ScaledDotProductAttention",
                                     {q, k, v}, attended(), dtype);
      ASSERT_NE(p, nullptr);
      EXPECT_EQ(p->scratch_bytes(), 512u);
      const BerthCudnnGraph& g = fake().graph;
      EXPECT_EQ(g.what,
                grad ? BERTH_CUDNN_ATTENTION_GRAD : BERTH_CUDNN_ATTENTION);
      EXPECT_EQ(g.type, type);
      EXPECT_EQ(g.batch, 2);
      EXPECT_EQ(g.heads, 3);
      EXPECT_EQ(g.s, 16);
      EXPECT_EQ(g.t, 24);
      EXPECT_EQ(g.d, 8);
      EXPECT_EQ(g.e, 40);
      EXPECT_EQ(g.causal, 1);
      EXPECT_EQ(g.scale, 0.25);
    }
  }
}

TEST_F(Cudnn, LeavesOtherAttentionToItsDecomposition) {
  ASSERT_NE(opened(), nullptr);
  const auto card = this->card();
  const Shape x{2, 3, 16, 8};
  const auto attend = [&](const std::vector<Shape>& shapes, DType dtype) {
    return prepared(*card, "ScaledDotProductAttention", shapes, attended(),
                    dtype);
  };
  EXPECT_EQ(attend({x, x, x}, float32), nullptr);
  EXPECT_EQ(attend({x, x, x, {16, 16}}, bfloat16), nullptr);  // a mask
  EXPECT_EQ(attend({x, {3, 16, 8}, {3, 16, 8}}, bfloat16), nullptr);
  EXPECT_EQ(attend({x, {2, 1, 16, 8}, {2, 1, 16, 8}}, bfloat16), nullptr);
  const Shape odd{2, 3, 16, 12};  // rows are not multiples of 16 bytes
  EXPECT_EQ(attend({odd, odd, x}, bfloat16), nullptr);
  EXPECT_EQ(attend({x, x, odd}, bfloat16), nullptr);
  EXPECT_EQ(attend({{0, 3, 16, 8}, {0, 3, 16, 8}, {0, 3, 16, 8}}, bfloat16),
            nullptr);
  EXPECT_EQ(attend({{16, 8}, {16, 8}, {16, 8}}, bfloat16), nullptr);
  EXPECT_EQ(fake().made, 0);
  // Parts whose logarithms may begin anywhere, by the axis that is cut.
  const auto attend_part = [&](const Shape& s, bool part) {
    return prepared(*card, "ScaledDotProductAttention", {s, s, s}, attended(),
                    bfloat16, part) != nullptr;
  };
  EXPECT_TRUE(attend_part({2, 3, 5, 8}, false));
  EXPECT_FALSE(attend_part({2, 3, 5, 8}, true));
  EXPECT_TRUE(attend_part({2, 4, 5, 8}, true));
  EXPECT_TRUE(attend_part({4, 5, 8}, false));
  EXPECT_FALSE(attend_part({4, 5, 8}, true));
  EXPECT_TRUE(attend_part({3, 4, 8}, true));
  fake().fails = "make_plan";
  EXPECT_EQ(attend({x, x, x}, bfloat16), nullptr);
  EXPECT_EQ(card->cudnn().why(), "make_plan was told to fail");
}

TEST_F(Cudnn, IsNotAskedWhenItIsAbsent) {
  const auto card = this->card();
  card->cudnn().use(nullptr);
  using Ints = std::vector<int64_t>;
  const AttrsRef attrs(
      {{"strides", Ints{1, 1, 1, 1}}, {"padding", std::string("SAME")}});
  EXPECT_NE(prepared(*card, "Conv2D", {{4, 6, 9, 8}, {3, 3, 8, 8}}, attrs),
            nullptr);
  EXPECT_EQ(fake().made, 0);
}

gpu::LibraryOp small_attention() {
  gpu::LibraryOp op{gpu::LibraryOp::What::kAttention, bfloat16};
  op.attention = {1, 2, 16, 16, 64, 64};
  return op;
}

// Its runs look for the CUDA runtime by name, its plans do not.
TEST_F(Cudnn, FindsTheRuntimeThatAttentionNeeds) {
  ASSERT_NE(opened(), nullptr);
  EXPECT_NE(dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD), nullptr);
  const auto card = this->card();
  EXPECT_NE(card->library_kernel(small_attention()).kernel, nullptr);
  EXPECT_EQ(card->cudnn().why_no_attention(*card), "");
}

TEST_F(Cudnn, IsNotAskedForAttentionWhereATrialFails) {
  const auto card = this->card();
  fake().fails = "run_plan";
  EXPECT_EQ(card->library_kernel(small_attention()).kernel, nullptr);
  fake().fails = "";
  EXPECT_EQ(card->library_kernel(small_attention()).kernel, nullptr);
  const std::string why = card->cudnn().why_no_attention(*card);
  EXPECT_NE(why.find("run_plan was told to fail"), std::string::npos) << why;
  EXPECT_NE(card->library_kernel(small_conv()).kernel, nullptr);
}

}  // namespace
}  // namespace berth::cuda
