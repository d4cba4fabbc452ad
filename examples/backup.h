// --checkpoint, --every, --resume: an example that is killed and goes on.

#ifndef EXAMPLES_BACKUP_H_
#define EXAMPLES_BACKUP_H_

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "berth/berth.h"

namespace example {

struct Backup {
  std::string folder;
  int64_t every = 0;  // steps; 0: an epoch
  bool resume = false;
};

inline void add_flags(CLI::App* app, Backup* b) {
  auto* folder = app->add_option("--checkpoint", b->folder,
                                 "folder for the state of the training");
  app->add_option("--every", b->every, "saves it every N steps, not epochs")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->needs(folder);
  app->add_flag("--resume", b->resume, "goes on from what --checkpoint holds")
      ->needs(folder);
}

// What saves on the way, and goes on from what was saved. Throws
// errors::AlreadyExists where something was saved and resume is not asked for.
inline std::vector<berth::keras::Callback> callbacks_of(const Backup& b) {
  if (b.folder.empty()) return {};
  if (!b.resume && berth::train::latest_checkpoint(b.folder)) {
    throw berth::errors::AlreadyExists(fmt::format(
        "--checkpoint {} holds a checkpoint; give --resume to go on from it, "
        "or another folder",
        b.folder));
  }
  namespace callbacks = berth::keras::callbacks;
  return {callbacks::BackupAndRestore(
      b.folder,
      {.save_freq = b.every > 0 ? callbacks::SaveFreq(b.every) : "epoch",
       .delete_checkpoint = false,
       .save_before_preemption = true})};
}

}  // namespace example

#endif  // EXAMPLES_BACKUP_H_
