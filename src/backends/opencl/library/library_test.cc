// Tests the arguments that the kernels of backends/gpu give a card's library,
// and how they use its results. The library is a fake in this file: plain loops
// on an OpenCL device that follow library_op.h. The kernels without a library
// provide the expected results.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/kernels.h"
#include "backends/gpu/queue_stream.h"
#include "backends/opencl/cl_card.h"
#include "berth/device.h"
#include "berth/half.h"
#include "berth/ops/array.h"
#include "device/block.h"
#include "op/infer.h"
#include "ops/op_call.h"

namespace berth::opencl {
namespace {

using gpu::ConvGeometry;
using gpu::LibraryOp;
using Numbers = std::vector<float>;
using Ints = std::vector<int64_t>;

// The arrays of a library's arguments, on the host.
using Arrays = std::vector<Numbers>;

// Calls fn(image, filter, result) with the positions of each product.
template <class Fn>
void each_product(const ConvGeometry& v, Fn fn) {
  const int64_t cg = v.c / v.groups, og = v.o / v.groups;
  for (int64_t n = 0; n < v.n; ++n) {
    for (int64_t y = 0; y < v.oh; ++y) {
      for (int64_t x = 0; x < v.ow; ++x) {
        for (int64_t o = 0; o < v.o; ++o) {
          for (int64_t i = 0; i < v.kh; ++i) {
            for (int64_t j = 0; j < v.kw; ++j) {
              const int64_t h = y * v.stride[0] - v.pad[0] + i * v.dilation[0];
              const int64_t w = x * v.stride[1] - v.pad[1] + j * v.dilation[1];
              if (h < 0 || h >= v.h || w < 0 || w >= v.w) continue;
              for (int64_t c = 0; c < cg; ++c) {
                fn(((n * v.h + h) * v.w + w) * v.c + o / og * cg + c,
                   ((o * v.kh + i) * v.kw + j) * cg + c,
                   ((n * v.oh + y) * v.ow + x) * v.o + o);
              }
            }
          }
        }
      }
    }
  }
}

// Sums each product into array `to`, from the factors' arrays.
void convolve(const LibraryOp& op, Arrays& a) {
  std::vector<double> sums(a[2].size(), 0);
  each_product(op.conv, [&](int64_t image, int64_t filter, int64_t result) {
    const auto i = static_cast<size_t>(image), f = static_cast<size_t>(filter),
               r = static_cast<size_t>(result);
    switch (op.what) {
      case LibraryOp::What::kConv:
        sums[r] += double{a[0][i]} * double{a[1][f]};
        break;
      case LibraryOp::What::kConvImageGrad:
        sums[i] += double{a[0][f]} * double{a[1][r]};
        break;
      default:
        sums[f] += double{a[0][i]} * double{a[1][r]};
    }
  });
  for (size_t i = 0; i < sums.size(); ++i) {
    a[2][i] = static_cast<float>(sums[i]);
  }
}

void normalise(const LibraryOp& op, Arrays& a) {
  const auto rows = static_cast<size_t>(op.rows),
             channels = static_cast<size_t>(op.channels);
  const auto n = static_cast<double>(rows);
  for (size_t c = 0; c < channels; ++c) {
    double mean = 0, squares = 0;
    for (size_t r = 0; r < rows; ++r) mean += a[0][r * channels + c] / n;
    for (size_t r = 0; r < rows; ++r) {
      squares += std::pow(a[0][r * channels + c] - mean, 2);
    }
    const double inverse = 1 / std::sqrt(squares / n + op.epsilon);
    for (size_t r = 0; r < rows; ++r) {
      const size_t i = r * channels + c;
      a[3][i] =
          static_cast<float>((a[0][i] - mean) * inverse * a[1][c] + a[2][c]);
    }
    a[4][c] = a[6][c] = static_cast<float>(mean);
    a[5][c] = static_cast<float>(inverse);
    a[7][c] = static_cast<float>(squares / (n - 1));
  }
}

void normalise_grad(const LibraryOp& op, Arrays& a) {
  const auto rows = static_cast<size_t>(op.rows),
             channels = static_cast<size_t>(op.channels);
  const auto n = static_cast<double>(rows);
  for (size_t c = 0; c < channels; ++c) {
    const double mean = a[3][c], inverse = a[4][c], scale = a[2][c];
    double sum = 0, dot = 0;
    for (size_t i = c; i < rows * channels; i += channels) {
      sum += a[0][i];
      dot += a[0][i] * (a[1][i] - mean) * inverse;
    }
    for (size_t i = c; i < rows * channels; i += channels) {
      const double h = (a[1][i] - mean) * inverse;
      a[5][i] = static_cast<float>(scale * inverse *
                                   (a[0][i] - sum / n - h * dot / n));
    }
    a[6][c] = static_cast<float>(dot);
    a[7][c] = static_cast<float>(sum);
  }
}

struct Attended {
  size_t rows, s, t, d, e;
  explicit Attended(const gpu::AttentionGeometry& a)
      : rows(static_cast<size_t>(a.batch * a.heads * a.s)),
        s(static_cast<size_t>(a.s)),
        t(static_cast<size_t>(a.t)),
        d(static_cast<size_t>(a.d)),
        e(static_cast<size_t>(a.e)) {}
};

// Calls fn(key, score) for each key that query r sees; keys are numbered over
// all sequences.
template <class Fn>
void each_score(const LibraryOp& op, const Arrays& a, size_t r, Fn fn) {
  const Attended n(op.attention);
  const size_t seen = op.attention.causal ? std::min(r % n.s + 1, n.t) : n.t;
  for (size_t j = 0; j < seen; ++j) {
    const size_t key = r / n.s * n.t + j;
    double dot = 0;
    for (size_t x = 0; x < n.d; ++x) {
      dot += double{a[0][r * n.d + x]} * double{a[1][key * n.d + x]};
    }
    fn(key, dot * op.attention.scale);
  }
}

void attend(const LibraryOp& op, Arrays& a) {
  const Attended n(op.attention);
  for (size_t r = 0; r < n.rows; ++r) {
    double sum = 0;
    std::vector<double> y(n.e, 0);
    each_score(op, a, r, [&](size_t key, double score) {
      const double w = std::exp(score);
      sum += w;
      for (size_t x = 0; x < n.e; ++x) {
        y[x] += w * double{a[2][key * n.e + x]};
      }
    });
    for (size_t x = 0; x < n.e; ++x) {
      a[3][r * n.e + x] = static_cast<float>(y[x] / sum);
    }
    a[4][r] = static_cast<float>(std::log(sum));
  }
}

// By the result and the logarithms that it is given.
void attend_grad(const LibraryOp& op, Arrays& a) {
  const Attended n(op.attention);
  std::vector<double> dk(a[7].size(), 0), dv(a[8].size(), 0);
  for (size_t r = 0; r < n.rows; ++r) {
    double own = 0;
    for (size_t x = 0; x < n.e; ++x) {
      own += double{a[3][r * n.e + x]} * double{a[4][r * n.e + x]};
    }
    std::vector<double> dq(n.d, 0);
    each_score(op, a, r, [&](size_t key, double score) {
      const double w = std::exp(score - double{a[5][r]});
      double dw = 0;
      for (size_t x = 0; x < n.e; ++x) {
        dw += double{a[4][r * n.e + x]} * double{a[2][key * n.e + x]};
        dv[key * n.e + x] += w * double{a[4][r * n.e + x]};
      }
      const double dscore = w * (dw - own) * op.attention.scale;
      for (size_t x = 0; x < n.d; ++x) {
        dq[x] += dscore * double{a[1][key * n.d + x]};
        dk[key * n.d + x] += dscore * double{a[0][r * n.d + x]};
      }
    });
    for (size_t x = 0; x < n.d; ++x) {
      a[6][r * n.d + x] = static_cast<float>(dq[x]);
    }
  }
  for (size_t i = 0; i < dk.size(); ++i) a[7][i] = static_cast<float>(dk[i]);
  for (size_t i = 0; i < dv.size(); ++i) a[8][i] = static_cast<float>(dv[i]);
}

// The arguments of attention that have 16 bits; the logarithms have not.
bool is_narrow(const LibraryOp& op, size_t argument) {
  if (op.what == LibraryOp::What::kAttention) return argument < 4;
  return op.what == LibraryOp::What::kAttentionGrad && argument != 5;
}

// The bytes of an array in memory, as bfloat16 where `narrow`, and back.
std::vector<unsigned char> bytes_of(const Numbers& x, bool narrow) {
  std::vector<unsigned char> bytes(x.size() * (narrow ? 2 : 4));
  if (!narrow) {
    std::memcpy(bytes.data(), x.data(), bytes.size());
    return bytes;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const bfloat16_t h(x[i]);
    std::memcpy(&bytes[2 * i], &h, 2);
  }
  return bytes;
}
Numbers numbers_of(const std::vector<unsigned char>& bytes, bool narrow) {
  Numbers x(bytes.size() / (narrow ? 2 : 4));
  if (!narrow) {
    std::memcpy(x.data(), bytes.data(), bytes.size());
    return x;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    bfloat16_t h;
    std::memcpy(&h, &bytes[2 * i], 2);
    x[i] = h;
  }
  return x;
}

// Returns the number of elements of each argument.
std::vector<size_t> sizes_of(const LibraryOp& op) {
  const ConvGeometry& v = op.conv;
  const auto image = static_cast<size_t>(v.n * v.h * v.w * v.c),
             filter = static_cast<size_t>(v.o * v.kh * v.kw * v.c / v.groups),
             result = static_cast<size_t>(v.n * v.oh * v.ow * v.o),
             x = static_cast<size_t>(op.rows * op.channels),
             c = static_cast<size_t>(op.channels);
  const Attended n(op.attention);
  const size_t r = n.rows, keys = n.s == 0 ? 0 : r / n.s * n.t, q = r * n.d,
               k = keys * n.d, values = keys * n.e, y = r * n.e;
  switch (op.what) {
    case LibraryOp::What::kConv:
      return {image, filter, result};
    case LibraryOp::What::kConvImageGrad:
      return {filter, result, image};
    case LibraryOp::What::kConvFilterGrad:
      return {image, result, filter};
    case LibraryOp::What::kBatchNorm:
      return {x, c, c, x, c, c, c, c};
    case LibraryOp::What::kBatchNormGrad:
      return {x, x, c, c, c, x, c, c};
    case LibraryOp::What::kAttention:
      return {q, k, values, y, r};
    case LibraryOp::What::kAttentionGrad:
      return {q, k, values, y, y, r, q, k, values};
  }
  return {};
}

// Returns the index of an op's first result among its arguments.
size_t first_result(const LibraryOp& op) {
  switch (op.what) {
    case LibraryOp::What::kBatchNorm:
      return 3;
    case LibraryOp::What::kBatchNormGrad:
      return 5;
    case LibraryOp::What::kAttention:
      return 3;
    case LibraryOp::What::kAttentionGrad:
      return 6;
    default:
      return 2;
  }
}

class HostKernel final : public gpu::Kernel {
 public:
  HostKernel(const LibraryOp& op, int& ran) : op_(op), ran_(ran) {}

  bool may_refuse() const override { return true; }
  // As cuDNN, it takes aligned operands alone.
  bool try_launch(gpu::Queue& queue, const gpu::Grid& grid,
                  const gpu::KernelArg* args, int num_args) override {
    for (int i = 0; i < num_args; ++i) {
      if (reinterpret_cast<uintptr_t>(address(args[i])) % 16 != 0) return false;
    }
    launch(queue, grid, args, num_args);
    return true;
  }

  void launch(gpu::Queue& queue, const gpu::Grid&, const gpu::KernelArg* args,
              int num_args) override {
    ++ran_;
    const std::vector<size_t> sizes = sizes_of(op_);
    ASSERT_EQ(static_cast<size_t>(num_args), sizes.size() + 1);
    Arrays arrays;
    for (const size_t n : sizes) arrays.emplace_back(n);
    const size_t first = first_result(op_);
    for (size_t i = 0; i < first; ++i) {
      std::vector<unsigned char> bytes = bytes_of(arrays[i], is_narrow(op_, i));
      copy(queue,
           {bytes.data(), &host(), address(args[i]), &card(), bytes.size()});
      arrays[i] = numbers_of(bytes, is_narrow(op_, i));
    }
    if (op_.what == LibraryOp::What::kBatchNorm) {
      normalise(op_, arrays);
    } else if (op_.what == LibraryOp::What::kBatchNormGrad) {
      normalise_grad(op_, arrays);
    } else if (op_.what == LibraryOp::What::kAttention) {
      attend(op_, arrays);
    } else if (op_.what == LibraryOp::What::kAttentionGrad) {
      attend_grad(op_, arrays);
    } else {
      convolve(op_, arrays);
    }
    for (size_t i = first; i < sizes.size(); ++i) {
      std::vector<unsigned char> bytes = bytes_of(arrays[i], is_narrow(op_, i));
      copy(queue,
           {address(args[i]), &card(), bytes.data(), &host(), bytes.size()});
    }
    // The kernel may overwrite its scratch.
    queue.fill(address(args[num_args - 1]), 0x7f, kScratch);
  }

  static constexpr size_t kScratch = 300;

 private:
  static void* address(const gpu::KernelArg& a) {
    void* p = nullptr;
    std::memcpy(&p, a.value, sizeof p);
    return p;
  }
  static const MemorySpace& host() {
    static const MemorySpace space{.host_addressable = true};
    return space;
  }
  static const MemorySpace& card() {
    static const MemorySpace space{.host_addressable = false};
    return space;
  }
  static void copy(gpu::Queue& queue, const Copy& copy) {
    queue.copy(copy);
    const gpu::Mark mark = queue.mark();
    queue.await(mark);
    queue.release(mark);
  }

  const LibraryOp op_;
  int& ran_;
};

class LibraryCard final : public ClCard {
 public:
  LibraryCard(cl_context context, cl_device_id device, int number)
      : ClCard(context, device, number) {
    features_.attention = true;
  }
  gpu::LibraryKernel library_kernel(const LibraryOp& op) override {
    if (!has_library) return {};
    ++asked;
    return {std::make_unique<HostKernel>(op, ran), HostKernel::kScratch};
  }

  bool has_library = true;
  int asked = 0, ran = 0;
};

// Returns a card of the first OpenCL driver, or null.
LibraryCard* library_card() {
  static std::vector<std::unique_ptr<ClCard>>& cards = []() -> auto& {
    auto& list = *new std::vector<std::unique_ptr<ClCard>>;
    cl_platform_id platform = nullptr;
    cl_device_id device = nullptr;
    if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) !=
            CL_SUCCESS) {
      return list;
    }
    cl_int error = CL_SUCCESS;
    const cl_context context =
        clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
    list.push_back(std::make_unique<LibraryCard>(context, device, 77));
    join_cards(list);
    return list;
  }
  ();
  return cards.empty() ? nullptr : static_cast<LibraryCard*>(cards[0].get());
}

Numbers numbers(const Shape& shape, uint32_t seed) {
  Numbers v(static_cast<size_t>(shape.num_elements()));
  uint32_t state = seed;
  for (float& x : v) {
    state = state * 1664525u + 1013904223u;
    x = static_cast<float>(state >> 8) * 0x1p-23f - 0.5f;
  }
  return v;
}

struct Call {
  std::string op;
  std::vector<Shape> shapes;
  std::vector<Attrs::Pair> attrs;
  bool narrow = false;  // of bfloat16, but what stands at place 4 of six
  size_t shift = 0;     // bytes of all operands' addresses
  bool part = false;    // of a split op
};

// True for an operand of a call that has 16 bits.
bool is_narrow(const Call& call, size_t i) {
  return call.narrow && !(call.shapes.size() == 6 && i == 4);
}

class Library : public testing::Test {
 protected:
  void SetUp() override {
    card_ = library_card();
    if (card_ == nullptr) {
      GTEST_SKIP() << "no OpenCL device here (pocl-opencl-icd provides one)";
    }
    static const KernelTable none;
    device_ = std::make_unique<gpu::GpuDevice>(
        GpuPart{.id = 50, .physical = 0, .memory_limit_bytes = size_t{1} << 28},
        *card_, &none, "a test");
  }

  int card_asked() const { return card_->asked; }

  // Returns all results of a call.
  Arrays results_of(const Call& call, const Arrays& inputs, bool library) {
    card_->has_library = library;
    const OpDef& op = op_named(call.op);
    const AttrsRef attrs{std::vector<Attrs::Pair>(call.attrs)};
    std::vector<SpecView> in;
    for (const Shape& s : call.shapes) {
      in.push_back({is_narrow(call, in.size()) ? bfloat16 : float32, &s});
    }
    std::vector<OutSpec> out(static_cast<size_t>(op.num_outputs(attrs.get())));
    infer_outputs(op, attrs.get(), in, out);
    KernelTable table;
    gpu::Kernels kernels(*card_, table);
    gpu::add_conv(kernels);
    gpu::add_norm(kernels);
    gpu::add_attention(kernels);
    PrepareArgs args{.op = &op, .attrs = attrs.get(), .in = in, .out = out};
    if (call.part) args.unsplit = &call.shapes[0];
    args.table = &table;
    const auto prepared = table.candidates(op).front().prepare(args);
    return run(*prepared, op, attrs, call, inputs, out);
  }

  // Checks that attention by the library is that of its decomposition on the
  // CPU, in float32; returns its results.
  Arrays check_attention(const Call& call, const Arrays& inputs) {
    const OpDef& op = op_named(call.op);
    Tensors in;
    for (size_t i = 0; i < inputs.size(); ++i) {
      in.push_back(constant(inputs[i], call.shapes[i]));
    }
    const AttrsRef attrs{std::vector<Attrs::Pair>(call.attrs)};
    const Tensors want = call_list(op, in, attrs.get());
    const Arrays got = results_of(call, inputs, true);
    EXPECT_EQ(got.size(), want.size());
    for (size_t o = 0; o < got.size(); ++o) {
      const Numbers w = want[o].to_vector<float>();
      for (size_t i = 0; i < w.size(); ++i) {
        // Results have 8 bits, and the gradient sums over given ones.
        EXPECT_NEAR(got[o][i], w[i], 2e-2 + 4e-3 * std::abs(w[i]))
            << call.op << " output " << o << " at " << i;
      }
    }
    return got;
  }

  // Checks that the results with and without the library agree.
  void check(const Call& call) {
    SCOPED_TRACE(call.op);
    Arrays inputs;
    for (size_t i = 0; i < call.shapes.size(); ++i) {
      inputs.push_back(numbers(call.shapes[i], static_cast<uint32_t>(i) + 1));
      if (call.op.starts_with("FusedBatchNorm") && i == 4) {
        for (float& x : inputs[i]) x = x * x + 0.5f;  // a variance
      }
    }
    const Arrays want = results_of(call, inputs, false);
    const int asked = card_->asked, ran = card_->ran;
    const Arrays got = results_of(call, inputs, true);
    EXPECT_EQ(card_->asked, asked + !call.part);
    EXPECT_EQ(card_->ran, ran + (!call.part && call.shift == 0));
    for (size_t o = 0; o < want.size(); ++o) {
      for (size_t i = 0; i < want[o].size(); ++i) {
        ASSERT_NEAR(got[o][i], want[o][i], 2e-5 + 1e-4 * std::abs(want[o][i]))
            << "output " << o << " at " << i;
      }
    }
  }

 private:
  BlockRef block_of(size_t bytes) {
    return BlockRef::adopt(device_->allocator().allocate(bytes));
  }

  Arrays run(const Prepared& prepared, const OpDef& op, const AttrsRef& attrs,
             const Call& call, const Arrays& inputs,
             const std::vector<OutSpec>& out) {
    std::vector<BlockRef> blocks;
    std::vector<View> in_views, out_views;
    const auto add = [&](std::vector<View>& views, const Shape& shape,
                         DType dtype) {
      const auto n = static_cast<size_t>(shape.num_elements());
      blocks.push_back(block_of(n * size_of(dtype) + 64));
      View v{};
      v.data = static_cast<std::byte*>(blocks.back()->data) + call.shift;
      v.dtype = dtype;
      v.shape = &shape;
      views.push_back(v);
    };
    for (size_t i = 0; i < call.shapes.size(); ++i) {
      const bool narrow = is_narrow(call, i);
      add(in_views, call.shapes[i], narrow ? bfloat16 : float32);
      const auto bytes = bytes_of(inputs[i], narrow);
      device_->copy_from_host(in_views[i].data, bytes.data(), bytes.size());
    }
    for (const OutSpec& o : out) add(out_views, o.shape, o.dtype);
    const BlockRef scratch = block_of(prepared.scratch_bytes() + 64);
    KernelContext context;
    Stream& stream = device_->compute_stream();
    context.stream = &stream;
    context.scratch = scratch->data;
    KernelCall kernel_call{.op = &op,
                           .attrs = attrs.get(),
                           .in = in_views.data(),
                           .out = out_views.data(),
                           .num_in = static_cast<int>(in_views.size()),
                           .num_out = static_cast<int>(out_views.size()),
                           .context = &context};
    struct Job {
      const Prepared& prepared;
      const KernelCall& call;
    } job{prepared, kernel_call};
    Work work;
    work.what = "Test";
    work.context = &job;
    work.run = [](void* c, Stream&) {
      const Job& j = *static_cast<Job*>(c);
      j.prepared.run(j.call);
    };
    work.drop = [](void*) {};
    stream.launch(work);
    stream.synchronize(stream.record());
    Arrays results;
    for (size_t i = 0; i < out.size(); ++i) {
      std::vector<unsigned char> bytes(
          static_cast<size_t>(out[i].shape.num_elements()) *
          size_of(out[i].dtype));
      device_->copy_to_host(bytes.data(), out_views[i].data, bytes.size());
      results.push_back(numbers_of(bytes, out[i].dtype == bfloat16));
    }
    return results;
  }

  LibraryCard* card_ = nullptr;
  std::unique_ptr<gpu::GpuDevice> device_;
};

struct Conv {
  Shape x, filter, y;
  std::string padding;
  Ints strides = {1, 1, 1, 1}, dilations = {1, 1, 1, 1};
  int64_t groups = 1;
  Ints pads = {};
};

const Conv kConvs[] = {
    {{2, 5, 4, 3}, {3, 3, 3, 5}, {2, 5, 4, 5}, "SAME"},
    {{2, 6, 9, 3}, {3, 2, 3, 5}, {2, 3, 5, 5}, "SAME", {1, 2, 2, 1}},
    {{2, 7, 9, 4}, {3, 3, 4, 6}, {2, 2, 4, 6}, "VALID", {1, 3, 2, 1}},
    {{1, 9, 8, 4},
     {3, 2, 4, 6},
     {1, 9, 8, 6},
     "SAME",
     {1, 1, 1, 1},
     {1, 2, 3, 1}},
    {{2, 4, 5, 6},
     {3, 3, 2, 9},
     {2, 4, 5, 9},
     "SAME",
     {1, 1, 1, 1},
     {1, 1, 1, 1},
     3},
    {{2, 4, 5, 6}, {1, 1, 6, 7}, {2, 2, 3, 7}, "SAME", {1, 2, 2, 1}},
    {{2, 4, 5, 3},
     {2, 3, 3, 4},
     {2, 3, 2, 4},
     "EXPLICIT",
     {1, 2, 2, 1},
     {1, 1, 1, 1},
     1,
     {0, 0, 2, 1, 1, 0, 0, 0}},
};

std::vector<Attrs::Pair> attrs_of(const Conv& v) {
  std::vector<Attrs::Pair> attrs{{"strides", v.strides},
                                 {"dilations", v.dilations},
                                 {"padding", v.padding},
                                 {"groups", v.groups}};
  if (!v.pads.empty()) attrs.push_back({"explicit_paddings", v.pads});
  return attrs;
}

TEST_F(Library, ComputesConvolutions) {
  for (const Conv& v : kConvs) {
    SCOPED_TRACE(fmt::format("{} {}", v.x.str(), v.filter.str()));
    check({"Conv2D", {v.x, v.filter}, attrs_of(v)});
  }
}

TEST_F(Library, ComputesGradientsOfImages) {
  for (const Conv& v : kConvs) {
    SCOPED_TRACE(fmt::format("{} {}", v.x.str(), v.filter.str()));
    auto attrs = attrs_of(v);
    attrs.push_back({"input_sizes", Ints(v.x.begin(), v.x.end())});
    check({"Conv2DBackpropInput", {v.filter, v.y}, attrs});
  }
}

TEST_F(Library, ComputesGradientsOfFilters) {
  for (const Conv& v : kConvs) {
    SCOPED_TRACE(fmt::format("{} {}", v.x.str(), v.filter.str()));
    auto attrs = attrs_of(v);
    attrs.push_back({"filter_sizes", Ints(v.filter.begin(), v.filter.end())});
    check({"Conv2DBackpropFilter", {v.x, v.y}, attrs});
  }
}

TEST_F(Library, ComputesAttentionAndItsGradient) {
  struct Lengths {
    int64_t s, t, d, e;
  };
  for (const bool causal : {false, true}) {
    for (const auto [s, t, d, e] :
         {Lengths{6, 6, 8, 8}, Lengths{5, 9, 16, 8}, Lengths{9, 5, 8, 24}}) {
      SCOPED_TRACE(fmt::format("{} {} {} {} {}", causal, s, t, d, e));
      const Shape q{2, 3, s, d}, k{2, 3, t, d}, v{2, 3, t, e}, y{2, 3, s, e},
          sums{2, 3, s};
      const std::vector<Attrs::Pair> attrs = {{"scale", 0.75},
                                              {"is_causal", causal}};
      Arrays inputs;
      for (const Shape& x : {q, k, v}) {
        const auto seed = static_cast<uint32_t>(inputs.size()) + 1;
        inputs.push_back(numbers_of(bytes_of(numbers(x, seed), true), true));
      }
      const Arrays forward = check_attention(
          {"ScaledDotProductAttention", {q, k, v}, attrs, true}, inputs);
      inputs.insert(inputs.end(), forward.begin(), forward.end());
      inputs.push_back(numbers_of(bytes_of(numbers(y, 7), true), true));
      check_attention(
          {"ScaledDotProductAttentionGrad", {q, k, v, y, sums, y}, attrs, true},
          inputs);
    }
  }
}

const Shape kNorms[] = {{2, 3, 4, 5}, {6, 4}, {40, 33}, {5, 1}};

TEST_F(Library, ComputesBatchNorms) {
  for (const Shape& x : kNorms) {
    SCOPED_TRACE(x.str());
    const Shape c{x[x.rank() - 1]};
    check({"FusedBatchNormV3", {x, c, c, c, c}, {{"epsilon", 0.125}}});
  }
}

TEST_F(Library, ComputesGradientsOfBatchNorms) {
  for (const Shape& x : kNorms) {
    SCOPED_TRACE(x.str());
    const Shape c{x[x.rank() - 1]};
    check({"FusedBatchNormGradV3", {x, x, c, c, c}, {{"epsilon", 0.125}}});
  }
}

// The own kernels take over at run time, in the scratch of the library's.
TEST_F(Library, LeavesOperandsThatAreNotAligned) {
  const Conv& v = kConvs[1];
  const auto images = Ints(v.x.begin(), v.x.end()),
             filters = Ints(v.filter.begin(), v.filter.end());
  auto image_attrs = attrs_of(v), filter_attrs = attrs_of(v);
  image_attrs.push_back({"input_sizes", images});
  filter_attrs.push_back({"filter_sizes", filters});
  check({"Conv2D", {v.x, v.filter}, attrs_of(v), false, 8});
  check({"Conv2DBackpropInput", {v.filter, v.y}, image_attrs, false, 8});
  check({"Conv2DBackpropFilter", {v.x, v.y}, filter_attrs, false, 8});
  const Shape x{6, 4}, c{4};
  check({"FusedBatchNormV3", {x, c, c, c, c}, {{"epsilon", 0.125}}, false, 8});
  check({"FusedBatchNormGradV3",
         {x, x, c, c, c},
         {{"epsilon", 0.125}},
         false,
         8});
}

// Which kernel computes the parts of a batch is known by their shape: an image
// of 60 floats begins at a multiple of 16 bytes, one of 54 does not.
TEST_F(Library, IsNotAskedForPartsThatMayBeginAnywhere) {
  const Conv odd{{2, 6, 3, 3}, {3, 3, 3, 4}, {2, 6, 3, 4}, "SAME"};
  check({"Conv2D", {odd.x, odd.filter}, attrs_of(odd), false, 0, true});
  const int asked = card_asked();
  const Conv even{{2, 5, 4, 3}, {3, 3, 3, 5}, {2, 5, 4, 5}, "SAME"};
  results_of({"Conv2D", {even.x, even.filter}, attrs_of(even), false, 0, true},
             {numbers(even.x, 1), numbers(even.filter, 2)}, true);
  EXPECT_EQ(card_asked(), asked + 1);
}

}  // namespace
}  // namespace berth::opencl
