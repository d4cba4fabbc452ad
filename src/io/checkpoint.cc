// Checkpoint: what it holds, and saving.

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "base/immortal.h"
#include "base/timeline.h"
#include "base/where.h"
#include "berth/errors.h"
#include "io/checkpoint_impl.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth::train {

namespace {

// Saves that this thread began: they are not lost when it ends, nor when it
// calls exit().
struct PendingSaves {
  std::vector<std::weak_ptr<Checkpoint::Impl>> list;
  ~PendingSaves() {
    for (const auto& weak : list) {
      if (const auto impl = weak.lock()) impl->wait_at_end();
    }
  }
};

void note_pending(const std::shared_ptr<Checkpoint::Impl>& impl) {
  auto& list = of_this_thread<PendingSaves>().list;
  std::erase_if(list, [&](const auto& w) {
    const auto other = w.lock();
    return other == nullptr || other == impl;
  });
  list.push_back(impl);
}

// Gives the writer the lowest priority, so that steps do not wait for it. If
// the call fails, the writer keeps its priority.
void stand_back() {
  constexpr int kLeast = 19;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kLeast);
}

// Those that replicas have on their own count one by one, so that they come
// back bit for bit.
void add_parts(const std::string& name, const Variable& v,
               std::vector<io::TensorToWrite>* list) {
  const auto& parts = variable_state(v.handle()).parts;
  list->push_back({part_name(name, 0), read_variable(v.handle())});
  for (size_t i = 0; i < parts.size(); ++i) {
    list->push_back({part_name(name, i + 1), read_variable(parts[i])});
  }
}

bool is_aggregated(const Variable& v) {
  return v.aggregation() != VariableAggregation::kNone;
}

// Files of the checkpoint that has the path already, if it is one.
std::set<std::string> files_at(const std::string& path) {
  std::set<std::string> names;
  try {
    for (const auto& f : io::read_manifest(path, "").files) {
      names.insert(f.name);
    }
  } catch (const errors::Error&) {
    // What cannot be read need not be kept.
  }
  return names;
}

}  // namespace

std::string call_at(const char* what, Site site) {
  return what + where_text(nullptr, site);
}

std::string part_name(const std::string& variable, size_t part) {
  return fmt::format("{}@replica_{}", variable, part);
}

std::string shard_name(const std::string& base, int shard, int shards) {
  if (shards == 1) return base + ".safetensors";
  return fmt::format("{}-{:05}-of-{:05}.safetensors", base, shard + 1, shards);
}

Checkpoint::Impl::Impl(Objects list, Site site) {
  set_objects(std::move(list), site);
}

void Checkpoint::Impl::set_objects(Objects list, Site site) {
  std::set<std::string> names;
  for (const auto& [name, object] : list) {
    const bool fits = !name.empty() && name.find('/') == std::string::npos &&
                      name.find('\n') == std::string::npos;
    if (fits && names.insert(name).second) continue;
    throw errors::InvalidArgument(fmt::format(
        "{}: an object is called \"{}\"; expected names that differ, without a "
        "slash",
        call_at("Checkpoint", site), name));
  }
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return a.second.tracked()->has_parts() < b.second.tracked()->has_parts();
  });
  objects = std::move(list);
}

Checkpoint::Impl::~Impl() { wait_at_end(); }

NamedValues Checkpoint::Impl::named_values() const {
  NamedValues all;
  struct Slot {
    const std::string* object;
    NamedVariable variable;
  };
  std::vector<Slot> slots;
  const auto add = [&](const std::string& name, const Variable& v) {
    if (!v.defined()) return;
    if (!all.name_of.try_emplace(v.handle().impl(), name).second) return;
    if (all.variables.try_emplace(name, v).second) return;
    throw errors::InvalidArgument(fmt::format(
        "Checkpoint: two variables would be called \"{}\"; expected objects "
        "whose variables have names that differ",
        name));
  };
  for (const auto& [name, object] : objects) {
    for (NamedVariable& v : object.tracked()->variables()) {
      if (v.slot_of.defined()) {
        slots.push_back({&name, std::move(v)});
      } else {
        add(v.name.empty() ? name : name + "/" + v.name, v.variable);
      }
    }
  }
  for (const Slot& s : slots) {
    const auto owner = all.name_of.find(s.variable.slot_of.handle().impl());
    std::string of =
        owner == all.name_of.end() ? s.variable.slot_of.name() : owner->second;
    if (of.starts_with(*s.object + "/")) of.erase(0, s.object->size() + 1);
    std::string name = s.variable.name;
    const size_t at = name.find("{}");
    if (at != std::string::npos) name.replace(at, 2, of);
    add(*s.object + "/" + name, s.variable.variable);
  }
  return all;
}

SaveJob Checkpoint::Impl::collect(const std::string& path, Site site) const {
  SaveJob job;
  job.path = path;
  job.subject = call_at("Checkpoint.save", site);
  job.manifest.save_counter = save_counter;
  for (const auto& [name, v] : named_values().variables) {
    const bool has_parts = !variable_state(v.handle()).parts.empty();
    if (!has_parts) {
      job.tensors.push_back({name, read_variable(v.handle())});
      continue;
    }
    if (is_aggregated(v)) job.tensors.push_back({name, v.value(site)});
    add_parts(name, v, &job.tensors);
  }
  for (const auto& [name, object] : objects) {
    ObjectState state = object.tracked()->state();
    for (auto& [key, tensor] : state.tensors) {
      job.tensors.push_back({name + ":" + key, std::move(tensor)});
    }
    job.manifest.objects[name] = {object.tracked()->kind(),
                                  std::move(state.text)};
  }
  return job;
}

void Checkpoint::Impl::copy_to(CheckpointImage* image, Site site) const {
  SaveJob job = collect("", site);
  image->objects = std::move(job.manifest.objects);
  image->tensors = std::move(job.tensors);
  image->buffer.copy(&image->tensors, job.subject);
}

void SaveJob::run() {
  const timeline::MaybeSpan span("checkpoints", path, "checkpoint");
  const std::string base = std::filesystem::path(path).filename().string();
  const std::string folder = io::folder_of(path);
  const auto n = static_cast<size_t>(shards);
  std::vector<std::vector<io::TensorToWrite>> parts(n);
  std::vector<size_t> bytes(n, 0);
  for (io::TensorToWrite& t : tensors) {
    const auto least = static_cast<size_t>(
        std::min_element(bytes.begin(), bytes.end()) - bytes.begin());
    bytes[least] += io::stored_bytes(t.value);
    parts[least].push_back(std::move(t));
  }
  tensors.clear();
  // What has the path stays until the new manifest takes its place.
  const std::set<std::string> old = files_at(path);
  const bool taken = old.contains(shard_name(base, 0, shards));
  const std::string stem = taken ? base + "~1" : base;
  manifest.files.resize(n);
  std::vector<std::exception_ptr> failed(n);
  const auto write = [&](size_t i) {
    try {
      auto& file = manifest.files[i];
      file.name = shard_name(stem, static_cast<int>(i), shards);
      file.bytes = io::write_safetensors(folder + "/" + file.name,
                                         std::move(parts[i]), {}, subject);
      file.header = io::header_checksum(folder + "/" + file.name);
    } catch (...) {
      failed[i] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < n; ++i) threads.emplace_back(write, i);
  write(0);
  for (std::thread& t : threads) t.join();
  for (const std::exception_ptr& e : failed) {
    if (e) std::rethrow_exception(e);
  }
  const std::string text = io::print_manifest(manifest, subject);
  io::AtomicFile file(path + ".json", subject);
  file.append(text.data(), text.size());
  file.commit();
  for (const std::string& name : old) {
    const bool kept =
        std::any_of(manifest.files.begin(), manifest.files.end(),
                    [&](const auto& f) { return f.name == name; });
    if (!kept) io::remove_file(folder + "/" + name);
  }
}

void Checkpoint::Impl::wait() {
  if (writer_.joinable()) writer_.join();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Checkpoint::Impl::wait_at_end() noexcept {
  try {
    wait();
  } catch (const std::exception& e) {
    // Nobody is left to throw it to.
    std::fprintf(stderr, "berth: a checkpoint was not written: %s\n", e.what());
  }
}

void Checkpoint::Impl::save(SaveJob job, const CheckpointOptions& options) {
  constexpr int kMostShards = 1024;
  if (options.shards < 1 || options.shards > kMostShards) {
    throw errors::InvalidArgument(
        fmt::format("{}: shards is {}; expected 1 to "
                    "{}",
                    job.subject, options.shards, kMostShards));
  }
  job.shards = options.shards;
  job.lock = std::make_unique<io::WriteLock>(job.path, job.subject);
  if (!options.enable_async) return job.run();
  staging_.copy(&job.tensors, job.subject);
  auto shared = std::make_shared<SaveJob>(std::move(job));
  writer_ = std::thread([this, shared] {
    stand_back();
    try {
      shared->run();
    } catch (...) {
      error_ = std::current_exception();
    }
    shared->lock.reset();
  });
}

Checkpoint::Checkpoint(Objects objects, Site site)
    : impl_(std::make_shared<Impl>(std::move(objects), site)) {}

void Checkpoint::set_objects(Objects objects, Site site) {
  impl_->set_objects(std::move(objects), site);
}

std::string Checkpoint::save(const std::string& file_prefix,
                             const CheckpointOptions& options, Site site) {
  impl_->wait();
  io::make_folder(io::folder_of(file_prefix), call_at("Checkpoint.save", site));
  const int64_t before = impl_->save_counter++;
  try {
    return write(fmt::format("{}-{}", file_prefix, impl_->save_counter),
                 options, site);
  } catch (...) {
    impl_->save_counter = before;
    throw;
  }
}

std::string Checkpoint::write(const std::string& path,
                              const CheckpointOptions& options, Site site) {
  impl_->wait();
  if (std::filesystem::path(path).filename().empty()) {
    throw errors::InvalidArgument(fmt::format(
        "{}: the path \"{}\" names no file; expected \"folder/ckpt\"",
        call_at("Checkpoint.save", site), path));
  }
  impl_->save(impl_->collect(path, site), options);
  if (options.enable_async) note_pending(impl_);
  return path;
}

void Checkpoint::sync() { impl_->wait(); }
int64_t Checkpoint::save_counter() const { return impl_->save_counter; }
LoadStatus Checkpoint::restore(const std::string& path, Site site) {
  return impl_->restore(path, true, "Checkpoint.restore", site);
}
LoadStatus Checkpoint::read(const std::string& path, Site site) {
  return impl_->restore(path, false, "Checkpoint.read", site);
}

}  // namespace berth::train
