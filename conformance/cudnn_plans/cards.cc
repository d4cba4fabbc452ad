#include "conformance/cudnn_plans/cards.h"

#include <dlfcn.h>

#include <map>
#include <nlohmann/json.hpp>

#include "backends/cuda/cubin_cache.h"
#include "backends/cuda/cudnn_library.h"
#include "base/immortal.h"
#include "berth/errors.h"

namespace berth::conformance {

namespace {

std::string properties_of(int architecture) {
  nlohmann::json j = {{"maxGridSize", {2147483647, 65535, 65535}},
                      {"maxBlockSize", {1024, 1024, 64}},
                      {"regsPerBlock", 65536},
                      {"multiProcessorCount", 132},
                      {"warpSize", 32},
                      {"maxSharedMemoryPerBlock", 49152},
                      {"maxSharedMemoryPerBlockOptin", 232448},
                      {"reservedSharedMemoryPerBlock", 1024},
                      {"maxRegistersPerSM", 65536},
                      {"maxCtasPerSM", 32},
                      {"maxThreadsPerBlock", 1024},
                      {"maxThreadsPerSM", 2048},
                      {"pciDeviceId", 0},
                      {"isTccDriver", 0},
                      {"supportCoopLaunch", 1},
                      {"totalGlobalMem", 150754820096},
                      {"smClockRateKHz", 1980000},
                      {"memClockRateKHz", 3201000},
                      {"memoryBusWidth", 6144},
                      {"l2CacheSize", 62914560},
                      {"cudaDeviceId", 0},
                      {"deviceVer", 10 * architecture},
                      {"driverVer", 13000},
                      {"deviceName", "NVIDIA H200"}};
  if (architecture == 80) {
    j["deviceName"] = "NVIDIA A100-SXM4-80GB";
    j["multiProcessorCount"] = 108;
    j["maxSharedMemoryPerBlockOptin"] = 166912;
    j["memoryBusWidth"] = 5120;
    j["l2CacheSize"] = 41943040;
  } else if (architecture == 100) {
    j["deviceName"] = "NVIDIA B200";
    j["multiProcessorCount"] = 148;
    j["memoryBusWidth"] = 8192;
    j["l2CacheSize"] = 132644864;
  }
  // cuDNN 9.28 asks for these, 9.19 does not.
  j["smCountOrigin"] = 0;  // the whole device
  j["oversizedSharedMemoryPerBlock"] = j["maxSharedMemoryPerBlockOptin"];
  return j.dump();
}

std::string key_of(const BerthCudnnApi& api, BerthCudnnCard* card,
                   const BerthCudnnGraph& graph) {
  std::string key(api.card_key(card, nullptr, 0), '\0');
  if (key.empty()) throw errors::Internal("a card without a key");
  api.card_key(card, key.data(), key.size());
  // The rules' own version comes first.
  return "cudnn_plans 2\n" + key +
         std::string(reinterpret_cast<const char*>(&graph), sizeof graph);
}

// Why these are not a plan of the graph.
std::string why_not_loaded(const BerthCudnnApi& api, BerthCudnnCard* card,
                           const BerthCudnnGraph& graph,
                           const std::string& data) {
  char why[BERTH_CUDNN_WHY_BYTES] = "";
  BerthCudnnPlan* plan = nullptr;
  if (api.load_plan(card, &graph, reinterpret_cast<const uint8_t*>(data.data()),
                    data.size(), &plan, why) != 0) {
    return std::string("what was kept does not load: ") + why;
  }
  api.drop_plan(plan);
  return "";
}

}  // namespace

const BerthCudnnApi* plan_library(std::string* why) {
  static void* const driver =
      dlopen(BERTH_STAND_IN_CUDA, RTLD_NOW | RTLD_GLOBAL);
  if (driver == nullptr) {
    *why = dlerror();
    return nullptr;
  }
  static const bool named =
      setenv("BERTH_CUDA_LIBRARIES", BERTH_CUDNN_FOLDER, 0) == 0;
  (void)named;
  bool is_built = false;
  return cuda::cudnn_library(why, &is_built);
}

BerthCudnnCard* planned_card(const BerthCudnnApi& api, int architecture) {
  static auto& cards = immortal<std::map<int, BerthCudnnCard*>>();
  BerthCudnnCard*& card = cards[architecture];
  char why[BERTH_CUDNN_WHY_BYTES] = "";
  if (card == nullptr && api.make_card(properties_of(architecture).c_str(),
                                       architecture, &card, why) != 0) {
    throw errors::Internal(why);
  }
  return card;
}

std::string why_no_plan(const BerthCudnnApi& api, int architecture,
                        const BerthCudnnGraph& graph) {
  BerthCudnnCard* card = planned_card(api, architecture);
  static const cuda::CubinCache& cache = immortal<cuda::CubinCache>(
      cuda::CubinCache::default_folder("cudnn_plans"));
  const std::string key = key_of(api, card, graph);
  if (const auto kept = cache.find(key)) {
    return why_not_loaded(api, card, graph, *kept);
  }
  char why[BERTH_CUDNN_WHY_BYTES] = "";
  BerthCudnnPlan* plan = nullptr;
  if (api.make_plan(card, &graph, &plan, why) != 0) return why;
  size_t bytes = 0;
  const uint8_t* data = api.save_plan(plan, &bytes);
  const std::string saved(reinterpret_cast<const char*>(data),
                          data == nullptr ? 0 : bytes);
  api.drop_plan(plan);
  if (saved.empty()) return "the plan cannot be saved";
  const std::string bad = why_not_loaded(api, card, graph, saved);
  if (bad.empty()) cache.keep(key, saved);
  return bad;
}

}  // namespace berth::conformance
