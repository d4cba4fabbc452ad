// CudaCard: an NVIDIA GPU as a Card.
//
// It retains its primary context when it is first needed and makes it current
// on the calling thread. Once the driver has reported an error from which a
// context does not recover, every call throws errors::Unavailable until the
// process ends; other cards keep working.

#ifndef BERTH_BACKENDS_CUDA_CUDA_CARD_H_
#define BERTH_BACKENDS_CUDA_CUDA_CARD_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/cudnn_kernels.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/nvrtc.h"
#include "backends/gpu/card.h"

namespace berth::cuda {

class LtProducts;

class CudaCard final : public gpu::Card {
 public:
  // Creates nothing yet. Throws errors::Unavailable for a GPU that `nvrtc` does
  // not compile for.
  CudaCard(const Driver& driver, const Nvrtc& nvrtc, int number);
  ~CudaCard() override;

  std::unique_ptr<gpu::Kernel> product(const gpu::MatrixProduct& product,
                                       size_t* scratch_bytes) override;

  std::unique_ptr<gpu::Queue> make_queue() override;
  std::unique_ptr<MemorySource> memory_source() override;
  std::unique_ptr<MemorySource> pinned_source() override;
  bool reaches(const gpu::Card& other) const override;
  // Returns a kernel by cuDNN.
  gpu::LibraryKernel library_kernel(const gpu::LibraryOp& op) override {
    return cudnn_.kernel(*this, op);
  }
  // Adds sums between cards, where NCCL is available (nccl_kernels.h).
  void add_kernels(KernelTable& table) override;

  CudnnKernels& cudnn() { return cudnn_; }
  const Driver& driver() const { return driver_; }
  // The architecture that programs are compiled for: 90 for sm_90.
  int architecture() const { return architecture_; }
  // Retains and returns the context. Throws when the driver refuses.
  CUcontext context();
  // Makes the context current on a thread that calls for cards alone. Returns
  // whether another one was, in *before. Throws errors::Unavailable when the
  // card is lost.
  bool enter(CUcontext* before = nullptr);
  // Makes the context current while it lives, then the one before, which may be
  // another library's. Throws as enter().
  class Current {
   public:
    explicit Current(CudaCard& card)
        : card_(card), changed_(card.enter(&before_)) {}
    ~Current() {
      if (changed_) card_.leave(before_);
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    CudaCard& card_;
    CUcontext before_ = nullptr;
    const bool changed_;
  };
  void* begin_calls() noexcept override;
  void end_calls(void* before) noexcept override;
  size_t usable_bytes() const override;
  size_t free_bytes() override;

  // Calls the driver with the context current; throws its error.
  template <class F, class... A>
  void call(const DriverCall<F>& f, A... args) {
    check(result(f, args...), f.name);
  }
  // For calls whose errors are not failures: returns them.
  template <class F, class... A>
  CUresult result(const DriverCall<F>& f, A... args) {
    const Current here(*this);
    return f.function(args...);
  }
  // For destructors: leaves an error to the next call.
  template <class F, class... A>
  void attempt(const DriverCall<F>& f, A... args) noexcept {
    const char* call = driver_.cuCtxSetCurrent.name;
    CUcontext before = nullptr;
    driver_.cuCtxGetCurrent.function(&before);
    CUresult error = driver_.cuCtxSetCurrent.function(context_.load());
    if (error == CUDA_SUCCESS) {
      call = f.name;
      error = f.function(args...);
    }
    if (is_lasting(error)) lose(error, call);
    leave(before);
  }
  void check(CUresult error, const char* call) {
    if (error != CUDA_SUCCESS) fail(error, call);
  }

  // Lets this card's copies from and to `other` bypass host memory, where the
  // machine can do that.
  void meet(CudaCard& other);

 protected:
  std::unique_ptr<gpu::Module> compile(const std::string& text) override;
  std::vector<std::shared_ptr<gpu::Module>> compile_together(
      const std::string& beginning,
      const std::vector<std::string>& parts) override;

 private:
  // Makes another context current again.
  void leave(CUcontext before) noexcept {
    const CUresult error = driver_.cuCtxSetCurrent.function(before);
    if (is_lasting(error)) lose(error, driver_.cuCtxSetCurrent.name);
  }
  // Memory left to the driver and to other processes.
  size_t margin() const;
  [[noreturn]] void fail(CUresult error, const char* call);
  // Closes the card unless it is closed already; returns why.
  const std::string& lose(CUresult error, const char* call);

  const Driver& driver_;
  const Nvrtc& nvrtc_;
  CUdevice device_ = 0;
  int architecture_ = 0;
  std::mutex mutex_;
  std::atomic<CUcontext> context_{nullptr};
  std::mutex lost_mutex_;
  std::string lost_text_;                          // the reason; written once
  std::atomic<const std::string*> lost_{nullptr};  // points to it once lost
  std::set<const CudaCard*> met_;
  const std::unique_ptr<LtProducts> products_;
  CudnnKernels cudnn_;
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_CUDA_CARD_H_
