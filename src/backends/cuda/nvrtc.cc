#include "backends/cuda/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "backends/cuda/library_folders.h"
#include "base/immortal.h"
#include "berth/errors.h"

namespace berth::cuda {

#define BERTH_NVRTC_CALLS(X)   \
  X(nvrtcVersion)              \
  X(nvrtcGetErrorString)       \
  X(nvrtcGetNumSupportedArchs) \
  X(nvrtcGetSupportedArchs)    \
  X(nvrtcCreateProgram)        \
  X(nvrtcDestroyProgram)       \
  X(nvrtcCompileProgram)       \
  X(nvrtcGetProgramLogSize)    \
  X(nvrtcGetProgramLog)        \
  X(nvrtcGetCUBINSize)         \
  X(nvrtcGetCUBIN)             \
  X(nvrtcGetPTXSize)           \
  X(nvrtcGetPTX)

struct NvrtcCalls {
#define BERTH_NVRTC_MEMBER(call) decltype(&::call) call = nullptr;
  BERTH_NVRTC_CALLS(BERTH_NVRTC_MEMBER)
#undef BERTH_NVRTC_MEMBER

  void check(nvrtcResult result, const char* what) const {
    if (result == NVRTC_SUCCESS) return;
    throw errors::Internal(
        fmt::format("{}: {}", what, nvrtcGetErrorString(result)));
  }
};

namespace {

constexpr char kLibrary[] = "libnvrtc.so.13";
constexpr char kInstall[] =
    "install CUDA 13's NVRTC (pip install nvidia-cuda-nvrtc), or name its "
    "folder in BERTH_CUDA_LIBRARIES";

// Options that decide the bits of results come first.
constexpr const char* kOptions[] = {"--fmad=false", "--ftz=false",
                                    "--prec-div=true", "--prec-sqrt=true",
                                    "--std=c++17"};

// Returns the first function that the library lacks, or null.
const char* fill(void* library, NvrtcCalls& calls) {
#define BERTH_NVRTC_FIND(call)                                             \
  calls.call = reinterpret_cast<decltype(&::call)>(dlsym(library, #call)); \
  if (calls.call == nullptr) return #call;
  BERTH_NVRTC_CALLS(BERTH_NVRTC_FIND)
#undef BERTH_NVRTC_FIND
  return nullptr;
}

// Opens the builtins from beside the library. NVRTC asks for them by plain
// name, which the system's loader finds in few folders.
void open_builtins(const NvrtcCalls& calls) {
  Dl_info info;
  int major = 0, minor = 0;
  if (dladdr(reinterpret_cast<const void*>(calls.nvrtcVersion), &info) == 0 ||
      calls.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS) {
    return;
  }
  const std::string path = info.dli_fname;
  const std::string file =
      fmt::format("libnvrtc-builtins.so.{}.{}", major, minor);
  dlopen((path.substr(0, path.rfind('/') + 1) + file).c_str(), RTLD_NOW);
}

// A program of NVRTC's.
class Program {
 public:
  Program(const NvrtcCalls& calls, const std::string& text) : calls_(calls) {
    calls.check(calls.nvrtcCreateProgram(&program_, text.c_str(), "kernels.cu",
                                         0, nullptr, nullptr),
                "nvrtcCreateProgram");
  }
  ~Program() { calls_.nvrtcDestroyProgram(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  nvrtcProgram get() const { return program_; }

  // Reads a text or code in two calls: first the size, then the bytes.
  std::string read(decltype(&nvrtcGetPTXSize) size_of,
                   decltype(&nvrtcGetPTX) get, const char* what) const {
    size_t bytes = 0;
    calls_.check(size_of(program_, &bytes), what);
    std::string result(bytes, '\0');
    if (bytes > 0) calls_.check(get(program_, result.data()), what);
    return result;
  }

 private:
  const NvrtcCalls& calls_;
  nvrtcProgram program_ = nullptr;
};

// Strips the terminating zero.
std::string text_of(std::string bytes) {
  bytes.resize(std::min(bytes.find('\0'), bytes.size()));
  return bytes;
}

std::vector<std::string> options_for(const char* kind, int architecture) {
  std::vector<std::string> options(std::begin(kOptions), std::end(kOptions));
  options.push_back(
      fmt::format("--gpu-architecture={}_{}", kind, architecture));
  return options;
}

}  // namespace

struct NvrtcFound {
  NvrtcCalls calls;
  std::unique_ptr<const Nvrtc> nvrtc;
  std::string why;

  NvrtcFound() {
    std::string tried;
    const auto find = [this](void* library) { return fill(library, calls); };
    if (!open_library(kLibrary, library_folders(), find, &tried)) {
      why = fmt::format("there is no {}: {}; looked into: {}", kLibrary,
                        kInstall, tried);
      return;
    }
    open_builtins(calls);
    try {
      nvrtc.reset(new Nvrtc(calls));
    } catch (const errors::Error& e) {
      why = fmt::format("{} does not work: {}", kLibrary, e.what());
    }
  }
};

const Nvrtc* Nvrtc::find(std::string* why) {
  static const auto& found = immortal<NvrtcFound>();
  *why = found.why;
  return found.nvrtc.get();
}

Nvrtc::Nvrtc(const NvrtcCalls& calls)
    : calls_(calls),
      cache_(CubinCache::default_folder()),
      parts_(CubinCache::default_folder(), "part") {
  calls.check(calls.nvrtcVersion(&major_, &minor_), "nvrtcVersion");
  int count = 0;
  calls.check(calls.nvrtcGetNumSupportedArchs(&count),
              "nvrtcGetNumSupportedArchs");
  architectures_.resize(static_cast<size_t>(count));
  calls.check(calls.nvrtcGetSupportedArchs(architectures_.data()),
              "nvrtcGetSupportedArchs");
  std::sort(architectures_.begin(), architectures_.end());
}

std::string Nvrtc::description() const {
  return fmt::format("NVRTC {}.{}", major_, minor_);
}

int Nvrtc::architecture_for(int major, int minor) const {
  int best = 0;
  for (const int a : architectures_) {
    if (a / 10 == major && a % 10 <= minor) best = a;
  }
  return best;
}

Compiled Nvrtc::run(const std::string& text, std::vector<std::string> options,
                    bool code) const {
  std::vector<const char*> pointers;
  for (const std::string& o : options) pointers.push_back(o.c_str());
  const Program program(calls_, text);
  const nvrtcResult result = calls_.nvrtcCompileProgram(
      program.get(), static_cast<int>(pointers.size()), pointers.data());
  Compiled compiled;
  compiled.good = result == NVRTC_SUCCESS;
  compiled.log =
      text_of(program.read(calls_.nvrtcGetProgramLogSize,
                           calls_.nvrtcGetProgramLog, "nvrtcGetProgramLog"));
  if (!compiled.good) {
    compiled.log =
        fmt::format("{}: {}", calls_.nvrtcGetErrorString(result), compiled.log);
    return compiled;
  }
  if (code) {
    compiled.cubin = program.read(calls_.nvrtcGetCUBINSize,
                                  calls_.nvrtcGetCUBIN, "nvrtcGetCUBIN");
  }
  compiled.ptx = text_of(
      program.read(calls_.nvrtcGetPTXSize, calls_.nvrtcGetPTX, "nvrtcGetPTX"));
  return compiled;
}

Compiled Nvrtc::compile(const std::string& text, int architecture,
                        const std::vector<std::string>& more) const {
  std::vector<std::string> options = options_for("sm", architecture);
  options.insert(options.end(), more.begin(), more.end());
  return run(text, std::move(options), true);
}

Compiled Nvrtc::ptx(const std::string& text, int architecture) const {
  return run(text, options_for("compute", architecture), false);
}

std::string Nvrtc::key_of(const std::string& text, int architecture) const {
  std::string key = description();
  for (const std::string& o : options_for("sm", architecture)) key += "\n" + o;
  return key + "\n" + text;
}

std::string Nvrtc::compile_good(const std::string& text,
                                int architecture) const {
  ++compilations_;
  Compiled compiled = compile(text, architecture);
  if (!compiled.good) {
    throw errors::Internal(fmt::format("{} does not compile kernels: {}",
                                       description(), compiled.log));
  }
  return std::move(compiled.cubin);
}

std::string Nvrtc::cubin(const std::string& text, int architecture) const {
  const std::string key = key_of(text, architecture);
  if (std::optional<std::string> kept = cache_.find(key)) return *kept;
  std::string code = compile_good(text, architecture);
  cache_.keep(key, code);
  return code;
}

std::vector<std::shared_ptr<const std::string>> Nvrtc::cubins(
    const std::string& beginning, const std::vector<std::string>& parts,
    int architecture) const {
  using Code = std::shared_ptr<const std::string>;
  std::vector<Code> codes(parts.size());
  std::map<std::string, Code> kept;  // by key
  std::string absent = beginning;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (const auto key =
            parts_.find(key_of(beginning + parts[i], architecture))) {
      Code& code = kept[*key];
      if (!code) {
        if (auto found = cache_.find(*key)) {
          code = std::make_shared<const std::string>(std::move(*found));
        }
      }
      codes[i] = code;
    }
    if (!codes[i]) absent += parts[i];
  }
  if (absent.size() == beginning.size()) return codes;
  const Code made =
      std::make_shared<const std::string>(compile_good(absent, architecture));
  const std::string key =
      "program " + CubinCache::hash_of(key_of(absent, architecture));
  cache_.keep(key, *made);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (codes[i]) continue;
    codes[i] = made;
    parts_.keep(key_of(beginning + parts[i], architecture), key);
  }
  return codes;
}

}  // namespace berth::cuda
