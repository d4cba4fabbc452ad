// Products by cuBLASLt, on a fake library and a fake driver.

#include "backends/cuda/lt_products.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "backends/cuda/lt_problem.h"
#include "backends/cuda/lt_testing.h"
#include "backends/gpu/kernels.h"
#include "base/diagnostics.h"
#include "base/fresh_process_testing.h"
#include "berth/device.h"
#include "berth/errors.h"
#include "berth/function.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "ops/op_call.h"
#include "tensor/tensor_impl.h"

namespace berth::cuda {
namespace {

namespace fs = std::filesystem;
using gpu::MatrixProduct;
using gpu::ProductActivation;

class LtProductsTest : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (testing::Test::IsSkipped()) return;
    ASSERT_NE(kFakeLt, nullptr) << BERTH_FAKE_LT_FILE;
    kFake->begin("devices=2");
    kFakeLt->begin("");
    setenv("BERTH_CACHE_DIR", folder_.c_str(), 1);
    reset_diagnostics_for_testing();
    debugging::set_diagnostic_handler(
        [this](const debugging::Diagnostic& d) { said_.push_back(d.text); });
  }
  void TearDown() override {
    debugging::set_diagnostic_handler({});
    unsetenv("BERTH_CACHE_DIR");
    fs::remove_all(folder_);
  }

  // Computes with the library of a new card; leaves nothing behind.
  std::optional<Numbers> compute(const MatrixProduct& p, size_t shift = 0) {
    CardPair pair;
    return computed_by(pair.card(0), pair.device(0), p, operands_of(p), shift);
  }
  void check(const MatrixProduct& p) {
    SCOPED_TRACE(lt_text(p));
    const long objects = kFakeLt->objects();
    const auto got = compute(p);
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(*got, expected_of(p, operands_of(p)));
    EXPECT_EQ(kFakeLt->objects(), objects);
    EXPECT_TRUE(said_.empty());
  }

  // A fresh process uses the folder of the test that started it.
  static std::string folder() {
    const std::string begins = testing::TempDir() + "/berth_lt_";
    const std::string before = environment("BERTH_CACHE_DIR");
    return before.starts_with(begins) ? before
                                      : begins + std::to_string(getpid());
  }

  const std::string folder_ = folder();
  std::vector<std::string> said_;
};

MatrixProduct small(DType dtype = float32) {
  MatrixProduct p;
  p.dtype = dtype;
  p.m = 5;
  p.n = 7;
  p.k = 3;
  p.stride_c = p.m * p.n;
  return p;
}

// Large enough for kernels to be timed; the fake library does not compute it.
MatrixProduct large(int64_t m = 512) {
  MatrixProduct p;
  p.dtype = float16;
  p.m = m;
  p.n = 512;
  p.k = 512;
  return p;
}

TEST_F(LtProductsTest, HaveTheValuesOfTheDefinitionForEveryTranspose) {
  for (const DType dtype :
       {float32, float64, float16, bfloat16, complex64, complex128}) {
    for (const int transposes : {0, 1, 2, 3}) {
      MatrixProduct p = small(dtype);
      p.transpose_a = (transposes & 1) != 0;
      p.transpose_b = (transposes & 2) != 0;
      check(p);
    }
  }
}

TEST_F(LtProductsTest, OfBatchesGoByTheirStrides) {
  for (const int64_t stride_a : {0, 15, 20}) {
    for (const int64_t stride_b : {0, 21, 30}) {
      MatrixProduct p = small();
      p.batches = 4;
      p.stride_a = stride_a;
      p.stride_b = stride_b;
      p.transpose_b = true;
      check(p);
    }
  }
}

TEST_F(LtProductsTest, AddABiasAndActivate) {
  for (const bool bias : {false, true}) {
    for (const ProductActivation a :
         {ProductActivation::kNone, ProductActivation::kRelu}) {
      for (const DType dtype : {float32, bfloat16}) {
        MatrixProduct p = small(dtype);
        p.bias = bias;
        p.activation = a;
        check(p);
      }
    }
  }
}

// At 1 and -1 gelu's tanh form is 0.841192 and -0.158808, its slope 1.082964
// and -0.082964.
TEST_F(LtProductsTest, ActivateByTheTanhFormOfGelu) {
  EXPECT_NEAR(gelu_of(1), 0.841192, 1e-6);
  EXPECT_NEAR(gelu_of(-1), -0.158808, 1e-6);
  EXPECT_NEAR(gelu_slope_of(1), 1.082964, 1e-6);
  EXPECT_NEAR(gelu_slope_of(-1), -0.082964, 1e-6);
  for (const int form : {0, 1, 2, 3, 4}) {
    MatrixProduct p = small();
    p.n = 8;  // aux needs rows of a multiple of 8
    p.batches = 2;
    p.stride_a = p.m * p.k;
    p.stride_c = p.m * p.n;
    p.activation = form == 4 ? ProductActivation::kGeluTanhSlope
                             : ProductActivation::kGeluTanh;
    p.bias = form < 4 && form % 2 != 0;
    p.keeps = form == 2 || form == 3;
    SCOPED_TRACE(lt_text(p));
    const auto got = compute(p);
    const Numbers expected = expected_of(p, operands_of(p));
    ASSERT_TRUE(got.has_value());
    ASSERT_EQ(got->size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR((*got)[i].real(), expected[i].real(), 1e-5) << i;
    }
  }
}

TEST_F(LtProductsTest, AddUpTheSecondFactor) {
  for (const bool transpose_b : {false, true}) {
    MatrixProduct p = small();
    p.transpose_a = true;
    p.transpose_b = transpose_b;
    p.sums_b = true;
    check(p);
  }
}

// Rows of aux not a multiple of 8, a bias gradient together with a bias, ...
TEST_F(LtProductsTest, WithEndsThatTheLibraryLacksAreRefused) {
  MatrixProduct odd = small();
  odd.keeps = true;
  odd.activation = ProductActivation::kGeluTanh;
  MatrixProduct both = small();
  both.bias = both.sums_b = true;
  MatrixProduct relu = small();
  relu.n = 8;
  relu.keeps = true;
  relu.activation = ProductActivation::kRelu;
  MatrixProduct whole = small(complex64);
  whole.bias = true;
  for (const MatrixProduct& p : {odd, both, relu, whole}) {
    EXPECT_FALSE(compute(p).has_value()) << lt_text(p);
  }
  EXPECT_TRUE(said_.empty());
}

TEST_F(LtProductsTest, AreFloat32ButForThoseWhoAskForTf32) {
  compute(small());
  EXPECT_EQ(kFakeLt->last_compute(), CUBLAS_COMPUTE_32F);
  setenv("BERTH_TF32", "1", 1);
  compute(small());
  EXPECT_EQ(kFakeLt->last_compute(), CUBLAS_COMPUTE_32F_FAST_TF32);
  for (const DType dtype : {float16, bfloat16, complex64}) {
    compute(small(dtype));
    EXPECT_EQ(kFakeLt->last_compute(), CUBLAS_COMPUTE_32F);
  }
  compute(small(float64));
  EXPECT_EQ(kFakeLt->last_compute(), CUBLAS_COMPUTE_64F);
  unsetenv("BERTH_TF32");
}

TEST_F(LtProductsTest, OfWholeNumbersAreNotTheLibrarys) {
  for (const DType dtype : {int32, int64, int8, uint8}) {
    EXPECT_FALSE(compute(small(dtype)).has_value());
  }
  EXPECT_TRUE(said_.empty());
}

TEST_F(LtProductsTest, OfOperandsThatBeginAnywhereAreNotTheLibrarys) {
  EXPECT_TRUE(compute(small(), 64).has_value());
  EXPECT_FALSE(compute(small(), 4).has_value());
  EXPECT_TRUE(said_.empty());
}

// Which kernel computes a part of a batch follows from its shape: one of rows
// of 40 bytes may begin anywhere, wherever this one does.
TEST_F(LtProductsTest, OfPartsThatMayBeginAnywhereAreNotTheLibrarys) {
  CardPair pair;
  KernelTable table;
  gpu::Kernels kernels(pair.card(0), table);
  gpu::add_matmul(kernels);
  const OpDef& op = op_named("MatMul");
  const auto is_asked = [&](int64_t columns, bool part) {
    const Shape a{5, 8}, b{8, columns}, whole{20, 8};
    const SpecView in[] = {{float32, &a}, {float32, &b}};
    const OutSpec out{float32, Shape{5, columns}};
    PrepareArgs args{.op = &op, .in = in, .out = {&out, 1}};
    if (part) args.unsplit = &whole;
    const long before = kFakeLt->calls("cublasLtMatmulAlgoGetHeuristic");
    table.candidates(op).front().prepare(args);
    return kFakeLt->calls("cublasLtMatmulAlgoGetHeuristic") > before;
  };
  // A choice is asked for once, so the part comes first.
  EXPECT_FALSE(is_asked(10, true));
  EXPECT_TRUE(is_asked(10, false));
  EXPECT_TRUE(is_asked(12, true));
}

// So do parts of a longer value within a plan, and what a plan returns begins
// where libraries take it.
TEST_F(LtProductsTest, OfRowsThatMayBeginAnywhereAreNotTheLibrarys) {
  const auto on = device("/GPU:0");
  const AttrsRef range({{"begin", int64_t{2}}, {"count", int64_t{8}}});
  const auto is_asked = [&](int64_t columns) {
    const Tensor w = zeros({columns, 8});
    auto f = function([&](const Tensor& x) {
      return matmul(call1(op_named("_Rows"), x, range.get()), w);
    });
    const long before = kFakeLt->calls("cublasLtMatmulAlgoGetHeuristic");
    f(zeros({16, columns})).to_vector<float>();
    return kFakeLt->calls("cublasLtMatmulAlgoGetHeuristic") > before;
  };
  EXPECT_FALSE(is_asked(10));
  EXPECT_TRUE(is_asked(12));
  auto rows = function([&](const Tensor& x) {
    return call1(op_named("_Rows"), x + x, range.get());
  });
  const Tensor y = rows(zeros({16, 5}));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(y.impl()->data()) % 16, 0u);
  EXPECT_EQ(y.to_vector<float>().size(), 40u);
}

TEST_F(LtProductsTest, AreSwitchedOff) {
  setenv("BERTH_CUDA_PRODUCTS", "own", 1);
  EXPECT_FALSE(compute(small()).has_value());
  setenv("BERTH_CUDA_PRODUCTS", "cublas", 1);
  EXPECT_THROW(compute(small()), errors::InvalidArgument);
  unsetenv("BERTH_CUDA_PRODUCTS");
  EXPECT_EQ(kFakeLt->calls("cublasLtCreate"), 0);
}

// The heuristics' first needs no scratch here, the others more and more.
TEST_F(LtProductsTest, TakeTheFirstKernelForSmallOnes) {
  compute(small());
  EXPECT_EQ(kFakeLt->last_kernel(), 0);
  EXPECT_EQ(kFakeLt->calls("cublasLtMatmul"), 1);
}

TEST_F(LtProductsTest, TakeTheFastestKernelForLargeOnes) {
  kFakeLt->begin("kernels=4,times=4:3:1:2");
  compute(large());
  EXPECT_EQ(kFakeLt->last_kernel(), 2);
  // Another card or process takes the choice from disk.
  const fs::path kept = folder_ + "/cublaslt";
  EXPECT_EQ(std::distance(fs::directory_iterator(kept), {}), 1);
  kFakeLt->begin("kernels=4,times=1:3:4:2");
  compute(large());
  EXPECT_EQ(kFakeLt->last_kernel(), 2);
  EXPECT_EQ(kFakeLt->calls("cublasLtMatmul"), 1);
  EXPECT_EQ(kFakeLt->calls("cublasLtMatmulAlgoGetHeuristic"), 0);
  // A damaged file counts as missing.
  const fs::path file = fs::directory_iterator(kept)->path();
  std::ofstream(file, std::ios::app) << "more";
  compute(large());
  EXPECT_EQ(kFakeLt->last_kernel(), 0);
}

TEST_F(LtProductsTest, TakeNoKernelThatTheLibraryDoesNotKnowAnyMore) {
  kFakeLt->begin("kernels=4,times=4:3:2:1");
  compute(large());
  EXPECT_EQ(kFakeLt->last_kernel(), 3);
  kFakeLt->begin("kernels=2,times=4:3");
  compute(large());
  EXPECT_EQ(kFakeLt->last_kernel(), 1);
}

TEST_F(LtProductsTest, AreChosenOnceForEachShape) {
  CardPair pair;
  for (const int64_t m : {512, 513, 512, 513}) {
    const MatrixProduct p = large(m);
    ASSERT_TRUE(computed_by(pair.card(0), pair.device(0), p, operands_of(p)));
  }
  EXPECT_EQ(kFakeLt->calls("cublasLtMatmulAlgoGetHeuristic"), 2);
}

TEST_F(LtProductsTest, AreNotTimedWhenThatIsNotWanted) {
  kFakeLt->begin("kernels=4,times=4:3:1:2");
  setenv("BERTH_CUDA_PRODUCTS", "first", 1);
  compute(large());
  unsetenv("BERTH_CUDA_PRODUCTS");
  EXPECT_EQ(kFakeLt->last_kernel(), 0);
  EXPECT_EQ(kFakeLt->calls("cublasLtMatmul"), 1);
  EXPECT_FALSE(fs::exists(folder_ + "/cublaslt"));
}

TEST_F(LtProductsTest, AreNotChosenByTimesWhereBitsMustRepeat) {
  kFakeLt->begin("kernels=4,times=4:3:1:2");
  setenv("BERTH_DETERMINISTIC", "1", 1);
  compute(large());
  unsetenv("BERTH_DETERMINISTIC");
  EXPECT_EQ(kFakeLt->last_kernel(), 0);
  EXPECT_FALSE(fs::exists(folder_ + "/cublaslt"));
}

TEST_F(LtProductsTest, AreNotTimedWithoutMemoryForIt) {
  kFake->begin("devices=2,memory=66M");  // the device itself takes 64 MiB
  kFakeLt->begin("kernels=4,times=4:3:1:2");
  MatrixProduct p = large();
  p.k = 4096;
  ASSERT_TRUE(compute(p).has_value());
  EXPECT_LE(kFakeLt->calls("cublasLtMatmul"), 100);
  EXPECT_TRUE(said_.empty());
}

TEST_F(LtProductsTest, WithoutEpiloguesAreRefused) {
  kFakeLt->begin("epilogues=0");
  MatrixProduct p = small();
  p.bias = true;
  EXPECT_FALSE(compute(p).has_value());
  EXPECT_TRUE(said_.empty());  // the plain product is tried next
  EXPECT_TRUE(compute(small()).has_value());
}

constexpr const char* kLtCalls[] = {
#define BERTH_LT_NAME(call) #call,
    BERTH_LT_CALLS(BERTH_LT_NAME)
#undef BERTH_LT_NAME
};

// Expects the library's result, or none and one line that says why.
void run_and_fail(const std::string& call, long at, bool plain,
                  std::vector<std::string>& said,
                  const std::function<std::optional<Numbers>()>& compute,
                  const Numbers& expected) {
  const std::string fake = fmt::format("fail={}@{}:15", call, at);
  SCOPED_TRACE(fake);
  kFakeLt->begin(fake.c_str());
  reset_diagnostics_for_testing();
  said.clear();
  const long objects = kFakeLt->objects();  // a failed destroy leaves some
  const auto got = compute();
  EXPECT_EQ(kFakeLt->failed(), 1);
  if (got.has_value()) {
    EXPECT_EQ(*got, expected);
    EXPECT_NE(call.find("Destroy"), std::string::npos);
    return;
  }
  EXPECT_EQ(kFakeLt->objects(), objects);
  // A refused epilogue is followed by a try without it.
  if (!plain && said.empty()) return;
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find(call + ": CUBLAS_STATUS_NOT_SUPPORTED (15)"),
            std::string::npos)
      << said[0];
}

TEST_F(LtProductsTest, ThatFailAnywhereAreRefusedWithOneWord) {
  MatrixProduct plain = small();
  plain.batches = 2;
  plain.stride_a = 15;
  MatrixProduct ended = plain;
  ended.n = 8;
  ended.stride_c = 40;
  ended.bias = ended.keeps = true;
  ended.activation = ProductActivation::kGeluTanh;
  for (const MatrixProduct& p : {plain, ended}) {
    kFakeLt->begin("");
    const auto right = compute(p);
    ASSERT_TRUE(right.has_value());
    std::map<std::string, long> counts;
    for (const char* call : kLtCalls) counts[call] = kFakeLt->calls(call);
    EXPECT_EQ(counts["cublasLtMatmul"], 1);
    for (const auto& [call, count] : counts) {
      for (long at = 1; at <= count; ++at) {
        run_and_fail(
            call, at, p.is_plain(), said_, [&] { return compute(p); }, *right);
      }
    }
  }
}

TEST_F(LtProductsTest, OfALostCardThrow) {
  CardPair pair;
  const MatrixProduct p = small();
  const LtOperands o = operands_of(p);
  ASSERT_TRUE(computed_by(pair.card(0), pair.device(0), p, o));
  kFake->begin("devices=2,fail=cuCtxGetCurrent@1:700");
  size_t scratch = 0;
  EXPECT_THROW(static_cast<void>(pair.card(0).product(p, &scratch)),
               errors::Unavailable);
}

class LtOpsDeathTest : public LtProductsTest {};

// Runs the op on the device, whose own kernels do nothing here.
void matmul_on_gpu(const char* fake_lt, long expected_products,
                   long expected_launches, bool expected_right) {
  kFake->begin("");
  kFakeLt->begin(fake_lt);
  const auto on = berth::device("/GPU:0");
  const Tensor a = constant({{1.0f, 2.0f}, {3.0f, 4.0f}});
  const Tensor b = constant({{5.0f, 6.0f}, {7.0f, 8.0f}});
  const long before = kFake->calls("cuLaunchKernel");
  const auto c = berth::matmul(a, b).to_vector<float>();
  const std::vector<float> right = {19, 22, 43, 50};
  fresh_process::check(kFakeLt->calls("cublasLtMatmul") == expected_products,
                       "products of the library");
  fresh_process::check(
      kFake->calls("cuLaunchKernel") - before == expected_launches,
      "launches of own kernels");
  fresh_process::check((c == right) == expected_right, "the values");
}

TEST_F(LtOpsDeathTest, ComeFromTheLibrarySlow) {
  IN_A_FRESH_PROCESS(matmul_on_gpu("", 1, 0, true));
}

TEST_F(LtOpsDeathTest, ComeFromOwnKernelsWhenItRefusesSlow) {
  IN_A_FRESH_PROCESS(matmul_on_gpu("fail=cublasLtCreate@1:1", 0, 1, false));
  IN_A_FRESH_PROCESS(
      matmul_on_gpu("fail=cublasLtMatmulAlgoGetHeuristic@1:15", 0, 1, false));
  // Fails at the launch itself.
  IN_A_FRESH_PROCESS(matmul_on_gpu("fail=cublasLtMatmul@1:15", 1, 1, false));
}

// Runs a plan until it is recorded; returns how many products that took.
long record_product(const char* fake_lt, DType dtype, std::string* text) {
  kFakeLt->begin(fake_lt);
  auto f = function([](const Tensor& x) {
    const Tensor y = berth::matmul(x, x);
    return concat({y, berth::reverse(y, {0})}, 0);
  });
  const Tensor x = zeros({16, 16}, dtype);
  const long before = kFake->calls("cuStreamBeginCapture");
  long products = 0;
  for (int i = 0; i < 8; ++i) {
    f(x).to_vector<float>();
    const bool recorded = kFake->calls("cuStreamBeginCapture") > before;
    if (products == 0 && recorded) products = kFakeLt->calls("cublasLtMatmul");
  }
  *text = f.text("plan");
  return products;
}

// Own kernels go on within a capture, which allows no looking up.
void refuse_within_a_capture() {
  using fresh_process::check;
  setenv("BERTH_CUDA_PRODUCTS", "first", 1);
  kFake->begin("");
  const auto on = berth::device("/GPU:0");
  std::string text;
  const long products = record_product("", float32, &text);
  // The own kernel of this dtype has not run yet.
  const std::string fake = fmt::format("fail=cublasLtMatmul@{}:15", products);
  record_product(fake.c_str(), bfloat16, &text);
  check(products > 2 && kFakeLt->failed() == 1, fake);
  check(kFakeLt->calls("cublasLtMatmul") == products, "the capture was next");
  check(text.find("\nreplay steps ") != text.npos, text);
}

TEST_F(LtOpsDeathTest, ComeFromOwnKernelsWhenItRefusesWithinACaptureSlow) {
  IN_A_FRESH_PROCESS(refuse_within_a_capture());
}

// Runs a layer as a function; its bias and activation go with the product.
void layer_on_gpu(const char* fake_lt, long expected_products,
                  long expected_launches, bool expected_right) {
  kFake->begin("");
  const auto on = berth::device("/GPU:0");
  const Tensor x = constant({{1.0f, 2.0f}, {3.0f, 4.0f}});
  const Tensor w = constant({{5.0f, -6.0f}, {7.0f, 8.0f}});
  const Tensor b = constant({1.0f, -100.0f});
  auto layer = function([](const Tensor& a, const Tensor& c, const Tensor& d) {
    return nn::relu(nn::bias_add(berth::matmul(a, c), d));
  });
  kFakeLt->begin(fake_lt);
  const long before = kFake->calls("cuLaunchKernel");
  const auto y = layer(x, w, b).to_vector<float>();
  const long launches = kFake->calls("cuLaunchKernel") - before;
  const long products = kFakeLt->calls("cublasLtMatmul");
  fresh_process::check(launches == expected_launches,
                       fmt::format("{} launches", launches));
  fresh_process::check(products == expected_products,
                       fmt::format("{} products", products));
  const std::vector<float> right = {20, 0, 44, 0};
  fresh_process::check((y == right) == expected_right, "the values");
}

TEST_F(LtOpsDeathTest, TakeTheirEndsAlongSlow) {
  IN_A_FRESH_PROCESS(layer_on_gpu("", 1, 0, true));
}

// Own kernels, which compute nothing here, add what the library lacks.
TEST_F(LtOpsDeathTest, HaveTheirEndsFromOwnKernelsWhenItRefusesSlow) {
  IN_A_FRESH_PROCESS(layer_on_gpu("epilogues=0", 1, 1, false));
  IN_A_FRESH_PROCESS(layer_on_gpu("fail=cublasLtMatmul@1:15", 1, 1, false));
  IN_A_FRESH_PROCESS(
      layer_on_gpu("epilogues=0,fail=cublasLtMatmul@1:15", 1, 2, false));
  IN_A_FRESH_PROCESS(layer_on_gpu("fail=cublasLtCreate@1:1", 0, 1, false));
}

}  // namespace
}  // namespace berth::cuda
