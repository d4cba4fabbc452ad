#include "backends/opencl/platforms.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "backends/opencl/cl_card.h"
#include "base/environment.h"
#include "base/immortal.h"
#include "berth/errors.h"

namespace berth::opencl {

namespace {

namespace fs = std::filesystem;

struct FoundPlatforms {
  std::vector<std::unique_ptr<gpu::Card>> cards;
  std::string why;
};

// Returns what the loader will open: the lines of *.icd files.
std::vector<std::string> driver_names() {
  const std::string own = environment("OCL_ICD_VENDORS");
  const fs::path place = own.empty() ? "/etc/OpenCL/vendors" : own;
  std::error_code ignored;
  if (!own.empty() && !fs::is_directory(place, ignored)) return {own};
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(place, ignored)) {
    if (entry.path().extension() != ".icd") continue;
    std::ifstream file(entry.path());
    std::string line;
    if (std::getline(file, line)) names.push_back(line);
  }
  return names;
}

// PoCL has only processors, so it need not be opened to find that out.
bool only_pocl(const std::vector<std::string>& drivers) {
  for (const std::string& d : drivers) {
    if (d.find("pocl") == std::string::npos) return false;
  }
  return true;
}

std::vector<cl_device_id> devices_of(cl_platform_id platform, bool all) {
  const cl_device_type type = CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR |
                              (all ? CL_DEVICE_TYPE_CPU : 0);
  cl_uint count = 0;
  const cl_int error = clGetDeviceIDs(platform, type, 0, nullptr, &count);
  if (error == CL_DEVICE_NOT_FOUND || count == 0) return {};
  check(error, "clGetDeviceIDs");
  std::vector<cl_device_id> devices(count);
  check(clGetDeviceIDs(platform, type, count, devices.data(), nullptr),
        "clGetDeviceIDs");
  return devices;
}

void add(std::string& why, std::string_view more) {
  why += fmt::format("{}{}", why.empty() ? "" : "; ", more);
}

void add_platform(cl_platform_id platform, bool all, FoundPlatforms& found) {
  if (!all && platform_text(platform, CL_PLATFORM_VENDOR).find("NVIDIA") !=
                  std::string::npos) {
    // Otherwise each card would be two devices.
    return add(found.why,
               "NVIDIA's GPUs are left to the CUDA plug-in; BERTH_OPENCL=all "
               "takes them here, too");
  }
  const std::vector<cl_device_id> devices = devices_of(platform, all);
  if (devices.empty()) return;
  cl_int error = CL_SUCCESS;
  const cl_context context =
      clCreateContext(nullptr, static_cast<cl_uint>(devices.size()),
                      devices.data(), nullptr, nullptr, &error);
  check(error, "clCreateContext");
  std::vector<std::unique_ptr<ClCard>> cards;
  // Only cards of a context copy to each other; no other backend uses these.
  constexpr int kFirstPeers = 2000;
  const int peers = kFirstPeers + static_cast<int>(found.cards.size());
  for (const cl_device_id d : devices) {
    try {
      cards.push_back(std::make_unique<ClCard>(context, d, peers));
    } catch (const errors::Error& e) {
      add(found.why, e.what());
    }
  }
  join_cards(cards);
  for (auto& card : cards) found.cards.push_back(std::move(card));
}

FoundPlatforms find() {
  FoundPlatforms found;
  const std::string asked =
      environment_choice("BERTH_OPENCL", {"gpu", "all", "off"});
  const bool all = asked == "all";
  if (asked == "off") {
    found.why = "BERTH_OPENCL=off";
    return found;
  }
  const std::vector<std::string> drivers = driver_names();
  if (drivers.empty()) {
    found.why =
        "no OpenCL driver is installed (no *.icd file in /etc/OpenCL/vendors)";
    return found;
  }
  if (!all && only_pocl(drivers)) {
    found.why =
        "the OpenCL driver here, PoCL, computes on the processor, where "
        "/CPU:0 is faster; BERTH_OPENCL=all uses it";
    return found;
  }
  cl_uint count = 0;
  cl_int error = clGetPlatformIDs(0, nullptr, &count);
  if (error != CL_SUCCESS || count == 0) {
    found.why = fmt::format("no OpenCL driver answers: {}",
                            error_name(error != CL_SUCCESS ? error : -1001));
    return found;
  }
  std::vector<cl_platform_id> platforms(count);
  clGetPlatformIDs(count, platforms.data(), nullptr);
  for (const cl_platform_id p : platforms) {
    try {
      add_platform(p, all, found);
    } catch (const errors::Error& e) {
      add(found.why, e.what());
    }
  }
  if (found.cards.empty() && found.why.empty()) {
    found.why = "the OpenCL drivers here have no GPU";
  }
  return found;
}

const FoundPlatforms& found() {
  static const auto& f = immortal<FoundPlatforms>(find());
  return f;
}

}  // namespace

const std::vector<std::unique_ptr<gpu::Card>>& cards() { return found().cards; }

const std::string& why_none() { return found().why; }

}  // namespace berth::opencl
