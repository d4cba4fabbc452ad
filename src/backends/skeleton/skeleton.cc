// The smallest backend: one device with memory and streams of its own, as a
// plug-in. Copy this folder.

#include <berth/backend.h>

#include <cstring>

namespace berth {

namespace {

// 1. Memory that the host cannot address: tensors carry addresses that no
// machine has. Hardware has its own memory; here it is the host's, shifted.
constexpr uintptr_t kShift = uintptr_t{1} << 62;

std::byte* shifted(const void* data) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(data) |
                                      kShift);
}

template <class T>
T* real(T* data) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(data) & ~kShift);
}

class SkeletonMemory final : public MemorySource {
 public:
  std::byte* reserve(size_t bytes) override {
    std::byte* data = host_->reserve(bytes);
    return data == nullptr ? nullptr : shifted(data);
  }
  void release(std::byte* data, size_t bytes) override {
    host_->release(real(data), bytes);
  }
  bool host_addressable() const override { return false; }

 private:
  std::unique_ptr<MemorySource> host_ = host_memory_source();
};

// 2. Kernels. One of our own: every shape, one dtype, no state. The rest is the
// reference backend's, which computes on host memory at the real addresses.
void negate(const KernelCall& call) {
  const float* x = real(call.in[0].as<float>());
  float* y = real(call.out[0].as<float>());
  for (int64_t i = 0; i < call.out[0].size(); ++i) y[i] = -x[i];
}

void run_at_real_addresses(const KernelCall& call, const BoundKernel& kernel) {
  thread_local std::vector<View> views;
  views.assign(call.in, call.in + call.num_in);
  views.insert(views.end(), call.out, call.out + call.num_out);
  for (View& v : views) v.data = real(v.data);
  KernelContext context = *call.context;
  context.scratch = real(context.scratch);
  context.step_counter = real(context.step_counter);
  KernelCall here = call;
  here.in = views.data();
  here.out = views.data() + call.num_in;
  here.context = &context;
  kernel.run(here);
}

// 3. A device: memory, streams, copies. Its streams are threads; hardware has
// queues, which kernels find as call.context->stream->native().
class SkeletonDevice final : public Device {
 public:
  explicit SkeletonDevice(const KernelTable* kernels)
      : Device(DeviceName{"localhost", 0, 0, "SKELETON", 0},
               "threads that stand in for hardware", kernels,
               {.of_host = false}),
        allocator_(this, std::make_unique<SkeletonMemory>(), 0),
        compute_(this, {.spin_us = 0, .wait_spin_us = 0}),
        copy_(this, {.spin_us = 0, .wait_spin_us = 0}) {}

  Allocator& allocator() override { return allocator_; }
  Stream& compute_stream() override { return compute_; }
  Stream& copy_stream() override { return copy_; }
  void fill_async(Stream&, void* target, int value, size_t bytes) override {
    std::memset(real(static_cast<std::byte*>(target)), value, bytes);
  }
  // The caller has waited for the bytes. A copy by a stream could make a
  // simulated device, whose work runs on that stream's thread, wait for itself.
  void copy_to_host(void* target, const void* source, size_t bytes) override {
    std::memcpy(target, real(static_cast<const std::byte*>(source)), bytes);
  }
  void reset_error() override {
    compute_.reset_error();
    copy_.reset_error();
  }

 protected:
  // One end is here, the other here or on the host.
  void transfer_async(Stream&, const Copy& copy) override {
    std::memcpy(real(static_cast<std::byte*>(copy.target)),
                real(static_cast<const std::byte*>(copy.source)), copy.bytes);
  }

 private:
  Allocator allocator_;
  ThreadStream compute_, copy_;
};

// 4. A backend: its availability, its kernels, its devices.
class SkeletonBackend final : public Backend {
 public:
  explicit SkeletonBackend(const KernelTable* reference)
      : reference_(reference) {}
  const char* name() const override { return "skeleton"; }

  std::vector<FoundDevice> find_devices(const RuntimeConfig&) override {
    return std::vector<FoundDevice>(asked() ? 1 : 0, {"SKELETON"});
  }

  std::vector<std::unique_ptr<Device>> create_devices(
      const RuntimeConfig& config, const std::vector<GpuPart>&) override {
    std::vector<std::unique_ptr<Device>> devices;
    if (!asked()) return devices;
    KernelTable users;
    config.add_user_kernels("SKELETON", users);
    table_.append(users, &run_at_real_addresses);
    table_.direct("Neg", dtype_bit(float32), &negate, "skeleton");
    table_.append(*reference_, &run_at_real_addresses);
    devices.push_back(std::make_unique<SkeletonDevice>(&table_));
    return devices;
  }

 private:
  static bool asked() { return environment_switch("BERTH_SKELETON", false); }

  const KernelTable* reference_;
  KernelTable table_;
};

void register_skeleton(BackendRegistry& registry) {
  registry.add(
      std::make_unique<SkeletonBackend>(registry.kernels("reference")));
}

}  // namespace

}  // namespace berth

// 5. The one symbol that the engine looks for.
BERTH_PLUGIN("skeleton", berth::register_skeleton);
