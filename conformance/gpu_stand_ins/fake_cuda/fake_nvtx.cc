// A fake tool, injected to listen to NVTX, for tests. It keeps the ranges of
// the process as text, "Test(Fill())".

#include <nvtx3/nvToolsExt.h>

#include <mutex>
#include <string>

namespace {

std::mutex& mutex() {
  static std::mutex& m = *new std::mutex;
  return m;
}
std::string& text() {
  static std::string& s = *new std::string;
  return s;
}

int push(const char* name) {
  const std::lock_guard lock(mutex());
  text() += std::string(name) + "(";
  return 0;
}
int pop() {
  const std::lock_guard lock(mutex());
  text() += ")";
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const char*
berth_fake_nvtx() {
  const std::lock_guard lock(mutex());
  return (new std::string(text()))->c_str();
}

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks == nullptr ||
      !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size)) {
    return 0;
  }
  *table[NVTX_CBID_CORE_RangePushA] =
      reinterpret_cast<NvtxFunctionPointer>(&push);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(&pop);
  return 1;
}
