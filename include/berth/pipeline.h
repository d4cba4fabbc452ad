// Pipelines: a model cut into stages on several devices, which work on
// different parts of a batch at the same time.
//
// A step gives the gradients of the whole batch: sums over its parts are added
// before the one update. BatchNormalization alone differs from one device: each
// part has its own moments, as with accumulated gradients, and the moving
// averages move by their mean.
//
// Options are written by name, in the order of their struct:
// PipelineStrategy({"/GPU:0", "/GPU:1"}, {.micro_batches = 8, .stages =
// {"b"}}).

#ifndef BERTH_PIPELINE_H_
#define BERTH_PIPELINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "berth/distribute.h"
#include "berth/model_parallel.h"
#include "berth/site.h"

namespace berth::distribute {

// In which order a stage runs forward (F) and backward (B) passes of the parts
// of a batch. The zero-bubble schedules divide B into what the stage before
// waits for (I) and the gradients of weights (W).
enum class PipelineSchedule : uint8_t {
  kGPipe,            // all F, then all B (Huang et al. 2019)
  k1F1B,             // B as early as possible (Narayanan et al. 2019)
  kInterleaved1F1B,  // several stages per device (Narayanan et al. 2021)
  kZbH1,             // memory of 1F1B, a third of its bubble (Qi et al. 2023)
  kZbV,              // two stages per device, there and back (Qi et al. 2024)
};

struct PipelineOptions {
  // Parts of a batch, as even as possible. A batch of fewer examples has as
  // many parts as examples.
  int micro_batches = 4;
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  // The layers with which each stage but the first begins, in the order in
  // which the model calls them: names as in summary(), those of parts as
  // "block/dense". Stage s is on device s % n; with kZbV on s and, for the
  // second half, 2n - 1 - s. Empty: device scopes of the model say which
  // ("/GPU:1" is the second); without any, the first step cuts the model so
  // that the slowest stage is as fast as it can be, by estimates, and each
  // device has memory for its own. Variables wait on the host until then.
  std::vector<std::string> stages = {};
  // Instructions in place of the schedule's: a line per device, such as
  // "0F0 0F1 0B0 0B1": stage, pass, part of the batch. They hold for batches of
  // `micro_batches` parts.
  std::string instructions = {};
  // Results have the same bits for any number of micro-batches and on one
  // device with as many slices; 0: they may differ.
  int slices = 0;
};

// Each device has a part of the model, and of its variables and optimizer
// state. fit, evaluate and predict run micro-batches; run() calls its function
// once, on the whole batch.
struct PipelineStrategy : Strategy {
  // Throws errors::InvalidArgument for devices that do not exist, fewer than
  // one micro-batch, stages that do not fit the schedule, and instructions that
  // lack a pass, run one too early, or wait for each other.
  explicit PipelineStrategy(std::vector<std::string> devices,
                            PipelineOptions options = {},
                            Site site = Site::here());

  // Stages of several devices, which divide the variables of a layout map and
  // the ops that use them (model_parallel.h): stages are along the axis
  // `stage_dim_name` of its mesh. Throws errors::InvalidArgument as above and
  // as ModelParallel does.
  explicit PipelineStrategy(LayoutMap layout_map,
                            const std::string& stage_dim_name,
                            PipelineOptions options = {},
                            Site site = Site::here());

  const PipelineOptions& options() const;
  // The instructions of a batch of micro_batches parts, a line per device.
  std::string instructions() const;
};

}  // namespace berth::distribute

#endif  // BERTH_PIPELINE_H_
