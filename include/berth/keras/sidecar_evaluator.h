// sidecar_evaluator: a process beside training that evaluates its checkpoints
// (tf.keras.utils.SidecarEvaluator).
//
//   if (resolver.task_type() == "evaluator") {
//     keras::utils::SidecarEvaluator(model, data, {.checkpoint_dir = "runs/7"})
//         .start();
//   }
//
// Acts in the task that calls start(), which blocks. One thread.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_SIDECAR_EVALUATOR_H_
#define BERTH_KERAS_SIDECAR_EVALUATOR_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "berth/data.h"
#include "berth/keras/models.h"

namespace berth::keras::utils {

struct SidecarEvaluatorOptions {
  // Where BackupAndRestore or a CheckpointManager writes checkpoints with a
  // "model", or ModelCheckpoint files of weights; "": AIP_CHECKPOINT_DIR.
  std::string checkpoint_dir = "";
  int64_t steps = 0;        // batches per evaluation; 0: all
  int max_evaluations = 0;  // then start() returns; 0: until `done`
  std::vector<Callback> callbacks = {};
  // Called between evaluations: true once training has ended. The last
  // checkpoint is still evaluated. Empty: never.
  std::function<bool()> done = {};
  double poll_seconds = 1;  // between looks at the folder
  int verbose = 1;          // 1: a line per evaluation
};

class SidecarEvaluator {
 public:
  // The model must be compiled. Throws errors::InvalidArgument for invalid
  // options, and if there is no folder.
  SidecarEvaluator(Model model, data::Dataset data,
                   SidecarEvaluatorOptions options = {},
                   Site site = Site::here());
  // Evaluates each checkpoint once, the latest if several have appeared
  // meanwhile, and returns the results of evaluate(). Checkpoints deleted
  // before they were read are skipped. Throws the errors of evaluate(), and
  // errors::InvalidArgument for a checkpoint of another model.
  std::vector<Logs> start();

 private:
  bool load(const std::string& path);

  Model model_;
  data::Dataset data_;
  SidecarEvaluatorOptions options_;
  Site site_;
};

}  // namespace berth::keras::utils

#endif  // BERTH_KERAS_SIDECAR_EVALUATOR_H_
