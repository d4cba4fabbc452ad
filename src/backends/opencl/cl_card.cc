#include "backends/opencl/cl_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "backends/opencl/cl_kernel_order.h"
#include "backends/opencl/cl_queue.h"
#include "berth/errors.h"

namespace berth::opencl {

namespace {

template <class T>
T info(cl_device_id device, cl_device_info what) {
  T value{};
  check(clGetDeviceInfo(device, what, sizeof(value), &value, nullptr),
        "clGetDeviceInfo");
  return value;
}

// The arguments of a cl_kernel are its state, so each recipe has its own.
class ClKernel final : public gpu::Kernel {
 public:
  ClKernel(cl_program program, const char* name, bool in_order)
      : order_(in_order ? &order_of(name) : nullptr) {
    cl_int error = CL_SUCCESS;
    kernel_ = clCreateKernel(program, name, &error);
    if (error != CL_SUCCESS) {
      throw errors::Internal(
          fmt::format("GPU kernel {}: {}", name, error_name(error)));
    }
  }
  ~ClKernel() override { clReleaseKernel(kernel_); }
  ClKernel(const ClKernel&) = delete;
  ClKernel& operator=(const ClKernel&) = delete;

  void launch(gpu::Queue& queue, const gpu::Grid& grid,
              const gpu::KernelArg* args, int num_args) override {
    auto& q = static_cast<ClQueue&>(queue);
    if (q.records(*this, grid, args, num_args)) return;
    std::lock_guard lock(mutex_);
    const uint64_t version = ClMemory::version();
    const bool set_all = version != version_;
    size_t byte = 0;
    cl_uint at = 0;
    for (int i = 0; i < num_args; ++i) {
      const bool is_address = args[i].bytes == 0;
      const size_t bytes = is_address ? sizeof(void*) : args[i].bytes;
      if (differs(byte, args[i].value, bytes) || set_all) {
        if (is_address) {
          set_address(q.card(), at, *static_cast<void* const*>(args[i].value));
        } else {
          set(at, bytes, args[i].value);
        }
      }
      byte += bytes;
      at += is_address ? 2 : 1;
    }
    version_ = version;
    q.launch(kernel_, grid, order_);
  }

 private:
  // Notes an argument's bytes; returns false if the last launch had the same.
  bool differs(size_t byte, const void* value, size_t bytes) {
    if (set_.size() < byte + bytes) {
      set_.resize(byte + bytes);
    } else if (std::memcmp(set_.data() + byte, value, bytes) == 0) {
      return false;
    }
    std::memcpy(set_.data() + byte, value, bytes);
    return true;
  }
  void set_address(const ClCard& card, cl_uint at, const void* address) {
    Place place;
    if (address != nullptr) place = card.place_of(address);
    set(at, sizeof(cl_mem), place.buffer ? &place.buffer : nullptr);
    const cl_ulong offset = place.offset;
    set(at + 1, sizeof(offset), &offset);
  }
  void set(cl_uint at, size_t bytes, const void* value) {
    const cl_int error = clSetKernelArg(kernel_, at, bytes, value);
    if (error == CL_SUCCESS) return;
    set_.clear();
    raise_error(error, "clSetKernelArg");
  }

  std::mutex mutex_;
  KernelOrder* const order_;
  cl_kernel kernel_ = nullptr;
  // The current values of the arguments, and the memory version at that time:
  // drivers take longer to set an argument than this comparison does.
  std::vector<unsigned char> set_;
  uint64_t version_ = 0;
};

class ClModule final : public gpu::Module {
 public:
  ClModule(cl_program program, bool in_order)
      : program_(program), in_order_(in_order) {}
  ~ClModule() override { clReleaseProgram(program_); }
  ClModule(const ClModule&) = delete;
  ClModule& operator=(const ClModule&) = delete;
  std::unique_ptr<gpu::Kernel> kernel(const char* name) override {
    return std::make_unique<ClKernel>(program_, name, in_order_);
  }

 private:
  const cl_program program_;
  const bool in_order_;
};

// Memory that the driver allocates for fast copies, mapped permanently.
class PinnedSource final : public MemorySource {
 public:
  explicit PinnedSource(const ClCard& card) : card_(card) {
    cl_int error = CL_SUCCESS;
    queue_ = clCreateCommandQueue(card.context(), card.device(), 0, &error);
    check(error, "clCreateCommandQueue");
  }
  ~PinnedSource() override { clReleaseCommandQueue(queue_); }
  PinnedSource(const PinnedSource&) = delete;
  PinnedSource& operator=(const PinnedSource&) = delete;

  std::byte* reserve(size_t bytes) override {
    cl_int error = CL_SUCCESS;
    const cl_mem buffer = clCreateBuffer(card_.context(), CL_MEM_ALLOC_HOST_PTR,
                                         bytes + kPage, nullptr, &error);
    if (error != CL_SUCCESS) return nullptr;
    void* mapped =
        clEnqueueMapBuffer(queue_, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                           0, bytes + kPage, 0, nullptr, nullptr, &error);
    if (error != CL_SUCCESS) {
      clReleaseMemObject(buffer);
      return nullptr;
    }
    const auto at = reinterpret_cast<uintptr_t>(mapped);
    auto* data = reinterpret_cast<std::byte*>((at + kPage - 1) / kPage * kPage);
    std::lock_guard lock(mutex_);
    buffers_.push_back({data, mapped, buffer});
    return data;
  }
  void release(std::byte* data, size_t) override {
    std::lock_guard lock(mutex_);
    const auto it =
        std::find_if(buffers_.begin(), buffers_.end(),
                     [data](const Mapped& m) { return m.data == data; });
    clEnqueueUnmapMemObject(queue_, it->buffer, it->mapped, 0, nullptr,
                            nullptr);
    clFinish(queue_);
    clReleaseMemObject(it->buffer);
    buffers_.erase(it);
  }
  bool host_addressable() const override { return true; }

 private:
  static constexpr size_t kPage = 4096;
  struct Mapped {
    std::byte* data;
    void* mapped;
    cl_mem buffer;
  };
  const ClCard& card_;
  cl_command_queue queue_ = nullptr;
  std::mutex mutex_;
  std::vector<Mapped> buffers_;
};

}  // namespace

std::string device_text(cl_device_id device, cl_device_info what) {
  size_t bytes = 0;
  check(clGetDeviceInfo(device, what, 0, nullptr, &bytes), "clGetDeviceInfo");
  std::string text(bytes, '\0');
  check(clGetDeviceInfo(device, what, bytes, text.data(), nullptr),
        "clGetDeviceInfo");
  return text.substr(0, text.find('\0'));
}

std::string platform_text(cl_platform_id platform, cl_platform_info what) {
  char text[256] = {};
  clGetPlatformInfo(platform, what, sizeof(text) - 1, text, nullptr);
  return text;
}

ClCard::ClCard(cl_context context, cl_device_id device, int peers)
    : context_(context), device_(device) {
  features_.peers = peers;
  features_.name = device_text(device, CL_DEVICE_NAME);
  features_.memory_bytes = info<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE);
  features_.local_bytes = info<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE);
  features_.has_f64 =
      info<cl_device_fp_config>(device, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  is_processor_ =
      (info<cl_device_type>(device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  orders_kernels_ = needs_order(platform_text(
      info<cl_platform_id>(device, CL_DEVICE_PLATFORM), CL_PLATFORM_VERSION));
  products_ = asked_products();
  if (products_ == Products::kClblast && !has_clblast()) {
    throw errors::Unavailable(
        "BERTH_OPENCL_PRODUCTS=clblast, but libclblast.so.1 is not installed");
  }
  // CLBlast computes plain products only.
  features_.fuses_products = !(has_clblast() && uses_clblast());
  has_f16_ = device_text(device, CL_DEVICE_EXTENSIONS).find("cl_khr_fp16") !=
             std::string::npos;
  const auto most = info<size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  if (most < 256) {
    throw errors::Unavailable(
        fmt::format("{} takes groups of {} items at most; expected 256",
                    features_.name, most));
  }
  memory_ = std::make_unique<ClMemory>(
      context, features_.memory_bytes,
      info<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  memories_.push_back(memory_.get());
}

bool ClCard::uses_clblast() const {
  return products_ == Products::kClblast ||
         (products_ == Products::kAuto && !is_processor_);
}

std::unique_ptr<gpu::Kernel> ClCard::product(const gpu::MatrixProduct& product,
                                             size_t* /*scratch_bytes*/) {
  return uses_clblast() ? clblast_product(product, has_f16_) : nullptr;
}

std::unique_ptr<gpu::Queue> ClCard::make_queue() {
  return std::make_unique<ClQueue>(*this);
}

std::unique_ptr<MemorySource> ClCard::pinned_source() {
  return std::make_unique<PinnedSource>(*this);
}

bool ClCard::reaches(const gpu::Card& other) const {
  const auto* card = dynamic_cast<const ClCard*>(&other);
  return card != nullptr && card->context_ == context_;
}

Place ClCard::place_of(const void* address) const {
  for (const ClMemory* m : memories_) {
    if (m->contains(address)) return m->place_of(address);
  }
  throw errors::Internal(
      fmt::format("{} is no address of {}", address, features_.name));
}

std::unique_ptr<gpu::Module> ClCard::compile(const std::string& text) {
  const char* source = text.c_str();
  cl_int error = CL_SUCCESS;
  const cl_program program =
      clCreateProgramWithSource(context_, 1, &source, nullptr, &error);
  check(error, "clCreateProgramWithSource");
  auto module = std::make_unique<ClModule>(program, orders_kernels_);
  const auto single =
      info<cl_device_fp_config>(device_, CL_DEVICE_SINGLE_FP_CONFIG);
  const std::string options =
      (single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT)
          ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
          : "-cl-std=CL1.2";
  error =
      clBuildProgram(program, 1, &device_, options.c_str(), nullptr, nullptr);
  if (error == CL_SUCCESS) return module;
  std::string log(65536, '\0');
  clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, log.size() - 1,
                        log.data(), nullptr);
  throw errors::Internal(fmt::format("{} does not compile kernels: {}: {}",
                                     features_.name, error_name(error),
                                     log.c_str()));
}

void join_cards(std::vector<std::unique_ptr<ClCard>>& cards) {
  for (auto& card : cards) {
    for (const auto& other : cards) {
      if (other != card && other->context_ == card->context_) {
        card->memories_.push_back(other->memory_.get());
      }
    }
  }
}

}  // namespace berth::opencl
