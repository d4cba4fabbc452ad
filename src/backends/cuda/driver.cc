#include "backends/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/immortal.h"
#include "berth/errors.h"

namespace berth::cuda {

namespace {

constexpr int kOldestDriver = 13000;  // as reported by cuDriverGetVersion
constexpr char kNeeds[] = "Berth needs 580 or newer (CUDA 13)";

// The first driver of each version of CUDA.
constexpr struct {
  int cuda, driver;
} kDrivers[] = {{12090, 575}, {12080, 570}, {12060, 560}, {12050, 555},
                {12040, 550}, {12030, 545}, {12020, 535}, {12010, 530},
                {12000, 525}, {11080, 520}, {11070, 515}, {11060, 510},
                {11050, 495}, {11040, 470}};

std::string too_old(int version) {
  const std::string cuda =
      fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
  for (const auto& d : kDrivers) {
    if (version / 10 == d.cuda / 10) {
      return fmt::format("the NVIDIA driver is {} ({}); {}", d.driver, cuda,
                         kNeeds);
    }
  }
  return fmt::format("the NVIDIA driver is one of {}; {}", cuda, kNeeds);
}

#define BERTH_CUDA_TEXT(x) #x
// The symbol: cuda.h may define the name as a macro.
#define BERTH_CUDA_SYMBOL(x) BERTH_CUDA_TEXT(x)

// Returns the name of the first function that the library lacks, or null.
const char* fill(void* library, Driver& driver) {
#define BERTH_CUDA_FIND(call)                                 \
  driver.call.function = reinterpret_cast<decltype(&::call)>( \
      dlsym(library, BERTH_CUDA_SYMBOL(call)));               \
  if (driver.call.function == nullptr) return BERTH_CUDA_SYMBOL(call);
  BERTH_CUDA_CALLS(BERTH_CUDA_FIND)
#undef BERTH_CUDA_FIND
  return nullptr;
}

// Returns why cuInit failed.
std::string not_started(const Driver& driver, CUresult error) {
  switch (error) {
    case CUDA_ERROR_NO_DEVICE:
      return "the NVIDIA driver finds no GPU";
    case CUDA_ERROR_STUB_LIBRARY:
      return fmt::format(
          "libcuda.so.1 here is the stub that programs are linked with; {}",
          kNeeds);
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return "libcuda.so.1 and the kernel's NVIDIA module are of different "
             "versions: restart the machine, or install one of them again";
    default:
      return fmt::format("the NVIDIA driver does not start: cuInit: {}",
                         error_name(driver, error));
  }
}

// Returns why the driver cannot be used; "" when it can.
std::string start(Driver& driver) {
  // The library stays open until the process ends, as the table does.
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return fmt::format("no NVIDIA driver here ({})", dlerror());
  }
  const auto version_of = reinterpret_cast<decltype(&::cuDriverGetVersion)>(
      dlsym(library, "cuDriverGetVersion"));
  int version = 0;
  if (version_of != nullptr && version_of(&version) == CUDA_SUCCESS &&
      version < kOldestDriver) {
    return too_old(version);
  }
  if (const char* name = fill(library, driver)) {
    return fmt::format("the NVIDIA driver has no {}; {}", name, kNeeds);
  }
  const CUresult error = driver.cuInit.function(0);
  return error == CUDA_SUCCESS ? "" : not_started(driver, error);
}

struct FoundDriver {
  Driver driver;
  std::string why;
  FoundDriver() : why(start(driver)) {}
};

}  // namespace

const Driver* driver(std::string* why) {
  static const auto& found = immortal<FoundDriver>();
  *why = found.why;
  return found.why.empty() ? &found.driver : nullptr;
}

std::string error_name(const Driver& driver, CUresult error) {
  const char* name = nullptr;
  if (driver.cuGetErrorName.function(error, &name) != CUDA_SUCCESS ||
      name == nullptr) {
    name = "CUDA error";
  }
  return fmt::format("{} ({})", name, static_cast<int>(error));
}

bool is_lasting(CUresult error) {
  switch (error) {
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_MPS_RPC_FAILURE:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      return false;
  }
}

void raise_error(const Driver& driver, CUresult error, const char* call) {
  const std::string text =
      fmt::format("{}: {}", call, error_name(driver, error));
  if (error == CUDA_ERROR_OUT_OF_MEMORY) throw errors::ResourceExhausted(text);
  if (is_lasting(error)) throw errors::Unavailable(text);
  throw errors::Internal(text);
}

}  // namespace berth::cuda
