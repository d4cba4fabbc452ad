// AutoStrategy: the way to divide a model over devices, found automatically.
//
//   distribute::AutoStrategy automatic({"/GPU:0", "/GPU:1"});
//   {
//     auto scope = automatic.scope();
//     model = make_model();
//     model.compile({.optimizer = "adam", .loss = "mse"});
//   }
//   std::cout << automatic.choose(model, 256).str();  // what, why, how good
//   model.fit(x, y, {.batch_size = 256});
//
// Chooses among what the other strategies run: one device, MirroredStrategy
// with shares and sharding, ModelParallel, PipelineStrategy with and without
// divided layers. The first step chooses, or choose() before it; then it is a
// strategy of that kind, with its results.
// Options are written by name, in the order of their struct.

#ifndef BERTH_AUTO_STRATEGY_H_
#define BERTH_AUTO_STRATEGY_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "berth/distribute.h"
#include "berth/model_parallel.h"
#include "berth/pipeline.h"
#include "berth/site.h"

namespace berth::distribute {

enum class ParallelKind : uint8_t {
  kOneDevice,
  kMirrored,          // MirroredStrategy
  kSharded,           // with .sharding
  kModelParallel,     // divided layers, also with an axis of batches
  kPipeline,          // PipelineStrategy
  kPipelineOfLayers,  // its stages divide layers
};

struct AutoStrategyOptions {
  // Bytes that each device may use; 0: the limit that it has, if any.
  int64_t memory_bytes_per_device = 0;
  // Micro-batches of a pipeline, at most.
  int most_micro_batches = 64;
  // Copies between devices in a step, at most; 0: any number.
  int64_t most_copies = 0;
  // What it may choose besides one device.
  bool replicas = true;        // MirroredStrategy
  bool sharding = true;        // its .sharding; needs replicas
  bool divided_layers = true;  // ModelParallel
  bool pipelines = true;
};

// A way to run the training step of a model on devices, and what is known of
// it. Times are predictions.
struct ParallelPlan {
  // What the plan is: arguments of the strategy that runs it.
  struct Choice {
    ParallelKind kind = ParallelKind::kOneDevice;
    std::vector<std::string> devices;  // full names, by replica or by stage
    int parts = 1;                     // devices that divide each layer
    Sharding sharding = Sharding::kNone;
    std::vector<int> shares;  // of batches, per replica; empty: equal
    // Divided variables, with the names of their axes; "model" divides.
    std::vector<std::pair<std::string, AxisNames>> layouts;
    PipelineSchedule schedule = PipelineSchedule::k1F1B;
    int micro_batches = 1;
    std::vector<std::string> stages;  // layers with which later stages begin
    std::string str() const;          // "PipelineStrategy of 4 devices, ..."
  };
  // The best plan of another kind, and why it was not chosen.
  struct Other {
    Choice choice;
    double step_us = 0;  // 0: it does not fit
    std::string why;     // "31 % slower: waiting 24 %, copies 7 %"
  };
  Choice choice;
  int64_t batch = 0;
  double step_us = 0;
  // With these costs and limits no plan of these kinds is faster.
  double bound_us = 0;
  double compute_us = 0, sums_us = 0, copies_us = 0;  // of the busiest device
  std::vector<int64_t> peak_bytes;                    // per device
  std::vector<Other> others;
  int candidates = 0;  // that were compared
  double search_seconds = 0;
  // No plan can be better by more than this share of the step.
  double gap() const { return step_us > 0 ? 1 - bound_us / step_us : 0; }

  std::string str() const;   // for people
  std::string json() const;  // docs/json.md
  // Writes json() to a file, atomically. Throws the errors of writing files.
  void save(const std::string& path, Site site = Site::here()) const;
  // Reads json(). Throws errors::InvalidArgument for a text that is not a plan,
  // naming what is missing; `what`: the file, for messages.
  static ParallelPlan parse(const std::string& text,
                            const std::string& what = "a plan");
};

// Variables wait on the host until the choice; then they move. run() is
// refused; a device() scope in the model is, too.
struct AutoStrategy : Strategy {
  // `devices`: of any types; empty: all GPUs, else all CPU devices. Throws
  // errors::InvalidArgument for devices that do not exist or come twice, and
  // for options below 0.
  explicit AutoStrategy(std::vector<std::string> devices = {},
                        AutoStrategyOptions options = {},
                        Site site = Site::here());

  // Chooses for training steps of a compiled model on so many examples, unless
  // that is done; returns the choice. Runs nothing but measurements. Throws
  // errors::ResourceExhausted if no plan fits, naming the closest, and what
  // Model::strategy_plan() throws.
  template <class Model>
  const ParallelPlan& choose(const Model& model, int64_t batch_size,
                             Site site = Site::here()) const {
    model.strategy_plan(*this, batch_size, site);
    return chosen(site);
  }
  // Returns the choice. Throws errors::FailedPrecondition before it.
  const ParallelPlan& chosen(Site site = Site::here()) const;
};

// Runs a plan that ParallelPlan::save() wrote.
struct PlannedStrategy : Strategy {
  // Throws the errors of reading files, and errors::InvalidArgument for a
  // damaged or foreign file and for devices that do not exist.
  explicit PlannedStrategy(const std::string& path, Site site = Site::here());
  explicit PlannedStrategy(const ParallelPlan& plan, Site site = Site::here());
};

}  // namespace berth::distribute

#endif  // BERTH_AUTO_STRATEGY_H_
