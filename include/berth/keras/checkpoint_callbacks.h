// checkpoint_callbacks: what fit saves during training (tf.keras.callbacks).
//
//   model.fit(x, y, {.epochs = 50,
//                    .callbacks = {callbacks::BackupAndRestore("runs/7"),
//                                  callbacks::ModelCheckpoint(
//                                      "best/{epoch:02d}-{val_loss:.2f}",
//                                      {.save_best_only = true})}});
// Files are written whole or not at all (train.h).
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_CHECKPOINT_CALLBACKS_H_
#define BERTH_KERAS_CHECKPOINT_CALLBACKS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "berth/keras/callbacks.h"
#include "berth/multi_worker.h"
#include "berth/site.h"

namespace berth::train {
class Tracked;
}

namespace berth::keras {

class Layer;
class Metric;
class Optimizer;

// Their state in a checkpoint (train.h); Model has a member of this name.
std::shared_ptr<train::Tracked> tracked(const Layer& layer);  // the weights
std::shared_ptr<train::Tracked> tracked(const Optimizer& optimizer);
std::shared_ptr<train::Tracked> tracked(const Metric& metric);

}  // namespace berth::keras

namespace berth::keras::callbacks {

// "epoch", or a number of batches.
struct SaveFreq {
  SaveFreq(const char* epoch);         // NOLINT: {.save_freq = "epoch"}
  SaveFreq(const std::string& epoch);  // NOLINT
  SaveFreq(int batches) : SaveFreq(static_cast<int64_t>(batches)) {}  // NOLINT
  // Throws errors::InvalidArgument for less than 1, or another word.
  SaveFreq(int64_t batches);  // NOLINT
  int64_t batches = 0;        // 0: at the end of each epoch
};

struct ModelCheckpointOptions {
  std::string monitor = "val_loss";
  int verbose = 0;  // 1: a line per file
  // Only when `monitor` is better than ever before.
  bool save_best_only = false;
  // True: save_weights(). False: save(), for load_model(); load_weights() reads
  // that as well. BackupAndRestore resumes bit for bit.
  bool save_weights_only = false;
  std::string mode = "auto";  // "min", "max"; auto: by the name of `monitor`
  SaveFreq save_freq = "epoch";
  std::optional<double> initial_value_threshold = std::nullopt;
  std::string format = "safetensors";
};
// Saves to `filepath`, in which {epoch} and {batch}, counted from 1, and names
// of logs are replaced by their values: "{epoch:02d}-{val_loss:.2f}". Throws
// errors::InvalidArgument for another format or a file name that requests one,
// and in fit for unknown names. "": a file per epoch in the folder
// AIP_CHECKPOINT_DIR.
Callback ModelCheckpoint(const std::string& filepath = "",
                         ModelCheckpointOptions options = {},
                         Site site = Site::here());

struct BackupAndRestoreOptions {
  SaveFreq save_freq = "epoch";
  bool double_checkpoint = false;  // keeps the previous one as well
  // When fit ends; a later fit then starts from the beginning.
  bool delete_checkpoint = true;
  bool enable_async = false;  // as in train::CheckpointOptions
  // Saves after the step in which SIGTERM comes to any task, then ends all of
  // them, so that fit resumes there when they are started again.
  bool save_before_preemption = false;
  distribute::TerminationConfig termination_config = {};
};
// Makes fit resume where an interrupted fit, killed for example, saved last: in
// the middle of an epoch, with the input where it was, bit for bit as if it had
// never stopped. Holds model, optimizer, metrics, history, position, random
// state, the pass over the data, and the state of the other callbacks. Once per
// fit; after the callbacks whose state counts batches. "": the folder
// AIP_CHECKPOINT_DIR.
Callback BackupAndRestore(const std::string& backup_dir = "",
                          BackupAndRestoreOptions options = {},
                          Site site = Site::here());

}  // namespace berth::keras::callbacks

#endif  // BERTH_KERAS_CHECKPOINT_CALLBACKS_H_
