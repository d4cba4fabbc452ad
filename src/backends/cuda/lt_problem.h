// LtProblem: a product in cuBLASLt's words: descriptors of the operation and
// of its matrices.
//
// cuBLASLt's matrices have their columns one after the other, Berth's their
// rows: it is given b^T a^T = c^T, in which nothing moves. A bias along c's
// columns is then the library's along rows.

#ifndef BERTH_BACKENDS_CUDA_LT_PROBLEM_H_
#define BERTH_BACKENDS_CUDA_LT_PROBLEM_H_

#include <mutex>
#include <string>

#include "backends/cuda/lt_library.h"
#include "backends/gpu/card.h"

namespace berth::cuda {

// What addresses of operands are multiples of; others are not given to the
// library.
inline constexpr size_t kLtAlignment = 16;

// What a product is called when one was chosen for it, and in messages:
// "float32 [64, 784] x [784, 128]^T, bias, relu".
std::string lt_text(const gpu::MatrixProduct& product);

// A call of the library that failed.
struct LtRefusal {
  std::string what;
};

// The library has a form of it.
bool lt_takes(const gpu::MatrixProduct& product);

class LtProblem {
 public:
  // Throws LtRefusal.
  LtProblem(const LtLibrary& lt, const gpu::MatrixProduct& product, bool tf32);
  ~LtProblem();
  LtProblem(const LtProblem&) = delete;
  LtProblem& operator=(const LtProblem&) = delete;

  const gpu::MatrixProduct& product() const { return product_; }

  // Addresses of a, b, c, of bias, aux and sums if the product has them, and
  // of `scratch_bytes` of scratch.
  struct Operands {
    const void *a = nullptr, *b = nullptr, *bias = nullptr;
    void *c = nullptr, *aux = nullptr, *sums = nullptr, *scratch = nullptr;
    size_t scratch_bytes = 0;
  };
  // Appends it to a stream whose context is current. Throws LtRefusal.
  void run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algo,
           const Operands& operands, cudaStream_t stream) const;
  // Up to `most` kernels for it, those expected to be faster first, which
  // take at most `scratch_bytes`; throws LtRefusal.
  int propose(cublasLtHandle_t handle, size_t scratch_bytes, int most,
              cublasLtMatmulHeuristicResult_t* found) const;
  // Whether a kernel that was chosen before still is one; gives its scratch.
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
  // Addresses of what is behind the product are part of the operation.
  mutable std::mutex mutex_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  // Of the library's first and second factor, and of the result.
  cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr, result_ = nullptr;
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_LT_PROBLEM_H_
