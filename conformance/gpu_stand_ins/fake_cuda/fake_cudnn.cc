#include "conformance/gpu_stand_ins/fake_cuda/fake_cudnn.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <mutex>

struct BerthCudnnCard {
  int32_t architecture;
};
struct BerthCudnnPlan {
  BerthCudnnGraph graph;
};

extern "C" __attribute__((visibility("default"))) berth::cuda::FakeCudnn&
berth_fake_cudnn();

namespace {

berth::cuda::FakeCudnn& fake() { return berth_fake_cudnn(); }

// Every function of the interface holds it.
struct Lock : std::lock_guard<std::mutex> {
  Lock() : lock_guard(mutex()) {}
  static std::mutex& mutex() {
    static std::mutex& one = *new std::mutex;
    return one;
  }
};

bool fails(const char* name, char* why) {
  if (fake().fails != name) return false;
  std::snprintf(why, BERTH_CUDNN_WHY_BYTES, "%s was told to fail", name);
  return true;
}

int32_t fake_open(const char* folder, char* why) {
  const Lock lock;
  if (fails("open", why)) return 1;
  if (fake().bad_folder == folder) {
    std::snprintf(why, BERTH_CUDNN_WHY_BYTES, "a part is missing");
    return 1;
  }
  fake().folder = folder;
  return 0;
}

int64_t fake_version() { return 91900; }

int32_t fake_make_card(const char*, int32_t architecture, BerthCudnnCard** card,
                       char* why) {
  const Lock lock;
  if (fails("make_card", why)) return 1;
  *card = new BerthCudnnCard{architecture};
  ++fake().cards;
  return 0;
}

void fake_drop_card(BerthCudnnCard* card) {
  const Lock lock;
  delete card;
  --fake().cards;
}

size_t fake_key(BerthCudnnCard*, char* text, size_t bytes) {
  const Lock lock;
  const std::string& key = fake().card;
  if (key.empty()) return 0;
  if (bytes > 0) std::snprintf(text, bytes, "%s", key.c_str());
  return key.size() + 1;
}

int32_t new_plan(const BerthCudnnGraph* graph, BerthCudnnPlan** plan) {
  *plan = new BerthCudnnPlan{*graph};
  fake().graph = *graph;
  ++fake().plans;
  return 0;
}

int32_t fake_make_plan(BerthCudnnCard*, const BerthCudnnGraph* graph,
                       BerthCudnnPlan** plan, char* why) {
  const Lock lock;
  if (fails("make_plan", why)) return 1;
  ++fake().made;
  return new_plan(graph, plan);
}

int32_t fake_load_plan(BerthCudnnCard*, const BerthCudnnGraph* graph,
                       const uint8_t* data, size_t bytes, BerthCudnnPlan** plan,
                       char* why) {
  const Lock lock;
  if (fails("load_plan", why)) return 1;
  if (bytes != sizeof *graph || std::memcmp(data, graph, bytes) != 0) {
    std::snprintf(why, BERTH_CUDNN_WHY_BYTES, "another graph's plan");
    return 1;
  }
  ++fake().loaded;
  return new_plan(graph, plan);
}

const uint8_t* fake_save_plan(BerthCudnnPlan* plan, size_t* bytes) {
  const Lock lock;
  *bytes = 0;
  if (fake().fails == "save_plan") return nullptr;
  *bytes = sizeof plan->graph;
  return reinterpret_cast<const uint8_t*>(&plan->graph);
}

void fake_drop_plan(BerthCudnnPlan* plan) {
  const Lock lock;
  delete plan;
  --fake().plans;
}

size_t fake_scratch(const BerthCudnnPlan*) {
  const Lock lock;
  return fake().scratch;
}

int32_t fake_arguments(const BerthCudnnPlan* plan) {
  switch (plan->graph.what) {
    case BERTH_CUDNN_BATCH_NORM:
    case BERTH_CUDNN_BATCH_NORM_GRAD:
      return 8;
    case BERTH_CUDNN_ATTENTION:
      return 5;
    case BERTH_CUDNN_ATTENTION_GRAD:
      return 9;
    default:
      return 3;
  }
}

const char* fake_name(const BerthCudnnPlan*) { return "a pretended plan"; }

int32_t fake_run(BerthCudnnPlan* plan, void* stream, void* const* arguments,
                 int32_t num_arguments, void* scratch, char* why) {
  const Lock lock;
  if (fails("run_plan", why)) return 1;
  if (plan->graph.what >= BERTH_CUDNN_ATTENTION &&
      dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD) == nullptr) {
    std::snprintf(why, BERTH_CUDNN_WHY_BYTES,
                  "Unable to load any libcudart.so.*");
    return 1;
  }
  for (int32_t i = 0; i < num_arguments; ++i) {
    if (reinterpret_cast<uintptr_t>(arguments[i]) % 16 == 0) continue;
    std::snprintf(why, BERTH_CUDNN_WHY_BYTES, "CUDNN_STATUS_BAD_PARAM");
    return 1;
  }
  fake().arguments.assign(arguments, arguments + num_arguments);
  fake().arguments.push_back(scratch);
  fake().stream = stream;
  return 0;
}

}  // namespace

berth::cuda::FakeCudnn& berth_fake_cudnn() {
  static auto& one = *new berth::cuda::FakeCudnn;
  return one;
}

extern "C" __attribute__((visibility("default")))
const char berth_opened_by_plugin = 1;

extern "C" __attribute__((visibility("default")))
const BerthCudnnApi berth_cudnn_api = {BERTH_CUDNN_API_VERSION,
                                       fake_open,
                                       fake_version,
                                       fake_make_card,
                                       fake_drop_card,
                                       fake_key,
                                       fake_make_plan,
                                       fake_load_plan,
                                       fake_save_plan,
                                       fake_drop_plan,
                                       fake_scratch,
                                       fake_arguments,
                                       fake_name,
                                       fake_run};
