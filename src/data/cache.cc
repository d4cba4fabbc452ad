// Dataset::cache and snapshot.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <mutex>

#include "base/urls.h"
#include "base/where.h"
#include "data/element_file.h"
#include "data/pass_state.h"

namespace berth::data {

namespace {

using Elements = std::vector<Tensors>;

// Hands out what the first complete pass left, in memory or in a file.
class CacheNode : public Transform {
 public:
  // path "": memory.
  CacheNode(const char* what, const Dataset& parent, std::string path,
            bool rebuild, Site site)
      : Transform(what, site, parent),
        path_(std::move(path)),
        rebuild_(rebuild) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override;
  std::string explain() const override {
    if (!path_.empty()) return "in " + path_;
    std::lock_guard lock(mutex_);
    const auto& all = kept_;
    return all ? fmt::format("{} elements in memory", all->size())
               : "not complete yet";
  }
  bool in_file() const { return !path_.empty(); }
  // Tasks that share a pass have elements of their own.
  std::string path(const PassShard& shard) const {
    if (shard == PassShard{}) return path_;
    return fmt::format("{}.task_{}_of_{}", path_, shard.index, shard.tasks);
  }

  // Null: nothing, or that of other shards.
  std::shared_ptr<const Elements> kept(const PassShard& shard) const {
    std::lock_guard lock(mutex_);
    return kept_shard_ == shard ? kept_ : nullptr;
  }
  // `memory`: what the transforms before remembered when the pass began that is
  // kept. It can be computed again if it is lost.
  void keep(Elements elements, const PassShard& shard,
            const std::string& memory) const {
    std::lock_guard lock(mutex_);
    if (kept_) return;
    kept_shard_ = shard;
    kept_ = std::make_shared<const Elements>(std::move(elements));
    memory_ = memory;
  }
  void kept_in_file(const std::string& memory) const {
    std::lock_guard lock(mutex_);
    memory_ = memory;
  }
  std::string kept_memory() const {
    std::lock_guard lock(mutex_);
    return memory_;
  }

  // The file, if it is complete and fits.
  std::unique_ptr<ElementReader> file(const PassShard& shard) const {
    try {
      return ElementReader::open(where(), path(shard), description());
    } catch (const errors::Error&) {
      if (!rebuild_) throw;
      return nullptr;
    }
  }
  std::unique_ptr<ElementWriter> new_file(const PassShard& shard) const {
    return std::make_unique<ElementWriter>(where(), path(shard), description());
  }
  // A damaged file is written again by the next pass.
  void give_up_file(const PassShard& shard) const {
    std::error_code ignored;
    if (rebuild_) std::filesystem::remove(path(shard), ignored);
  }

 private:
  std::string description() const {
    std::vector<std::string> specs;
    for (const TensorSpec& spec : parent().specs()) specs.push_back(spec.str());
    std::string text = fmt::format("{}", fmt::join(specs, ", "));
    if (const NamesRef names = parent().names()) {
      text += fmt::format("; {}", fmt::join(*names, ", "));
    }
    return text;
  }

  std::string path_;
  bool rebuild_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Elements> kept_;
  mutable PassShard kept_shard_;
  mutable std::string memory_;
};

std::string memory_of(const Node& node) {
  PassWriter w;
  w.put_memory(node, [] {});
  return w.finish().text;
}

// Reads what is kept, else computes and, from the beginning on, keeps it.
class CacheStream : public ElementStream {
 public:
  CacheStream(const CacheNode& node, const PassInfo& pass)
      : node_(node), pass_(pass) {
    if (!pass.restoring) begin();
  }
  bool next(Tensors* out) override {
    if (!begun_) begin();
    if (source_) return compute(out);
    if (ended_) return false;
    if (file_) {
      try {
        if (file_->next(out)) {
          ++at_;
          return true;
        }
      } catch (const errors::DataLoss&) {
        node_.give_up_file(pass_.shard);
        throw;
      }
    } else if (at_ < kept_->size()) {
      *out = (*kept_)[at_++];
      return true;
    }
    ended_ = true;
    return false;
  }
  void save(PassWriter& w) override;
  void restore(PassReader& r) override;

 private:
  bool find_kept() {
    if (!node_.in_file()) {
      kept_ = node_.kept(pass_.shard);
    } else {
      file_ = node_.file(pass_.shard);
    }
    if (!kept_ && !file_) return false;
    memory_ = node_.kept_memory();
    return true;
  }
  void begin() {
    begun_ = true;
    if (find_kept()) return;
    memory_ = memory_of(node_.parent());
    source_ = node_.parent().open(pass_);
    if (!pass_.peek) begin_keeping();
  }
  void begin_keeping() {
    keeping_ = true;
    if (node_.in_file()) writer_ = node_.new_file(pass_.shard);
  }
  bool compute(Tensors* out) {
    if (!source_->next(out)) {
      source_.reset();
      ended_ = true;
      if (keeping_ && !pass_.stop.stop_requested()) finish();
      return false;
    }
    ++at_;
    if (!keeping_) return true;
    if (writer_) {
      writer_->add(*out);
    } else {
      collected_.push_back(*out);
    }
    return true;
  }
  void finish() {
    if (writer_) {
      writer_->commit();
      writer_.reset();
      node_.kept_in_file(memory_);
    } else {
      node_.keep(std::move(collected_), pass_.shard, memory_);
    }
  }

  const CacheNode& node_;
  const PassInfo pass_;
  std::shared_ptr<const Elements> kept_;   // read, or
  std::unique_ptr<ElementReader> file_;    // read, or
  std::unique_ptr<ElementStream> source_;  // computed
  size_t at_ = 0;                          // elements handed out
  bool begun_ = false;
  bool ended_ = false;
  bool keeping_ = false;
  Elements collected_;
  std::unique_ptr<ElementWriter> writer_;
  std::string memory_;
};

void CacheStream::save(PassWriter& w) {
  if (!begun_) begin();
  w.begin(node_);
  w.put(ended_);
  w.put(at_);
  w.put(std::string_view(memory_));
}

// What was kept, or was about to be, may be gone: it is computed again as the
// pass did that kept it, up to where the reader was, and kept.
void CacheStream::restore(PassReader& r) {
  r.begin(node_);
  ended_ = r.flag();
  const auto skip = static_cast<size_t>(r.number(0));
  const std::string memory = r.text();
  begun_ = true;
  if (ended_) return;
  if (!find_kept()) {
    if (memory.empty()) {
      throw errors::DataLoss(node_.where() + ": what the pass read is gone");
    }
    const auto set_memory = [&](const std::string& text) {
      const IteratorState state{text, {}};
      PassReader(state).memory(node_.parent());
    };
    const std::string now = memory_of(node_.parent());
    memory_ = memory;
    set_memory(memory);
    PassInfo fresh = pass_;
    fresh.restoring = false;
    source_ = node_.parent().open(fresh);
    set_memory(now);
    begin_keeping();
  }
  Tensors element;
  while (at_ < skip && !stopped(pass_.stop)) {
    if (!next(&element)) r.damaged("it stands behind the end");
  }
}

std::unique_ptr<ElementStream> CacheNode::elements(const PassInfo& pass) const {
  return std::make_unique<CacheStream>(*this, pass);
}

}  // namespace

Dataset Dataset::cache(const std::string& filename, Site site) const {
  return make_dataset<CacheNode>("cache", *this, filename, false, site);
}

Dataset Dataset::snapshot(const std::string& path,
                          const SnapshotOptions& options, Site site) const {
  const std::string where = call_text("snapshot", site);
  if (path.empty()) refuse(where, "path is empty; expected a folder");
  refuse_url(path, where);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    throw errors::PermissionDenied(
        fmt::format("{}: cannot make the folder {}: {}; choose another place",
                    where, path, error.message()));
  }
  return make_dataset<CacheNode>(
      "snapshot", *this,
      (std::filesystem::path(path) / "elements.berth").string(),
      options.rebuild, site);
}

}  // namespace berth::data
