// CudnnKernels: convolutions, batch norms and attention of a card by cuDNN.
//
// Plans are made for given shapes when a recipe needs them, kept on disk in
// $BERTH_CACHE_DIR/cudnn by all that they depend on, and give the same bits
// each time. If anything fails before a plan runs, the kernels of backends/gpu
// take the op, or those of its decomposition. BERTH_CUDNN=off disables them;
// with BERTH_TF32=1 inputs of float32 may be rounded to TF32. Thread-safe.

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

// Returns the graph of an op for cuDNN; `what` is -1 for a dtype that it lacks.
BerthCudnnGraph cudnn_graph(const gpu::LibraryOp& op, bool tf32);

class CudnnKernels {
 public:
  CudnnKernels();
  ~CudnnKernels();

  // Returns no kernel when cuDNN is absent or refuses; why() gives the reason.
  gpu::LibraryKernel kernel(CudaCard& card, const gpu::LibraryOp& op);
  // Why the last op was refused; "" when none was.
  std::string why() const;
  // Why attention is left to other kernels; "" when cuDNN computes it, which a
  // small one shows, once, or when libberth_cudnn.so is not there.
  std::string why_no_attention(CudaCard& card);

  // Uses this library from now on; for tests, before any other call.
  void use(const BerthCudnnApi* api);

 private:
  std::shared_ptr<CudnnCard> card_of(CudaCard& card);

  mutable std::mutex mutex_;  // guards all below
  const BerthCudnnApi* api_ = nullptr;
  bool looked_ = false, is_built_ = true;
  std::string why_;
  std::shared_ptr<CudnnCard> card_;
  std::mutex attention_mutex_;  // guards what follows
  bool tried_attention_ = false;
  std::string no_attention_;
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_CUDNN_KERNELS_H_
