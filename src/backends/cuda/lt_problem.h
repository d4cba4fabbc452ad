// LtProblem: cuBLASLt's descriptors of a product and its matrices.
//
// cuBLASLt's matrices are column-major, Berth's row-major: the library computes
// b^T a^T = c^T, which moves no data. A bias along c's columns is then the
// library's bias along rows.

#ifndef BERTH_BACKENDS_CUDA_LT_PROBLEM_H_
#define BERTH_BACKENDS_CUDA_LT_PROBLEM_H_

#include <mutex>
#include <string>

#include "backends/cuda/lt_library.h"
#include "backends/gpu/card.h"

namespace berth::cuda {

// Alignment of operands' addresses; the library is not given others.
inline constexpr size_t kLtAlignment = 16;

// Names a product in choices and messages: "float32 [64, 784] x [784, 128]^T,
// bias, relu".
std::string lt_text(const gpu::MatrixProduct& product);

// A call of the library that failed.
struct LtRefusal {
  std::string what;
};

// Returns whether the library has a form of it.
bool lt_takes(const gpu::MatrixProduct& product);

class LtProblem {
 public:
  // Throws LtRefusal.
  LtProblem(const LtLibrary& lt, const gpu::MatrixProduct& product, bool tf32);
  ~LtProblem();
  LtProblem(const LtProblem&) = delete;
  LtProblem& operator=(const LtProblem&) = delete;

  const gpu::MatrixProduct& product() const { return product_; }

  // Addresses of a, b, c; of bias, aux and sums if the product has them; and of
  // `scratch_bytes` of scratch.
  struct Operands {
    const void *a = nullptr, *b = nullptr, *bias = nullptr;
    void *c = nullptr, *aux = nullptr, *sums = nullptr, *scratch = nullptr;
    size_t scratch_bytes = 0;
  };
  // Appends it to a stream whose context is current. Throws LtRefusal.
  void run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algo,
           const Operands& operands, cudaStream_t stream) const;
  // Proposes up to `most` kernels that need at most `scratch_bytes`, the
  // expected fastest first; throws LtRefusal.
  int propose(cublasLtHandle_t handle, size_t scratch_bytes, int most,
              cublasLtMatmulHeuristicResult_t* found) const;
  // Returns whether a kernel chosen earlier is still valid; gives its scratch.
  bool check(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algo,
             size_t* scratch_bytes) const;

 private:
  void make();
  void make_operation();
  cublasLtMatrixLayout_t layout(int64_t rows, int64_t columns,
                                int64_t stride) const;
  void destroy() noexcept;
  template <class T>
  void set(cublasLtMatmulDescAttributes_t what, const T& value) const;

  const LtLibrary& lt_;
  const gpu::MatrixProduct product_;
  const bool tf32_;
  // The operation holds the epilogue's addresses.
  mutable std::mutex mutex_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  // Layouts of the library's first and second factor, and of the result.
  cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr, result_ = nullptr;
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_LT_PROBLEM_H_
