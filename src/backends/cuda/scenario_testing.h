// Uses a little of everything that the plug-in asks of the driver. Tests only.

#ifndef BERTH_BACKENDS_CUDA_SCENARIO_TESTING_H_
#define BERTH_BACKENDS_CUDA_SCENARIO_TESTING_H_

#include <memory>
#include <vector>

#include "backends/cuda/cuda_card.h"
#include "backends/cuda/cuda_testing.h"
#include "backends/gpu/gpu_device.h"
#include "device/block.h"

namespace berth::cuda {

// Devices on two cards of their own, outside the DeviceManager.
class CardPair {
 public:
  explicit CardPair(size_t limit_bytes = size_t{64} << 20);

  gpu::GpuDevice& device(int i) { return *devices_[static_cast<size_t>(i)]; }
  CudaCard& card(int i) { return *cards_[static_cast<size_t>(i)]; }

 private:
  std::vector<std::unique_ptr<CudaCard>> cards_;
  std::vector<std::unique_ptr<gpu::GpuDevice>> devices_;
};

// Runs `fn(stream)` as work of `stream`, without waiting for it.
template <class Fn>
void launch_on(Stream& stream, Fn fn, WorkTime* time = nullptr) {
  Work work;
  work.what = "Test";
  work.context = new Fn(std::move(fn));
  work.run = [](void* c, Stream& s) { (*static_cast<Fn*>(c))(s); };
  work.drop = [](void* c) { delete static_cast<Fn*>(c); };
  work.time = time;
  stream.launch(work);
}

// A kernel that is not in the dialect's files.
gpu::KernelSource small_source();

// Copies to a card, fills, launches, copies to the other card and back to the
// host; throws any error. Returns the bytes that came back: 16 of 7, then 16 of
// 3 if all went well.
std::vector<unsigned char> run_scenario();

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_SCENARIO_TESTING_H_
