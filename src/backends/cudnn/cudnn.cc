// libberth_cudnn.so: implements cudnn_api.h with cudnn-frontend, in a single
// source because that takes a minute to compile.

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cudnn/cudnn_graphs.h"

// cudnn-frontend looks for cuDNN's functions in this.
void* cudnn_frontend::cudnn_dlhandle = nullptr;

// A card and its handles; cuDNN allows each to be used by one thread at a time.
struct BerthCudnnCard {
  int32_t architecture = 0;
  std::shared_ptr<cudnn_frontend::DeviceProperties> properties;  // if absent
  std::mutex plan_mutex;
  cudnnHandle_t plan_handle = nullptr;
  std::mutex run_mutex;
  cudnnHandle_t run_handle = nullptr;
  void* stream = nullptr;  // of run_handle
};

// A graph that tells the numerical properties of its plan, such as WINOGRAD.
class NotedGraph : public cudnn_frontend::graph::Graph {
 public:
  // Returns them, each after a space; "" for a plan that was read.
  std::string notes() const {
    std::string all;
    const auto at = static_cast<size_t>(plans.candidate);
    if (at >= plans.numeric_notes.size()) return all;
    for (const auto note : plans.numeric_notes[at]) {
      // The frontend's list has empty ones as well.
      if (note == cudnn_frontend::NumericalNote_t::NOT_SET) continue;
      cudnnBackendNumericalNote_t name{};
      cudnn_frontend::detail::convert_to_cudnn_type(note, name);
      all += " " + cudnn_frontend::to_string(name).substr(kPrefix.size());
    }
    return all;
  }

 private:
  static constexpr std::string_view kPrefix = "CUDNN_NUMERICAL_NOTE_";
};

struct BerthCudnnPlan {
  BerthCudnnCard* card = nullptr;
  NotedGraph graph;
  int arguments = 0;
  int again = 0;
  size_t scratch = 0;
  std::string name;
  std::vector<uint8_t> data;
};

namespace {

namespace fe = cudnn_frontend;
using berth::cudnn::GraphWriter;

constexpr int64_t kMostScratch = int64_t{1} << 30;

// cuDNN's libraries next to the first.
constexpr const char* kParts[] = {
    "libcudnn_ops.so.9",      "libcudnn_cnn.so.9",
    "libcudnn_adv.so.9",      "libcudnn_engines_precompiled.so.9",
    "libcudnn_graph.so.9",    "libcudnn_engines_runtime_compiled.so.9",
    "libcudnn_heuristic.so.9"};

int32_t fail(char* why, const std::string& text) {
  std::snprintf(why, BERTH_CUDNN_WHY_BYTES, "%s", text.c_str());
  return 1;
}

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void check(fe::error_t e, const char* what) {
  if (e.is_bad()) throw Failure(std::string(what) + ": " + e.get_message());
}

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw Failure(std::string(what) + ": " +
                fe::detail::get_error_string(status));
}

// Runs `fn`, which throws on failure.
template <class Fn>
int32_t guarded(char* why, Fn&& fn) noexcept {
  try {
    fn();
    return 0;
  } catch (const std::exception& e) {
    return fail(why, e.what());
  } catch (...) {
    return fail(why, "an exception of no known type");
  }
}

std::mutex open_mutex;
std::string& opened_folder() {
  static std::string& folder = *new std::string;
  return folder;
}

// cuDNN's first library opens its parts by plain name on demand; parts that are
// already open are used.
int32_t open_cudnn(const char* folder, char* why) {
  return guarded(why, [&] {
    std::lock_guard lock(open_mutex);
    if (fe::cudnn_dlhandle != nullptr) {
      if (opened_folder() == folder) return;
      throw Failure("cuDNN is open already, from " + opened_folder());
    }
    const std::string begin =
        *folder == 0 ? std::string() : std::string(folder) + "/";
    const auto take = [&](const char* name) {
      void* part = dlopen((begin + name).c_str(), RTLD_NOW | RTLD_LOCAL);
      if (part == nullptr) throw Failure(dlerror());
      return part;
    };
    void* first = take("libcudnn.so.9");
    if (*folder != 0) {
      for (const char* part : kParts) take(part);
    }
    if (dlsym(first, "cudnnGetVersion") == nullptr ||
        dlsym(first, "cudnnBackendCreateDescriptor") == nullptr) {
      throw Failure("libcudnn.so.9 has no backend functions");
    }
    opened_folder() = folder;
    fe::cudnn_dlhandle = first;
  });
}

int64_t cudnn_version() {
  return fe::cudnn_dlhandle == nullptr
             ? 0
             : static_cast<int64_t>(fe::detail::get_backend_version());
}

void drop_card(BerthCudnnCard* card) {
  if (card == nullptr) return;
  char why[BERTH_CUDNN_WHY_BYTES];
  guarded(why, [&] {
    if (card->plan_handle) fe::detail::destroy_handle(card->plan_handle);
    if (card->run_handle) fe::detail::destroy_handle(card->run_handle);
  });
  delete card;
}

int32_t make_card(const char* properties, int32_t architecture,
                  BerthCudnnCard** result, char* why) {
  *result = nullptr;
  auto* card = new BerthCudnnCard;
  card->architecture = architecture;
  const int32_t bad = guarded(why, [&] {
    if (properties == nullptr) {
      check(fe::detail::create_handle(&card->plan_handle), "cudnnCreate");
      check(fe::detail::create_handle(&card->run_handle), "cudnnCreate");
      return;
    }
    card->properties = std::make_shared<fe::DeviceProperties>();
    const std::vector<uint8_t> text(properties,
                                    properties + std::strlen(properties));
    check(card->properties->deserialize(text), "properties of the card");
  });
  if (bad != 0) {
    drop_card(card);
    return bad;
  }
  *result = card;
  return 0;
}

size_t card_key(BerthCudnnCard* card, char* text, size_t bytes) {
  std::string key;
  char why[BERTH_CUDNN_WHY_BYTES];
  const int32_t bad = guarded(why, [&] {
    std::lock_guard lock(card->plan_mutex);
    auto properties = card->properties;
    if (!properties) {
      properties = std::make_shared<fe::DeviceProperties>();
      properties->set_handle(card->plan_handle);
      check(properties->build(), "properties of the card");
    }
    std::vector<uint8_t> data;
    check(properties->serialize(data), "properties of the card");
    while (!data.empty() && data.back() == 0) data.pop_back();
    auto json = nlohmann::json::parse(data.begin(), data.end());
    json.erase("cudaDeviceId");
    key = std::to_string(cudnn_version()) + " " +
          std::to_string(CUDNN_FRONTEND_VERSION) + " " + json.dump();
  });
  if (bad != 0) return 0;
  if (bytes > 0) std::snprintf(text, bytes, "%s", key.c_str());
  return key.size() + 1;
}

void describe(BerthCudnnPlan& plan) {
  int64_t scratch = 0;
  check(plan.graph.get_workspace_size(scratch), "size of scratch");
  plan.scratch = static_cast<size_t>(scratch);
  if (plan.graph.get_plan_name(plan.name).is_bad()) plan.name = "plan";
  plan.name += plan.graph.notes();
  check(plan.graph.prepare_variant_pack_template(), "arguments");
  const size_t wanted = static_cast<size_t>(plan.arguments + plan.again);
  if (plan.graph.get_variant_pack_uids_sorted().size() != wanted ||
      wanted > BERTH_CUDNN_MOST_ARGUMENTS) {
    throw Failure("the plan has other arguments than the graph");
  }
}

// Numerical properties that plans of a graph must not have.
std::vector<fe::NumericalNote_t> refused(const BerthCudnnGraph& g) {
  std::vector<fe::NumericalNote_t> notes = {
      fe::NumericalNote_t::NONDETERMINISTIC,
      fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION,
      fe::NumericalNote_t::WINOGRAD_TILE_13x13};
  if (g.type == BERTH_CUDNN_FLOAT32 && g.tf32 == 0) {
    // On float32, tensor cores round what they multiply to TF32.
    notes.push_back(fe::NumericalNote_t::TENSOR_CORE);
    notes.push_back(fe::NumericalNote_t::DOWN_CONVERT_INPUTS);
    // Their relative errors are above 1e-5, which conformance allows.
    notes.push_back(fe::NumericalNote_t::WINOGRAD);
    notes.push_back(fe::NumericalNote_t::WINOGRAD_TILE_4x4);
    notes.push_back(fe::NumericalNote_t::WINOGRAD_TILE_6x6);
  }
  return notes;
}

void build(BerthCudnnPlan& plan, const BerthCudnnGraph& g) {
  fe::graph::Graph& graph = plan.graph;
  cudnnHandle_t handle = plan.card->plan_handle;
  check(graph.validate(), "graph");
  check(handle ? graph.build_operation_graph(handle)
               : graph.build_operation_graph(),
        "operations");
  check(graph.create_execution_plans(
            {fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}),
        "plans");
  graph.deselect_numeric_notes(refused(g));
  graph.deselect_workspace_greater_than(kMostScratch);
  check(graph.check_support(), "support");
  check(graph.build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE), "plan");
}

// Makes a plan with `fn`.
template <class Fn>
int32_t new_plan(BerthCudnnCard* card, BerthCudnnPlan** result, char* why,
                 Fn&& fn) {
  *result = nullptr;
  return guarded(why, [&] {
    auto plan = std::make_unique<BerthCudnnPlan>();
    plan->card = card;
    std::lock_guard lock(card->plan_mutex);
    plan->graph.set_sm_version(card->architecture);
    if (card->properties) plan->graph.set_device_properties(card->properties);
    fn(*plan);
    describe(*plan);
    *result = plan.release();
  });
}

int32_t make_plan(BerthCudnnCard* card, const BerthCudnnGraph* g,
                  BerthCudnnPlan** result, char* why) {
  return new_plan(card, result, why, [&](BerthCudnnPlan& plan) {
    GraphWriter writer(*g, plan.graph);
    writer.write();
    plan.arguments = writer.arguments();
    plan.again = writer.again();
    build(plan, *g);
  });
}

int32_t load_plan(BerthCudnnCard* card, const BerthCudnnGraph* g,
                  const uint8_t* data, size_t bytes, BerthCudnnPlan** result,
                  char* why) {
  return new_plan(card, result, why, [&](BerthCudnnPlan& plan) {
    fe::graph::Graph counted;
    GraphWriter writer(*g, counted);
    writer.write();
    plan.arguments = writer.arguments();
    plan.again = writer.again();
    const std::vector<uint8_t> copy(data, data + bytes);
    check(card->properties
              ? plan.graph.deserialize(copy, true)
              : plan.graph.deserialize(card->plan_handle, copy, true, false),
          "kept plan");
  });
}

const uint8_t* save_plan(BerthCudnnPlan* plan, size_t* bytes) {
  *bytes = 0;
  char why[BERTH_CUDNN_WHY_BYTES];
  const int32_t bad = guarded(why, [&] {
    std::lock_guard lock(plan->card->plan_mutex);
    if (plan->data.empty()) {
      check(plan->graph.serialize(plan->data, false), "plan");
    }
  });
  if (bad != 0) return nullptr;
  *bytes = plan->data.size();
  return plan->data.data();
}

void drop_plan(BerthCudnnPlan* plan) { delete plan; }

size_t plan_scratch(const BerthCudnnPlan* plan) { return plan->scratch; }

int32_t plan_arguments(const BerthCudnnPlan* plan) { return plan->arguments; }

const char* plan_name(const BerthCudnnPlan* plan) { return plan->name.c_str(); }

int32_t run_plan(BerthCudnnPlan* plan, void* stream, void* const* arguments,
                 int32_t num_arguments, void* scratch, char* why) {
  return guarded(why, [&] {
    if (num_arguments != plan->arguments) {
      throw Failure("a run with a wrong number of arguments");
    }
    std::array<void*, BERTH_CUDNN_MOST_ARGUMENTS> all{};
    int n = 0;
    for (; n < num_arguments; ++n) all[static_cast<size_t>(n)] = arguments[n];
    for (int i = 0; i < plan->again; ++i) {
      all[static_cast<size_t>(n++)] = arguments[1];
    }
    BerthCudnnCard& card = *plan->card;
    std::lock_guard lock(card.run_mutex);
    if (card.run_handle == nullptr) throw Failure("the card is not here");
    if (card.stream != stream) {
      check(fe::detail::set_stream(card.run_handle,
                                   static_cast<cudaStream_t>(stream)),
            "cudnnSetStream");
      card.stream = stream;
    }
    check(plan->graph.execute(card.run_handle, all.data(), n, scratch), "run");
  });
}

}  // namespace

extern "C" __attribute__((visibility("default")))
const char berth_opened_by_plugin = 1;

extern "C" __attribute__((visibility("default")))
const BerthCudnnApi berth_cudnn_api = {BERTH_CUDNN_API_VERSION,
                                       open_cudnn,
                                       cudnn_version,
                                       make_card,
                                       drop_card,
                                       card_key,
                                       make_plan,
                                       load_plan,
                                       save_plan,
                                       drop_plan,
                                       plan_scratch,
                                       plan_arguments,
                                       plan_name,
                                       run_plan};
