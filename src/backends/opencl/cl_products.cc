#include "backends/opencl/cl_products.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>

#include "backends/opencl/cl_queue.h"
#include "base/environment.h"
#include "berth/errors.h"

namespace berth::opencl {

namespace {

// Values of clblast_c.h.
constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112;
template <class T>
using Gemm = int (*)(int layout, int transpose_a, int transpose_b, size_t m,
                     size_t n, size_t k, T alpha, cl_mem a, size_t a_offset,
                     size_t lda, cl_mem b, size_t b_offset, size_t ldb, T beta,
                     cl_mem c, size_t c_offset, size_t ldc,
                     cl_command_queue* queue, cl_event* event);
template <class T>
using BatchedGemm = int (*)(int layout, int transpose_a, int transpose_b,
                            size_t m, size_t n, size_t k, T alpha, cl_mem a,
                            size_t a_offset, size_t lda, size_t a_stride,
                            cl_mem b, size_t b_offset, size_t ldb,
                            size_t b_stride, T beta, cl_mem c, size_t c_offset,
                            size_t ldc, size_t c_stride, size_t batches,
                            cl_command_queue* queue, cl_event* event);

void* symbol(const std::string& name) {
  static void* const library = dlopen("libclblast.so.1", RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : dlsym(library, name.c_str());
}

// The two functions of one dtype; `letter` is that of BLAS names.
template <class T>
struct Functions {
  Gemm<T> gemm = nullptr;
  BatchedGemm<T> batched = nullptr;

  explicit Functions(char letter)
      : gemm(reinterpret_cast<Gemm<T>>(
            symbol(fmt::format("CLBlast{}gemm", letter)))),
        batched(reinterpret_cast<BatchedGemm<T>>(
            symbol(fmt::format("CLBlast{}gemmStridedBatched", letter)))) {}
  explicit operator bool() const { return gemm && batched; }
};

template <class T>
class ClblastProduct final : public gpu::Kernel {
 public:
  ClblastProduct(const gpu::MatrixProduct& p, const Functions<T>& functions,
                 T zero, T one)
      : p_(p), functions_(functions), zero_(zero), one_(one) {}

  void launch(gpu::Queue& queue, const gpu::Grid& grid,
              const gpu::KernelArg* args, int num_args) override {
    auto& q = static_cast<ClQueue&>(queue);
    if (q.records(*this, grid, args, num_args)) return;
    Place places[3];
    for (int i = 0; i < 3; ++i) {
      places[i] = q.card().place_of(*static_cast<void* const*>(args[i].value));
      places[i].offset /= sizeof(T);
    }
    const auto& [a, b, c] = places;
    const auto m = static_cast<size_t>(p_.m), n = static_cast<size_t>(p_.n);
    const auto k = static_cast<size_t>(p_.k);
    const size_t lda = p_.transpose_a ? m : k, ldb = p_.transpose_b ? k : n;
    const int ta = p_.transpose_a ? kTransposed : kPlain;
    const int tb = p_.transpose_b ? kTransposed : kPlain;
    cl_command_queue handle = q.appending();
    const int status =
        p_.batches == 1
            ? functions_.gemm(kRowMajor, ta, tb, m, n, k, one_, a.buffer,
                              a.offset, lda, b.buffer, b.offset, ldb, zero_,
                              c.buffer, c.offset, n, &handle, nullptr)
            : functions_.batched(
                  kRowMajor, ta, tb, m, n, k, one_, a.buffer, a.offset, lda,
                  static_cast<size_t>(p_.stride_a), b.buffer, b.offset, ldb,
                  static_cast<size_t>(p_.stride_b), zero_, c.buffer, c.offset,
                  n, static_cast<size_t>(p_.stride_c),
                  static_cast<size_t>(p_.batches), &handle, nullptr);
    if (status != 0) {
      throw errors::Internal(
          fmt::format("CLBlast's product of [{}, {}] and [{}, {}] fails with "
                      "status {}; BERTH_OPENCL_PRODUCTS=own does without it",
                      m, k, k, n, status));
    }
  }

 private:
  const gpu::MatrixProduct p_;
  const Functions<T> functions_;
  const T zero_, one_;
};

template <class T>
std::unique_ptr<gpu::Kernel> make(const gpu::MatrixProduct& p, char letter,
                                  T one) {
  const Functions<T> functions(letter);
  if (!functions) return nullptr;
  return std::make_unique<ClblastProduct<T>>(p, functions, T{}, one);
}

}  // namespace

Products asked_products() {
  const std::string asked =
      environment_choice("BERTH_OPENCL_PRODUCTS", {"auto", "own", "clblast"});
  return asked == "own"       ? Products::kOwn
         : asked == "clblast" ? Products::kClblast
                              : Products::kAuto;
}

bool has_clblast() { return symbol("CLBlastSgemm") != nullptr; }

std::unique_ptr<gpu::Kernel> clblast_product(const gpu::MatrixProduct& p,
                                             bool has_f16) {
  if (!p.is_plain()) return nullptr;
  constexpr cl_half kHalfOne = 0x3c00;
  switch (p.dtype) {
    case float32:
      return make<cl_float>(p, 'S', 1);
    case float64:
      return make<cl_double>(p, 'D', 1);
    case complex64:
      return make<cl_float2>(p, 'C', {{1, 0}});
    case complex128:
      return make<cl_double2>(p, 'Z', {{1, 0}});
    case float16:
      return has_f16 ? make<cl_half>(p, 'H', kHalfOne) : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace berth::opencl
