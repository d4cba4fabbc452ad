// CudnnKernels: convolutions and batch norms of a card by cuDNN.
//
// Plans are made for given shapes when a recipe asks, kept on disk in
// $BERTH_CACHE_DIR/cudnn by what they depend on, and give the same bits each
// time. Whatever goes wrong before a plan runs leaves the op to the kernels of
// backends/gpu. BERTH_CUDNN=off: none; BERTH_TF32=1: inputs of float32 may be
// rounded to TF32. Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_CUDNN_KERNELS_H_
#define BERTH_BACKENDS_CUDA_CUDNN_KERNELS_H_

#include <memory>
#include <mutex>
#include <string>

#include "backends/cudnn/cudnn_api.h"
#include "backends/gpu/library_op.h"

namespace berth::cuda {

class CudaCard;
class CudnnCard;

// The graph of an op for cuDNN; `what` is -1 for a dtype that it lacks.
BerthCudnnGraph cudnn_graph(const gpu::LibraryOp& op, bool tf32);

class CudnnKernels {
 public:
  CudnnKernels();
  ~CudnnKernels();

  // None when cuDNN is absent or refuses; why() then says why.
  gpu::LibraryKernel kernel(CudaCard& card, const gpu::LibraryOp& op);
  // Of the last op that it has not taken; "" when there was none.
  std::string why() const;

  // Uses this library from now on; for tests, before any other call.
  void use(const BerthCudnnApi* api);

 private:
  std::shared_ptr<CudnnCard> card_of(CudaCard& card);

  mutable std::mutex mutex_;  // all below
  const BerthCudnnApi* api_ = nullptr;
  bool looked_ = false;
  std::string why_;
  std::shared_ptr<CudnnCard> card_;
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_CUDNN_KERNELS_H_
