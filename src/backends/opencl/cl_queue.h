// ClQueue: an in-order command queue.

#ifndef BERTH_BACKENDS_OPENCL_CL_QUEUE_H_
#define BERTH_BACKENDS_OPENCL_CL_QUEUE_H_

#include "backends/gpu/call_list.h"
#include "backends/gpu/card.h"
#include "backends/opencl/cl_card.h"
#include "backends/opencl/cl_kernel_order.h"

namespace berth::opencl {

class ClQueue final : public gpu::Queue {
 public:
  explicit ClQueue(const ClCard& card);
  ~ClQueue() override;

  void copy(const Copy& copy) override;
  void fill(void* target, int value, size_t bytes) override;
  gpu::Mark mark() override;
  void release(gpu::Mark mark) noexcept override;
  bool passed(gpu::Mark mark) override;
  void await(gpu::Mark mark) override;
  void follow(gpu::Mark mark) override;
  double passed_us(gpu::Mark mark) override;
  void flush() override;

  // With BERTH_OPENCL_RECORD=1, as lists of calls, for tests.
  bool can_record() const override;
  void begin_recording() override;
  std::unique_ptr<gpu::Recording> end_recording(
      std::unique_ptr<gpu::Recording> old) override;
  void drop_recording() noexcept override { list_.reset(); }
  // Returns true if the launch was recorded and must not be made now.
  bool records(gpu::Kernel& kernel, const gpu::Grid& grid,
               const gpu::KernelArg* args, int num_args) {
    if (list_) list_->add_launch(kernel, grid, args, num_args);
    return list_ != nullptr;
  }

  const ClCard& card() const { return card_; }
  // `order` is that of the kernel, or null.
  void launch(cl_kernel kernel, const gpu::Grid& grid, KernelOrder* order);
  // Returns the driver's queue, for a library that appends commands.
  cl_command_queue appending() {
    ++appended_;
    return queue_;
  }

 private:
  void measure_clock();

  const ClCard& card_;
  cl_command_queue queue_ = nullptr;
  double clock_offset_us_ = 0;
  bool clock_known_ = false;
  std::unique_ptr<gpu::CallList> list_;  // being recorded
};

}  // namespace berth::opencl

#endif  // BERTH_BACKENDS_OPENCL_CL_QUEUE_H_
