// Checkpoint: putting values back.
//
// First everything is looked at, then variables are written: what does not fit
// changes nothing.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/diagnostics.h"
#include "base/where.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "io/checkpoint_impl.h"
#include "io/variable_bytes.h"
#include "op/dispatcher.h"
#include "ops/op_call.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth::train {

namespace {

constexpr size_t kNamedInErrors = 6;

std::string some_names(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kNamedInErrors); ++i) {
    text += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", names[i]);
  }
  if (names.size() > kNamedInErrors) {
    text += fmt::format(" and {} more", names.size() - kNamedInErrors);
  }
  return text;
}

// A value in one of the files, or in memory.
struct Place {
  const io::SafetensorsFile* file = nullptr;
  int index = -1;
  const Tensor* memory = nullptr;
  const io::SafetensorsFile::Info& info() const {
    return file->tensors()[static_cast<size_t>(index)];
  }
  Shape shape() const { return memory ? memory->shape() : info().shape; }
  DType dtype() const { return memory ? memory->dtype() : info().dtype; }
  std::string type() const {
    return memory ? name_of(memory->dtype()) : info().type;
  }
  // A copy, which its user may keep.
  Tensor tensor() const {
    if (memory == nullptr) return file->tensor(index);
    if (memory->dtype() == string_) return *memory;
    const Tensor copy = make_tensor(DeviceManager::get().host(),
                                    memory->dtype(), memory->shape());
    read(copy.impl()->data());
    return copy;
  }
  void read(std::byte* to) const {
    const size_t bytes = memory->impl()->size_bytes();
    if (bytes > 0) std::memcpy(to, memory->impl()->data(), bytes);
  }
};

// Where a value goes.
struct Target {
  std::string name;
  Place from;
  Variable variable;
};

class Restore {
 public:
  Restore(Checkpoint::Impl& checkpoint, const std::string& path,
          const char* what, Site site)
      : checkpoint_(checkpoint),
        site_(site),
        subject_(call_at(what, site)),
        manifest_(io::read_manifest(path, subject_)),
        found_(std::make_shared<LoadStatus::Found>()) {
    found_->path = path;
    found_->site = site;
    found_->meant = true;  // until it succeeds
    const std::string folder = io::folder_of(path);
    files_.reserve(manifest_.files.size());
    for (const auto& f : manifest_.files) {
      files_.emplace_back(folder + "/" + f.name, subject_);
    }
    for (const auto& file : files_) {
      for (size_t i = 0; i < file.tensors().size(); ++i) {
        places_[file.tensors()[i].name] = {&file, static_cast<int>(i)};
      }
    }
  }

  Restore(Checkpoint::Impl& checkpoint, const CheckpointImage& image,
          const char* what, Site site)
      : checkpoint_(checkpoint),
        site_(site),
        subject_(call_at(what, site)),
        manifest_{.objects = image.objects},
        found_(std::make_shared<LoadStatus::Found>()) {
    found_->path = "of another task";
    found_->site = site;
    found_->meant = true;
    for (const io::TensorToWrite& t : image.tensors) {
      places_[t.name] = {nullptr, -1, &t.value};
    }
  }

  LoadStatus run() {
    make_slots();
    const NamedValues now = checkpoint_.named_values();
    match(now);
    check();
    read_targets();
    for (const std::string& name : later_) put_off(name);
    restore_states();
    sort_names();
    found_->meant = false;
    return LoadStatus(found_);
  }

  int64_t save_counter() const { return manifest_.save_counter; }

 private:
  // The object that a name begins with, and the rest of the name.
  const Trackable* object_of(const std::string& name, std::string* rest) const {
    const size_t end = name.find('/');
    for (const auto& [object, trackable] : checkpoint_.objects) {
      if (name.compare(0, end, object) != 0) continue;
      *rest = end == std::string::npos ? "" : name.substr(end + 1);
      return &trackable;
    }
    return nullptr;
  }

  // Slots in the checkpoint of variables that exist.
  void make_slots() {
    const NamedValues now = checkpoint_.named_values();
    std::map<const Trackable*, std::vector<Variable>> owners;
    for (const auto& [name, place] : places_) {
      std::string rest;
      const Trackable* object = object_of(name, &rest);
      if (object == nullptr || now.variables.contains(name)) continue;
      const std::string prefix = object->tracked()->slot_prefix();
      const size_t last = rest.rfind('/');
      if (!rest.starts_with(prefix) || last == std::string::npos ||
          last < prefix.size()) {
        continue;
      }
      const std::string own = name.substr(0, name.find('/') + 1);
      std::string owner = rest.substr(prefix.size(), last - prefix.size());
      // Optimizers around others put their names before it.
      auto it = now.variables.end();
      while (true) {
        it = now.variables.find(own + owner);
        if (it == now.variables.end()) it = now.variables.find(owner);
        const size_t slash = owner.find('/');
        if (it != now.variables.end() || slash == std::string::npos) break;
        owner.erase(0, slash + 1);
      }
      if (it == now.variables.end()) continue;
      auto& list = owners[object];
      const auto same = [&](const Variable& v) {
        return v.handle().impl() == it->second.handle().impl();
      };
      if (std::none_of(list.begin(), list.end(), same)) {
        list.push_back(it->second);
      }
    }
    for (const auto& [object, list] : owners) {
      object->tracked()->make_slots(list);
    }
  }

  void match(const NamedValues& now) {
    for (const auto& [name, v] : now.variables) {
      used_.insert(name);
      if (match_parts(name, v)) continue;
      const auto it = places_.find(name);
      if (it == places_.end()) {
        found_->missing.push_back(name);
      } else {
        targets_.push_back({name, it->second, v});
      }
    }
    for (const auto& [name, place] : places_) {
      if (used_.contains(name)) continue;
      const size_t colon = name.find(':');
      const std::string object = name.substr(0, colon);
      std::string rest;
      if (colon != std::string::npos && manifest_.objects.contains(object)) {
        states_[object].push_back(name);
      } else if (object_of(name, &rest) != nullptr) {
        later_.push_back(name);
      } else {
        found_->unused.push_back(name);
      }
    }
  }

  // What replicas had on their own, when there are as many of them.
  bool match_parts(const std::string& name, const Variable& v) {
    const auto& parts = variable_state(v.handle()).parts;
    size_t saved = 0;
    while (places_.contains(part_name(name, saved))) {
      used_.insert(part_name(name, saved++));
    }
    if (parts.empty() || saved != parts.size() + 1) return false;
    for (size_t i = 0; i < saved; ++i) {
      parts_.push_back({part_name(name, i), places_.at(part_name(name, i)), v});
      part_handles_.push_back(i == 0 ? v.handle() : parts[i - 1]);
    }
    return true;
  }

  // Shapes, dtypes, and that anything fits at all.
  void check() {
    std::vector<std::string> wrong;
    for (const auto* list : {&targets_, &parts_}) {
      for (const Target& t : *list) {
        const auto shape = t.variable.shape_of_all();
        if ((!shape || shape->compatible_with(t.from.shape())) &&
            t.from.dtype() == t.variable.dtype()) {
          continue;
        }
        wrong.push_back(fmt::format(
            "\"{}\" is {} {} in the checkpoint and {} {} here", t.name,
            t.from.type(), t.from.shape().str(), name_of(t.variable.dtype()),
            shape ? shape->str() : "of any shape"));
      }
    }
    if (!wrong.empty()) {
      std::string text = wrong[0];
      if (wrong.size() > 1)
        text += fmt::format(", and {} more", wrong.size() - 1);
      throw errors::InvalidArgument(fmt::format(
          "{}: the checkpoint \"{}\" does not fit: {}; nothing was restored: "
          "expected objects made as those that were saved",
          subject_, found_->path, text));
    }
    bool any = !targets_.empty() || !parts_.empty() || !later_.empty();
    for (const auto& [name, object] : checkpoint_.objects) {
      any = any || manifest_.objects.contains(name);
    }
    if (any || checkpoint_.objects.empty()) return;
    std::vector<std::string> names;
    for (const auto& [name, object] : manifest_.objects) names.push_back(name);
    throw errors::InvalidArgument(fmt::format(
        "{}: nothing in the checkpoint \"{}\" has a name of this Checkpoint; "
        "it holds {}: give the objects the names that they were saved by",
        subject_, found_->path, some_names(names)));
  }

  void read_targets() {
    std::vector<io::VariableToRead> list;
    for (const Target& t : targets_) {
      found_->restored.push_back(t.name);
      if (variable_state(t.variable.handle()).rebinds()) {
        assign_part(t.variable.handle(), t.from.tensor());
      } else if (t.from.file != nullptr) {
        list.push_back({t.variable, t.from.file, t.from.index});
      } else {
        io::fill_variable(t.variable, subject_, site_,
                          [&](std::byte* to) { t.from.read(to); });
      }
    }
    io::read_variables(
        list, fmt::format("{} of \"{}\"", subject_, found_->path), site_);
  }

  // A value of a variable that is not there yet.
  void put_off(const std::string& name) {
    std::string rest;
    const Trackable* object = object_of(name, &rest);
    const Place& p = places_.at(name);
    const bool taken = object->tracked()->restore_later(rest, p.tensor());
    (taken ? found_->deferred : found_->unused).push_back(name);
  }

  void restore_states() {
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Place& p = parts_[i].from;
      const Tensor value = p.tensor();
      assign_part(part_handles_[i], value);
      found_->restored.push_back(parts_[i].name);
    }
    for (const auto& [name, object] : checkpoint_.objects) {
      const auto it = manifest_.objects.find(name);
      if (it == manifest_.objects.end()) {
        found_->missing.push_back(name);
        continue;
      }
      const std::string kind = object.tracked()->kind();
      if (it->second.kind != kind) {
        throw errors::InvalidArgument(fmt::format(
            "{}: \"{}\" is a {} in the checkpoint \"{}\" and a {} here; give "
            "the objects the names that they were saved by",
            subject_, name, it->second.kind, found_->path, kind));
      }
      ObjectState state{{}, it->second.text};
      for (const std::string& full : states_[name]) {
        const Place& p = places_.at(full);
        state.tensors[full.substr(name.size() + 1)] = p.tensor();
      }
      states_.erase(name);
      object.tracked()->set_state(state);
    }
    for (const auto& [name, list] : states_) {
      found_->unused.insert(found_->unused.end(), list.begin(), list.end());
    }
    for (const auto& [name, object] : manifest_.objects) {
      const auto same = [&, &name = name](const auto& o) {
        return o.first == name;
      };
      if (std::none_of(checkpoint_.objects.begin(), checkpoint_.objects.end(),
                       same)) {
        found_->unused.push_back(name);
      }
    }
  }

  void assign_part(const Tensor& handle, const Tensor& value) const;

  void sort_names() {
    for (auto* list : {&found_->restored, &found_->deferred, &found_->missing,
                       &found_->unused}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
  }

  Checkpoint::Impl& checkpoint_;
  const Site site_;
  const std::string subject_;
  const io::Manifest manifest_;
  std::vector<io::SafetensorsFile> files_;
  std::map<std::string, Place> places_;
  std::set<std::string> used_;
  std::vector<Target> targets_, parts_;
  std::vector<Tensor> part_handles_;
  std::vector<std::string> later_;
  std::map<std::string, std::vector<std::string>> states_;  // by object
  std::shared_ptr<LoadStatus::Found> found_;
};

void Restore::assign_part(const Tensor& handle, const Tensor& value) const {
  static const OpDef& op = op_named("AssignVariableOp");
  const Tensor* in[] = {&handle, &value};
  const DispatchGuard eager(nullptr);
  apply(op, in, nullptr, {});
}

}  // namespace

LoadStatus Checkpoint::Impl::restore(const std::string& path, bool counts,
                                     const char* what, Site site) {
  wait();
  Restore r(*this, path, what, site);
  LoadStatus status = r.run();
  if (counts) save_counter = r.save_counter();
  return status;
}

LoadStatus Checkpoint::Impl::restore(const CheckpointImage& image,
                                     const char* what, Site site) {
  return Restore(*this, image, what, site).run();
}

const std::vector<std::string>& LoadStatus::restored() const {
  return found_->restored;
}
const std::vector<std::string>& LoadStatus::deferred() const {
  return found_->deferred;
}
const std::vector<std::string>& LoadStatus::missing() const {
  return found_->missing;
}
const std::vector<std::string>& LoadStatus::unused() const {
  return found_->unused;
}

const LoadStatus& LoadStatus::assert_consumed(Site site) const {
  found_->meant = true;
  if (missing().empty() && unused().empty()) return *this;
  throw errors::FailedPrecondition(
      fmt::format("{}: {}; expected objects and names as they were saved, or "
                  "expect_partial()",
                  call_at("assert_consumed", site), found_->text()));
}

const LoadStatus& LoadStatus::assert_existing_objects_matched(Site site) const {
  found_->meant = true;
  if (missing().empty()) return *this;
  throw errors::FailedPrecondition(fmt::format(
      "{}: {}; expected objects that were saved, or expect_partial()",
      call_at("assert_existing_objects_matched", site), found_->text()));
}

const LoadStatus& LoadStatus::expect_partial() const {
  found_->meant = true;
  return *this;
}

std::string LoadStatus::Found::text() const {
  std::string out = fmt::format("of the checkpoint \"{}\"", path);
  if (!missing.empty()) {
    out += fmt::format(", {} not there and as they were: {}", missing.size(),
                       some_names(missing));
  }
  if (!unused.empty()) {
    out += fmt::format(", {} unused: {}", unused.size(), some_names(unused));
  }
  return out;
}

LoadStatus::Found::~Found() {
  if (meant || (missing.empty() && unused.empty())) return;
  try {
    report({"checkpoint-partial", debugging::Severity::kWarning,
            fmt::format("{}: {}; say .expect_partial() if that is meant",
                        call_at("Checkpoint.restore", site), text()),
            site});
  } catch (const std::exception&) {
    // A handler that throws is not heard here.
  }
}

}  // namespace berth::train
