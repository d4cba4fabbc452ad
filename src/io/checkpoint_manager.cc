// CheckpointManager: the checkpoints of one folder; and what is asked of
// checkpoints without objects.

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "base/diagnostics.h"
#include "base/urls.h"
#include "base/vertex_folder.h"
#include "base/where.h"
#include "berth/errors.h"
#include "io/checkpoint_impl.h"

namespace berth::train {

namespace {

namespace fs = std::filesystem;

struct Numbered {
  int64_t number = 0;
  std::string path;
};

// "ckpt-12.json" of name "ckpt" -> 12.
std::optional<int64_t> number_of(const std::string& file,
                                 const std::string& name) {
  const std::string end = ".json";
  if (!file.starts_with(name + "-") || !file.ends_with(end)) return {};
  const char* from = file.data() + name.size() + 1;
  const char* to = file.data() + file.size() - end.size();
  int64_t number = 0;
  const auto [stop, code] = std::from_chars(from, to, number);
  if (code != std::errc() || stop != to || from == to) return {};
  return number;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (auto it = fs::directory_iterator(folder, code);
       !code && it != fs::directory_iterator(); it.increment(code)) {
    names.push_back(it->path().filename().string());
  }
  return names;
}

// A file is missing, cut, or has other bytes.
bool is_damage(const errors::Error& e) {
  return e.code() == errors::Code::kDataLoss ||
         e.code() == errors::Code::kNotFound;
}

bool is_complete(const std::string& path) {
  try {
    io::read_manifest(path, "");
    return true;
  } catch (const errors::Error&) {
    return false;
  }
}

// Those with a manifest, damaged ones too, by number.
std::vector<Numbered> numbered_in(const std::string& folder,
                                  const std::string& name) {
  std::vector<Numbered> list;
  for (const std::string& file : files_in(folder)) {
    const auto number = number_of(file, name);
    const std::string path =
        folder + "/" +
        file.substr(0, file.size() - std::min(file.size(), size_t{5}));
    if (number) list.push_back({*number, path});
  }
  std::sort(list.begin(), list.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  return list;
}

std::vector<Numbered> complete_in(const std::string& folder,
                                  const std::string& name) {
  std::vector<Numbered> list = numbered_in(folder, name);
  std::erase_if(list, [](const Numbered& c) { return !is_complete(c.path); });
  return list;
}

// A killed process leaves no damaged checkpoint, so that nobody expects one.
debugging::Diagnostic damage_report(const std::string& what, Site site) {
  return {"checkpoint-damaged", debugging::Severity::kWarning, what, site};
}

int64_t seconds_of(const std::string& path) {
  struct stat found;
  return stat((path + ".json").c_str(), &found) == 0 ? found.st_mtime : 0;
}

std::string keep_mark(const std::string& path) { return path + ".keep"; }

// The manifest first: then it is not a checkpoint any more.
void remove_checkpoint(const std::string& path) {
  std::vector<io::Manifest::File> files;
  try {
    files = io::read_manifest(path, "").files;
  } catch (const errors::Error&) {
    // Not complete any more: the next clean-up finds its files.
  }
  io::remove_file(path + ".json");
  for (const auto& f : files) {
    io::remove_file(io::folder_of(path) + "/" + f.name);
  }
  io::remove_file(keep_mark(path));
}

}  // namespace

struct CheckpointManager::Impl {
  Checkpoint checkpoint;
  std::string directory;
  CheckpointManagerOptions options;
  std::vector<Numbered> list;  // complete, or being written
  std::optional<int64_t> last_step;
  std::unique_ptr<io::WriteLock> lock;  // of the folder, from the first save

  std::string path_of(int64_t number) const {
    return fmt::format("{}/{}-{}", directory, options.checkpoint_name, number);
  }
  std::optional<int64_t> step(Site site) const {
    if (!options.step_counter.defined()) return {};
    return options.step_counter.value(site).item<int64_t>(site);
  }
  void take_folder(Site site);
  void remove_leftovers() const;
  void remove_old();
};

void CheckpointManager::Impl::take_folder(Site site) {
  if (lock != nullptr) return;
  const std::string subject = call_at("CheckpointManager.save", site);
  io::make_folder(directory, subject);
  lock = std::make_unique<io::WriteLock>(
      directory + "/" + options.checkpoint_name, subject);
  remove_leftovers();
  list = complete_in(directory, options.checkpoint_name);
}

// What a killed process left behind of checkpoints of this name.
void CheckpointManager::Impl::remove_leftovers() const {
  std::vector<std::string> known;
  for (const Numbered& c : complete_in(directory, options.checkpoint_name)) {
    for (const auto& f : io::read_manifest(c.path, "").files) {
      known.push_back(f.name);
    }
  }
  for (const std::string& file : files_in(directory)) {
    const bool ours = file.starts_with(options.checkpoint_name + "-");
    const bool part = file.ends_with(".part");
    const bool lost =
        file.ends_with(".safetensors") &&
        std::find(known.begin(), known.end(), file) == known.end();
    const bool unlocked = file.ends_with(".lock");
    if (ours && (part || lost || unlocked)) {
      io::remove_file(directory + "/" + file);
    }
  }
  for (const Numbered& c : numbered_in(directory, options.checkpoint_name)) {
    try {
      io::read_manifest(c.path, "");
    } catch (const errors::Error& e) {
      if (is_damage(e)) io::remove_file(c.path + ".json");
    }
  }
}

void CheckpointManager::Impl::remove_old() {
  if (options.max_to_keep <= 0) return;
  int64_t kept_at = 0;
  std::vector<Numbered> stays;
  size_t extra = 0;
  for (const Numbered& c : list)
    extra += !io::is_regular_file(keep_mark(c.path));
  for (const Numbered& c : list) {
    const int64_t at = seconds_of(c.path);
    if (io::is_regular_file(keep_mark(c.path))) {
      kept_at = at;
      stays.push_back(c);
      continue;
    }
    if (extra <= static_cast<size_t>(options.max_to_keep)) {
      stays.push_back(c);
      continue;
    }
    --extra;
    const double hours = options.keep_checkpoint_every_n_hours;
    if (hours > 0 && static_cast<double>(at - kept_at) >= 3600 * hours) {
      std::ofstream mark(keep_mark(c.path));
      kept_at = at;
      stays.push_back(c);
      continue;
    }
    remove_checkpoint(c.path);
  }
  list = std::move(stays);
}

CheckpointManager::CheckpointManager(Checkpoint checkpoint,
                                     std::string directory,
                                     CheckpointManagerOptions options,
                                     Site site)
    : impl_(std::make_shared<Impl>(
          Impl{std::move(checkpoint),
               or_vertex_folder(directory, "AIP_CHECKPOINT_DIR"),
               std::move(options),
               {},
               {},
               {}})) {
  const CheckpointManagerOptions& o = impl_->options;
  refuse_url(impl_->directory, call_at("CheckpointManager", site));
  const auto refuse = [&](const std::string& why) {
    throw errors::InvalidArgument(
        fmt::format("{}: {}", call_at("CheckpointManager", site), why));
  };
  if (impl_->directory.empty()) {
    refuse(
        "the directory is \"\" and AIP_CHECKPOINT_DIR is not set; expected a "
        "folder");
  }
  if (o.checkpoint_name.empty() ||
      o.checkpoint_name.find('/') != std::string::npos) {
    refuse(
        fmt::format("checkpoint_name is \"{}\"; expected a name without a "
                    "slash",
                    o.checkpoint_name));
  }
  if (o.max_to_keep < 0 || !(o.keep_checkpoint_every_n_hours >= 0) ||
      o.checkpoint_interval < 0) {
    refuse(fmt::format(
        "max_to_keep is {}, keep_checkpoint_every_n_hours {}, "
        "checkpoint_interval {}; expected numbers of at least 0",
        o.max_to_keep, o.keep_checkpoint_every_n_hours, o.checkpoint_interval));
  }
  if (o.checkpoint_interval > 0 && !o.step_counter.defined()) {
    refuse(
        "checkpoint_interval without step_counter; expected the variable "
        "that counts the steps, such as optimizer.iterations()");
  }
  if (o.step_counter.defined() && (!is_integer(o.step_counter.dtype()) ||
                                   !o.step_counter.shape().is_scalar())) {
    refuse(fmt::format("step_counter is {} {}; expected an integer scalar",
                       name_of(o.step_counter.dtype()),
                       o.step_counter.shape().str()));
  }
  impl_->list = complete_in(impl_->directory, o.checkpoint_name);
}

std::optional<std::string> CheckpointManager::save(
    std::optional<int64_t> checkpoint_number, bool check_interval, Site site) {
  Impl& m = *impl_;
  const std::optional<int64_t> step = m.step(site);
  const int64_t interval = m.options.checkpoint_interval;
  if (check_interval && interval > 0 && m.last_step &&
      *step - *m.last_step < interval) {
    return {};
  }
  m.checkpoint.sync();
  m.take_folder(site);
  // While a new one is being written, the old ones are all there is.
  const bool async = m.options.checkpoint_options.enable_async;
  if (async) m.remove_old();
  auto& checkpoint = *m.checkpoint.impl_;
  const int64_t before = checkpoint.save_counter++;
  const int64_t number =
      checkpoint_number.value_or(step.value_or(checkpoint.save_counter));
  const std::string path = m.path_of(number);
  try {
    m.checkpoint.write(path, m.options.checkpoint_options, site);
  } catch (...) {
    checkpoint.save_counter = before;
    throw;
  }
  m.last_step = step;
  std::erase_if(m.list, [&](const auto& c) { return c.number == number; });
  m.list.push_back({number, path});
  if (!async) m.remove_old();
  return path;
}

std::optional<std::string> CheckpointManager::restore_or_initialize(Site site) {
  Impl& m = *impl_;
  sync();
  m.list = complete_in(m.directory, m.options.checkpoint_name);
  std::vector<Numbered> left =
      numbered_in(m.directory, m.options.checkpoint_name);
  for (; !left.empty(); left.pop_back()) {
    const std::string path = left.back().path;
    try {
      m.checkpoint.restore(path, site).assert_consumed(site);
      m.last_step = m.step(site);
      return path;
    } catch (const errors::Error& e) {
      if (!is_damage(e) || left.size() == 1) throw;
      report(damage_report(fmt::format("{}; instead, \"{}\" is restored",
                                       e.what(), left[left.size() - 2].path),
                           site));
    }
  }
  if (m.options.init_fn) m.options.init_fn();
  return {};
}

void CheckpointManager::sync() {
  try {
    impl_->checkpoint.sync();
  } catch (...) {
    impl_->list = complete_in(impl_->directory, impl_->options.checkpoint_name);
    throw;
  }
  if (impl_->lock != nullptr) impl_->remove_old();
}

void CheckpointManager::clear() {
  Impl& m = *impl_;
  m.list = complete_in(m.directory, m.options.checkpoint_name);
  for (const Numbered& c : m.list) remove_checkpoint(c.path);
  m.list.clear();
  m.lock.reset();
  std::error_code ignored;
  fs::remove(m.directory, ignored);  // fails unless it is empty
}

std::vector<std::string> CheckpointManager::checkpoints() const {
  std::vector<std::string> paths;
  for (const Numbered& c : impl_->list) paths.push_back(c.path);
  return paths;
}
std::optional<std::string> CheckpointManager::latest_checkpoint() const {
  if (impl_->list.empty()) return {};
  return impl_->list.back().path;
}
const std::string& CheckpointManager::directory() const {
  return impl_->directory;
}
int64_t CheckpointManager::checkpoint_interval() const {
  return impl_->options.checkpoint_interval;
}
Checkpoint CheckpointManager::checkpoint() const { return impl_->checkpoint; }

std::optional<std::string> latest_checkpoint(const std::string& folder) {
  refuse_url(folder, "latest_checkpoint");
  std::optional<std::string> latest;
  std::pair<fs::file_time_type, int64_t> when;
  for (const std::string& file : files_in(folder)) {
    if (!file.ends_with(".json")) continue;
    const std::string path = folder + "/" + file.substr(0, file.size() - 5);
    std::error_code code;
    const auto time = fs::last_write_time(path + ".json", code);
    const size_t dash = file.rfind('-');
    const int64_t number =
        dash == std::string::npos
            ? 0
            : number_of(file, file.substr(0, dash)).value_or(0);
    const std::pair at(time, number);
    if (code || (latest && at <= when)) continue;
    try {
      io::read_manifest(path, "latest_checkpoint");
    } catch (const errors::Error& e) {
      // Other files may end in .json, too, and others may delete some now.
      if (number > 0 && e.code() == errors::Code::kDataLoss) {
        report_once(path, damage_report(e.what(), {}));
      }
      continue;
    }
    latest = path;
    when = at;
  }
  return latest;
}

namespace {

// The files of a checkpoint, or of the latest of a folder.
std::vector<io::SafetensorsFile> open_files(const std::string& path,
                                            const std::string& subject) {
  std::string of = path;
  if (fs::is_directory(path)) {
    const auto latest = latest_checkpoint(path);
    if (!latest) {
      throw errors::NotFound(fmt::format(
          "{}: there is no complete checkpoint in \"{}\"", subject, path));
    }
    of = *latest;
  }
  std::vector<io::SafetensorsFile> files;
  for (const auto& f : io::read_manifest(of, subject).files) {
    files.emplace_back(io::folder_of(of) + "/" + f.name, subject);
  }
  return files;
}

}  // namespace

std::vector<TensorSpec> list_variables(const std::string& path, Site site) {
  std::vector<TensorSpec> list;
  for (const auto& file : open_files(path, call_at("list_variables", site))) {
    for (const auto& t : file.tensors()) {
      list.push_back({t.shape, t.dtype, t.name});
    }
  }
  std::sort(list.begin(), list.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return list;
}

Tensor load_variable(const std::string& path, const std::string& name,
                     Site site) {
  const std::string subject = call_at("load_variable", site);
  std::string near;
  for (const auto& file : open_files(path, subject)) {
    const int i = file.find(name);
    if (i >= 0) return file.tensor(i);
    for (const auto& t : file.tensors()) {
      const bool alike = t.name.find(name) != std::string::npos ||
                         name.find(t.name) != std::string::npos;
      if (alike && near.size() < 200) near += fmt::format(" \"{}\"", t.name);
    }
  }
  throw errors::NotFound(
      fmt::format("{}: \"{}\" has no value \"{}\"; {}", subject, path, name,
                  near.empty() ? "list_variables() says what it has"
                               : "near names:" + near));
}

}  // namespace berth::train
