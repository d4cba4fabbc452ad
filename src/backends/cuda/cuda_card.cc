#include "backends/cuda/cuda_card.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>

#include "backends/cuda/cuda_memory.h"
#include "backends/cuda/cuda_queue.h"
#include "backends/cuda/lt_products.h"
#include "backends/cuda/nccl_kernels.h"
#include "berth/errors.h"

namespace berth::cuda {

namespace {

constexpr size_t kMostParameters = 64;
constexpr uint32_t kMostGroupsAcross = 65535;  // along the other axes

// Returns the host's memory that is not in use.
size_t available_host_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  size_t kib = 0;
  while (file >> name >> kib) {
    if (name == "MemAvailable:") return kib << 10;
    std::getline(file, name);
  }
  return size_t{1} << 32;
}

// Throws errors::Unavailable for a card of which others leave no more than
// `margin`, as far as NVML, which needs no context, can tell.
void check_is_not_full(const char* bus, const std::string& name,
                       size_t margin) {
  unsigned long long memory[3] = {};  // total, free, used
  void* device = nullptr;
  void* nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (nvml == nullptr) return;
  const auto of = [nvml](const char* call) { return dlsym(nvml, call); };
  const auto init = reinterpret_cast<int (*)()>(of("nvmlInit_v2"));
  const auto find = reinterpret_cast<int (*)(const char*, void**)>(
      of("nvmlDeviceGetHandleByPciBusId_v2"));
  const auto ask =
      reinterpret_cast<int (*)(void*, void*)>(of("nvmlDeviceGetMemoryInfo"));
  if (!init || !find || !ask || init() != 0 || find(bus, &device) != 0 ||
      ask(device, memory) != 0 || memory[1] > margin) {
    return;
  }
  throw errors::Unavailable(fmt::format(
      "{} is full: other processes leave {} MiB (nvidia-smi shows which); more "
      "than {} are needed",
      name, memory[1] >> 20, margin >> 20));
}

class CudaKernel final : public gpu::Kernel {
 public:
  CudaKernel(CudaCard& card, CUfunction function, const char* name)
      : card_(card), function_(function), name_(name) {}

  void launch(gpu::Queue& queue, const gpu::Grid& grid,
              const gpu::KernelArg* args, int num_args) override {
    if (grid.groups[1] > kMostGroupsAcross ||
        grid.groups[2] > kMostGroupsAcross) {
      throw errors::Internal(fmt::format(
          "GPU kernel {}: {} x {} x {} groups; expected at most {} along the "
          "second and the third axis",
          name_, grid.groups[0], grid.groups[1], grid.groups[2],
          kMostGroupsAcross));
    }
    // The driver expects a pointer to each parameter, even to an address.
    std::array<void*, kMostParameters> values;
    for (int i = 0; i < num_args; ++i) {
      values[static_cast<size_t>(i)] = const_cast<void*>(args[i].value);
    }
    auto& q = static_cast<CudaQueue&>(queue);
    card_.call(card_.driver().cuLaunchKernel, function_, grid.groups[0],
               grid.groups[1], grid.groups[2], grid.items, 1u, 1u, 0u,
               q.appending(), values.data(), static_cast<void**>(nullptr));
  }

 private:
  CudaCard& card_;
  const CUfunction function_;
  const std::string name_;
};

class CudaModule final : public gpu::Module {
 public:
  CudaModule(CudaCard& card, const std::string& cubin) : card_(card) {
    card.call(card.driver().cuModuleLoadData, &module_,
              static_cast<const void*>(cubin.data()));
  }
  ~CudaModule() override {
    card_.attempt(card_.driver().cuModuleUnload, module_);
  }
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;

  std::unique_ptr<gpu::Kernel> kernel(const char* name) override {
    CUfunction function = nullptr;
    const CUresult error = card_.result(card_.driver().cuModuleGetFunction,
                                        &function, module_, name);
    if (error == CUDA_ERROR_NOT_FOUND) {
      throw errors::Internal(fmt::format("GPU kernel {}: {}", name,
                                         error_name(card_.driver(), error)));
    }
    card_.check(error, "cuModuleGetFunction");
    // At its first launch it might be too late: a capture allows no loading.
    card_.call(card_.driver().cuFuncLoad, function);
    return std::make_unique<CudaKernel>(card_, function, name);
  }

 private:
  CudaCard& card_;
  CUmodule module_ = nullptr;
};

}  // namespace

CudaCard::CudaCard(const Driver& driver, const Nvrtc& nvrtc, int number)
    : driver_(driver),
      nvrtc_(nvrtc),
      products_(std::make_unique<LtProducts>(*this)) {
  cuda::call(driver, driver.cuDeviceGet, &device_, number);
  char name[256] = {};
  cuda::call(driver, driver.cuDeviceGetName, name, int{sizeof(name) - 1},
             device_);
  features_.name = name;
  features_.peers = 1000;  // the driver copies between all of its cards
  features_.addresses = true;
  features_.attention = true;
  cuda::call(driver, driver.cuDeviceTotalMem, &features_.memory_bytes, device_);
  const auto attribute = [&](CUdevice_attribute what) {
    int value = 0;
    cuda::call(driver, driver.cuDeviceGetAttribute, &value, what, device_);
    return value;
  };
  features_.local_bytes = static_cast<size_t>(
      attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
  const int major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  const int minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  architecture_ = nvrtc.architecture_for(major, minor);
  if (architecture_ == 0) {
    throw errors::Unavailable(fmt::format(
        "{} is of compute capability {}.{}, for which {} does not compile",
        features_.name, major, minor, nvrtc.description()));
  }
  // The host needs the other half of memory that both use.
  if (attribute(CU_DEVICE_ATTRIBUTE_INTEGRATED) != 0) {
    features_.memory_bytes =
        std::min(features_.memory_bytes, available_host_bytes() / 2);
  }
  const int mode = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
  if (mode == CU_COMPUTEMODE_PROHIBITED) {
    throw errors::Unavailable(fmt::format(
        "{} is in a compute mode that lets nobody in", features_.name));
  }
  char bus[32] = "";
  cuda::call(driver, driver.cuDeviceGetPCIBusId, bus, int{sizeof bus}, device_);
  check_is_not_full(bus, features_.name, margin());
  // Another process may have it for itself, which only this tells.
  if (mode == CU_COMPUTEMODE_EXCLUSIVE_PROCESS) context();
}

CudaCard::~CudaCard() { forget_modules(); }

std::unique_ptr<gpu::Kernel> CudaCard::product(
    const gpu::MatrixProduct& product, size_t* scratch_bytes) {
  return products_->make(product, scratch_bytes);
}

CUcontext CudaCard::context() {
  if (CUcontext context = context_.load(std::memory_order_acquire)) {
    return context;
  }
  std::lock_guard lock(mutex_);
  if (context_.load() == nullptr) {
    CUcontext context = nullptr;
    const auto& retain = driver_.cuDevicePrimaryCtxRetain;
    if (const CUresult error = retain.function(&context, device_)) {
      const std::string text = fmt::format(
          "{}: {}: {}: it is full, lost, or another process has it (nvidia-smi "
          "shows which); CUDA_VISIBLE_DEVICES names other cards",
          features_.name, retain.name, error_name(driver_, error));
      if (is_lasting(error)) throw errors::Unavailable(text);
      throw errors::ResourceExhausted(text);
    }
    context_.store(context, std::memory_order_release);
  }
  return context_.load();
}

bool CudaCard::enter(CUcontext* before) {
  if (const std::string* why = lost_.load(std::memory_order_acquire)) {
    throw errors::Unavailable(*why);
  }
  // Other libraries of the process may have made another context current, so
  // ask the driver; it only reads thread-local memory.
  const CUcontext wanted = context();
  CUcontext current = nullptr;
  check(driver_.cuCtxGetCurrent.function(&current), "cuCtxGetCurrent");
  if (current == wanted) return false;
  check(driver_.cuCtxSetCurrent.function(wanted), "cuCtxSetCurrent");
  if (before != nullptr) *before = current;
  return true;
}

void* CudaCard::begin_calls() noexcept {
  CUcontext current = nullptr;
  const CUcontext wanted = context_.load(std::memory_order_acquire);
  // Without a context the first call that needs one makes it.
  if (wanted == nullptr || lost_.load() != nullptr ||
      driver_.cuCtxGetCurrent.function(&current) != CUDA_SUCCESS ||
      current == wanted) {
    return this;
  }
  const CUresult error = driver_.cuCtxSetCurrent.function(wanted);
  if (is_lasting(error)) lose(error, driver_.cuCtxSetCurrent.name);
  return error == CUDA_SUCCESS ? static_cast<void*>(current) : this;
}

void CudaCard::end_calls(void* before) noexcept {
  if (before != this) leave(static_cast<CUcontext>(before));
}

size_t CudaCard::usable_bytes() const {
  return features_.memory_bytes - margin();
}

size_t CudaCard::free_bytes() {
  size_t free = 0, total = 0;
  call(driver_.cuMemGetInfo, &free, &total);
  return free - std::min(free, margin());
}

size_t CudaCard::margin() const {
  const size_t all = features_.memory_bytes;
  return std::min(all / 16, std::max(size_t{600} << 20, all / 50));
}

void CudaCard::fail(CUresult error, const char* call) {
  if (!is_lasting(error)) raise_error(driver_, error, call);
  throw errors::Unavailable(lose(error, call));
}

const std::string& CudaCard::lose(CUresult error, const char* call) {
  // The first error says what happened.
  std::lock_guard lock(lost_mutex_);
  if (lost_.load() == nullptr) {
    lost_text_ =
        fmt::format("{}: {}: {}: the device is closed until the process ends",
                    features_.name, call, error_name(driver_, error));
    lost_ = &lost_text_;
  }
  return lost_text_;
}

std::unique_ptr<gpu::Queue> CudaCard::make_queue() {
  return std::make_unique<CudaQueue>(*this);
}

std::unique_ptr<MemorySource> CudaCard::memory_source() {
  return device_memory_source(*this);
}

std::unique_ptr<MemorySource> CudaCard::pinned_source() {
  return pinned_memory_source(*this);
}

// The driver copies between all of its cards, through the host if need be.
bool CudaCard::reaches(const gpu::Card& other) const {
  return dynamic_cast<const CudaCard*>(&other) != nullptr;
}

void CudaCard::add_kernels(KernelTable& table) {
  int cards = 0;
  cuda::call(driver_, driver_.cuDeviceGetCount, &cards);
  if (cards > 1) add_nccl_kernels(*this, table);
}

void CudaCard::meet(CudaCard& other) {
  const CUcontext there = other.context();
  std::lock_guard lock(mutex_);
  if (met_.contains(&other)) return;
  int can = 0;
  call(driver_.cuDeviceCanAccessPeer, &can, device_, other.device_);
  if (can != 0) {
    const CUresult error = result(driver_.cuCtxEnablePeerAccess, there, 0u);
    // Without it copies are only slower.
    if (error != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED &&
        error != CUDA_ERROR_TOO_MANY_PEERS &&
        error != CUDA_ERROR_PEER_ACCESS_UNSUPPORTED) {
      check(error, "cuCtxEnablePeerAccess");
    }
  }
  met_.insert(&other);
}

std::unique_ptr<gpu::Module> CudaCard::compile(const std::string& text) {
  return std::make_unique<CudaModule>(*this, nvrtc_.cubin(text, architecture_));
}

std::vector<std::shared_ptr<gpu::Module>> CudaCard::compile_together(
    const std::string& beginning, const std::vector<std::string>& parts) {
  std::map<const std::string*, std::shared_ptr<gpu::Module>> by_code;
  std::vector<std::shared_ptr<gpu::Module>> modules;
  for (const auto& code : nvrtc_.cubins(beginning, parts, architecture_)) {
    auto& module = by_code[code.get()];
    if (!module) module = std::make_shared<CudaModule>(*this, *code);
    modules.push_back(module);
  }
  return modules;
}

}  // namespace berth::cuda
