// What a Checkpoint is made of: the list of its values, and their writer.

#ifndef BERTH_IO_CHECKPOINT_IMPL_H_
#define BERTH_IO_CHECKPOINT_IMPL_H_

#include <exception>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "berth/train.h"
#include "io/atomic_file.h"
#include "io/manifest.h"
#include "io/pinned_copy.h"
#include "io/safetensors.h"

namespace berth::train {

// Values by their names in the checkpoint.
struct NamedValues {
  std::map<std::string, Variable> variables;
  std::map<const TensorImpl*, std::string> name_of;
};

// What one save writes.
struct SaveJob {
  std::string path, subject;
  io::Manifest manifest;
  std::vector<io::TensorToWrite> tensors;
  int shards = 1;
  std::unique_ptr<io::WriteLock> lock;  // of the path, while it is written

  // Writes the files, then the manifest. Throws.
  void run();
};

// A checkpoint in memory. Its values are in `buffer`, or own their memory; a
// task that gets it from another one has no buffer.
struct CheckpointImage {
  std::map<std::string, io::Manifest::Object> objects;
  std::vector<io::TensorToWrite> tensors;
  io::SaveBuffer buffer;
};

struct Checkpoint::Impl {
  Impl(Objects objects, Site site);
  ~Impl();

  void set_objects(Objects objects, Site site);
  // The names of all variables.
  NamedValues named_values() const;
  // Everything, as it is now.
  SaveJob collect(const std::string& path, Site site) const;
  void save(SaveJob job, const CheckpointOptions& options);
  // Waits for what is being written; throws its error.
  void wait();
  // Waits, too; says on the error stream what was lost.
  void wait_at_end() noexcept;

  LoadStatus restore(const std::string& path, bool counts, const char* what,
                     Site site);
  // Copies everything, as it is now; `image` lends its memory of before.
  void copy_to(CheckpointImage* image, Site site) const;
  LoadStatus restore(const CheckpointImage& image, const char* what, Site site);

  Objects objects;
  int64_t save_counter = 0;

 private:
  io::SaveBuffer staging_;  // of asynchronous saves, kept for the next one
  std::thread writer_;
  std::exception_ptr error_;  // of the last one; written by it before it ends
};

struct LoadStatus::Found {
  std::string path;
  Site site = {};
  std::vector<std::string> restored, deferred, missing, unused;
  bool meant = false;

  ~Found();
  std::string text() const;
};

// "Checkpoint.save (train.cc:12)"
std::string call_at(const char* what, Site site);

// The part of a shard, "ckpt-3-00001-of-00004.safetensors".
std::string shard_name(const std::string& base, int shard, int shards);

// The name of what replica `part` has of a variable.
std::string part_name(const std::string& variable, size_t part);

}  // namespace berth::train

#endif  // BERTH_IO_CHECKPOINT_IMPL_H_
