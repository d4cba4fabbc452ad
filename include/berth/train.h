// train: checkpoints (tf.train).
//
//   train::Checkpoint checkpoint({{"model", model}, {"epoch", epoch}});
//   train::CheckpointManager manager(checkpoint, "runs/7", {.max_to_keep = 3});
//   manager.restore_or_initialize();
//   ... manager.save();
// A checkpoint at "runs/7/ckpt-3" is ckpt-3.safetensors (or several) with the
// values and ckpt-3.json, the manifest, which is written last: without it
// there is no checkpoint. Files are complete on disk before they get their
// names, so that a killed process leaves the previous checkpoint intact.
// Values have names, not places: they can be restored onto any devices.
// One Checkpoint belongs to one thread at a time. docs/checkpoints.md.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_TRAIN_H_
#define BERTH_TRAIN_H_

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/site.h"
#include "berth/tensor.h"
#include "berth/variable.h"

namespace berth::data {
class Iterator;
}

namespace berth::train {

// The state of an object besides variables.
struct ObjectState {
  std::map<std::string, Tensor> tensors;
  std::string text;  // UTF-8
};

struct NamedVariable {
  // Unique within its object, and the same in every process. For a slot:
  // "{}/momentum", where {} becomes the name of `slot_of`.
  std::string name;
  Variable variable;
  Variable slot_of = {};  // of an optimizer: the variable it belongs to
};

// How an object is stored. Models, layers, optimizers, metrics, functions and
// iterators have theirs; derive from it for objects of your own. Its methods
// are called by the thread that saves or restores.
class Tracked {
 public:
  virtual ~Tracked() = default;
  virtual std::string kind() const = 0;  // "Model": for manifest and errors
  virtual std::vector<NamedVariable> variables() const { return {}; }
  virtual ObjectState state() const { return {}; }
  // Called after the variables have their values.
  virtual void set_state(const ObjectState&) {}
  // Makes the slots that these variables will have.
  virtual void make_slots(const std::vector<Variable>&) {}
  // The part before {} in the names of slots.
  virtual std::string slot_prefix() const { return {}; }
  // Takes the value of a variable that is not made yet, for when it is. False:
  // there will be none with that name.
  virtual bool restore_later(const std::string& name, const Tensor& value);
  // Whether its variables may also be tracked on their own: these names win.
  virtual bool has_parts() const { return false; }
};

// A class of your own: a member tracked(), or a function beside the class.
template <class T>
concept HasTrackedMember = requires(const T& t) {
  { t.tracked() } -> std::convertible_to<std::shared_ptr<Tracked>>;
};
template <class T>
concept HasTrackedFunction = !HasTrackedMember<T> && requires(const T& t) {
  { tracked(t) } -> std::convertible_to<std::shared_ptr<Tracked>>;
};

template <class F>
concept HasRandomState = requires(const F& f) {
  f.core().random_state();
};

// Anything that a checkpoint can hold. Iterators, numbers and texts are kept by
// reference and must live as long.
class Trackable {
 public:
  Trackable(std::shared_ptr<Tracked> tracked);        // NOLINT
  Trackable(const Variable& variable);                // NOLINT
  Trackable(const std::vector<Variable>& variables);  // NOLINT: "0", "1", ...
  Trackable(int& value);                              // NOLINT
  Trackable(int64_t& value);                          // NOLINT
  Trackable(double& value);                           // NOLINT
  Trackable(bool& value);                             // NOLINT
  Trackable(std::string& value);                      // NOLINT
  Trackable(data::Iterator& iterator);                // NOLINT
  template <HasTrackedMember T>
  Trackable(const T& object)  // NOLINT
      : Trackable(std::shared_ptr<Tracked>(object.tracked())) {}
  template <HasTrackedFunction T>
  Trackable(const T& object)  // NOLINT
      : Trackable(tracked_of(object)) {}
  // The future random numbers of a Function.
  template <HasRandomState F>
  Trackable(const F& f)  // NOLINT
      : Trackable(of_function([f] { return f.core().random_state(); },
                              [f](const std::string& text) {
                                f.core().set_random_state(text);
                              })) {}

  const std::shared_ptr<Tracked>& tracked() const { return tracked_; }

 private:
  template <class T>
  static std::shared_ptr<Tracked> tracked_of(const T& object);
  static std::shared_ptr<Tracked> of_function(
      std::function<std::string()> state,
      std::function<void(const std::string&)> set_state);
  std::shared_ptr<Tracked> tracked_;
};

namespace internal {
template <class T>
std::shared_ptr<Tracked> call_tracked(const T& object) {
  return tracked(object);  // found beside the class
}
}  // namespace internal

template <class T>
std::shared_ptr<Tracked> Trackable::tracked_of(const T& object) {
  return internal::call_tracked(object);
}

// The random state of the process: the seed of random::set_seed(), and the
// number of random calls.
Trackable random_state();

using Objects = std::vector<std::pair<std::string, Trackable>>;

struct CheckpointOptions {
  // Copies the values, and writes them while the program continues. The next
  // save, or sync(), waits for it and throws its error.
  bool enable_async = false;
  // Files that the values are distributed over, written in parallel.
  int shards = 1;
};

// The result of restore(). Unless expect_partial() or an assert follows,
// mismatches are reported ("checkpoint-partial") when the last copy ends.
class LoadStatus {
 public:
  // Names in the checkpoint. `deferred`: values of variables that are not made
  // yet. `missing`: of objects, but not in the checkpoint; they stay unchanged.
  // `unused`: only in the checkpoint.
  const std::vector<std::string>& restored() const;
  const std::vector<std::string>& deferred() const;
  const std::vector<std::string>& missing() const;
  const std::vector<std::string>& unused() const;

  // Throw errors::FailedPrecondition with the names if there are missing or
  // unused ones; missing ones.
  const LoadStatus& assert_consumed(Site site = Site::here()) const;
  const LoadStatus& assert_existing_objects_matched(
      Site site = Site::here()) const;
  // Declares that mismatches are intended.
  const LoadStatus& expect_partial() const;

  struct Found;
  explicit LoadStatus(std::shared_ptr<Found> found)
      : found_(std::move(found)) {}

 private:
  std::shared_ptr<Found> found_;
};

// A value handle.
class Checkpoint {
 public:
  // Names must differ; they become the first part of the names of values.
  // Throws errors::InvalidArgument.
  explicit Checkpoint(Objects objects, Site site = Site::here());

  // Holds these objects from now on. Throws as the constructor does.
  void set_objects(Objects objects, Site site = Site::here());

  // Writes "PREFIX-N", where N counts the saves, and returns that path; the
  // folder is made if it does not exist. Throw errors::ResourceExhausted (the
  // disk is full), PermissionDenied, NotFound (no folder, in write()),
  // Unavailable (another writer), FailedPrecondition (a variable is torn);
  // existing files then stay.
  std::string save(const std::string& file_prefix,
                   const CheckpointOptions& options = {},
                   Site site = Site::here());
  // Writes to `path` itself, without counting.
  std::string write(const std::string& path,
                    const CheckpointOptions& options = {},
                    Site site = Site::here());

  // Restores the values of "dir/ckpt-3" (or latest_checkpoint()) into the
  // objects, also into torn variables; later saves continue that count. Nothing
  // changes if a shape or dtype does not fit (errors::InvalidArgument) or a
  // file is missing (NotFound), truncated or of another kind (DataLoss), or
  // newer than this library (Unimplemented). Bytes damaged in place are
  // detected while they are read: variables read until then are torn, and can
  // be restored from elsewhere.
  LoadStatus restore(const std::string& path, Site site = Site::here());
  LoadStatus read(const std::string& path, Site site = Site::here());

  // Waits until pending writes are done. Throws their error.
  void sync();

  int64_t save_counter() const;

  struct Impl;

 private:
  friend class CheckpointManager;
  std::shared_ptr<Impl> impl_;
};

struct CheckpointManagerOptions {
  int max_to_keep = 5;  // older ones are deleted; 0: all stay
  // Keeps one checkpoint per this many hours of those that would be deleted; 0:
  // none.
  double keep_checkpoint_every_n_hours = 0;
  std::string checkpoint_name = "ckpt";
  // Numbers the checkpoints, instead of the count of saves: an integer scalar.
  Variable step_counter = {};
  // save() does nothing until the counter has increased by this; 0: always
  // saves.
  int64_t checkpoint_interval = 0;
  // Called by restore_or_initialize() if there is no checkpoint.
  std::function<void()> init_fn = {};
  CheckpointOptions checkpoint_options = {};
};

// Checkpoints of one folder, numbered.
class CheckpointManager {
 public:
  // Throws errors::InvalidArgument for invalid options. Nothing is written
  // before the first save(). "": the folder AIP_CHECKPOINT_DIR.
  CheckpointManager(Checkpoint checkpoint, std::string directory = "",
                    CheckpointManagerOptions options = {},
                    Site site = Site::here());

  // Saves, then deletes old checkpoints. Returns the path; nullopt if
  // checkpoint_interval has not passed. From the first save on the folder
  // belongs to this manager: another one gets errors::Unavailable. Throws the
  // errors of Checkpoint::save().
  std::optional<std::string> save(
      std::optional<int64_t> checkpoint_number = std::nullopt,
      bool check_interval = true, Site site = Site::here());

  // Restores the latest checkpoint completely (LoadStatus::assert_consumed);
  // without one calls init_fn. Returns the restored path.
  std::optional<std::string> restore_or_initialize(Site site = Site::here());

  // Waits for asynchronous saves; throws their errors.
  void sync();

  // Deletes all checkpoints, and the folder if nothing else is in it.
  void clear();

  // The complete checkpoints, oldest first; the last of them.
  std::vector<std::string> checkpoints() const;
  std::optional<std::string> latest_checkpoint() const;
  const std::string& directory() const;
  int64_t checkpoint_interval() const;
  Checkpoint checkpoint() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Returns the path of the last complete checkpoint in a folder; nullopt if
// there is none, or no such folder.
std::optional<std::string> latest_checkpoint(const std::string& checkpoint_dir);

// Names, shapes and dtypes in a checkpoint, or in the latest one of a folder.
// Throws as Checkpoint::read() does.
std::vector<TensorSpec> list_variables(const std::string& ckpt_dir_or_file,
                                       Site site = Site::here());
// Reads one of them, to the host. Throws errors::NotFound with similar names.
Tensor load_variable(const std::string& ckpt_dir_or_file,
                     const std::string& name, Site site = Site::here());

}  // namespace berth::train

#endif  // BERTH_TRAIN_H_
