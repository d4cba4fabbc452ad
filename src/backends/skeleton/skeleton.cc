// The smallest backend: one device that computes one op. Copy this folder.

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "device/backend_registry.h"
#include "device/inline_stream.h"
#include "op/kernel.h"

namespace berth {

namespace {

// 1. A kernel: every shape, one dtype, no state of its own.
void negate(const KernelCall& call) {
  const float* x = call.in[0].as<float>();
  float* y = call.out[0].as<float>();
  for (int64_t i = 0; i < call.out[0].size(); ++i) y[i] = -x[i];
}

// 2. A device: memory, streams, copies. Inline means: kernels run on the
// calling thread and the host may touch the memory. backends/sim shows one
// that is neither.
class SkeletonDevice final : public Device {
 public:
  explicit SkeletonDevice(const KernelTable* kernels)
      : Device(DeviceName{"localhost", 0, 0, "SKELETON", 0},
               "computes Neg and nothing else", kernels),
        allocator_(this, host_memory_source(), 0),
        stream_(this) {}

  bool runs_inline() const override { return true; }
  Allocator& allocator() override { return allocator_; }
  Stream& compute_stream() override { return stream_; }
  Stream& copy_stream() override { return stream_; }
  void copy_to_host(void* target, const void* source, size_t bytes) override {
    std::memcpy(target, source, bytes);
  }
  void copy_from_host(void* target, const void* source, size_t bytes) override {
    std::memcpy(target, source, bytes);
  }

 private:
  Allocator allocator_;
  InlineStream stream_;
};

// 3. A backend: which kernels there are and which devices exist.
class SkeletonBackend final : public Backend {
 public:
  const char* name() const override { return "skeleton"; }

  std::vector<std::unique_ptr<Device>> create_devices(
      const RuntimeConfig&) override {
    std::vector<std::unique_ptr<Device>> devices;
    const char* asked = std::getenv("BERTH_SKELETON");
    if (asked == nullptr || std::string_view(asked) != "1") return devices;
    table_.direct("Neg", dtype_bit(float32), &negate, "skeleton");
    devices.push_back(std::make_unique<SkeletonDevice>(&table_));
    return devices;
  }

 private:
  KernelTable table_;
};

}  // namespace

// 4. The one symbol that the engine looks for.
void register_skeleton(BackendRegistry& registry) {
  registry.add(std::make_unique<SkeletonBackend>());
}

}  // namespace berth
