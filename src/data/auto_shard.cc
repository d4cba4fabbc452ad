#include "data/auto_shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>

#include "base/where.h"
#include "data/pass_state.h"

namespace berth::data {

namespace {

// Says how the dataset is shared; hands on what comes.
class OptionsNode : public Transform {
 public:
  OptionsNode(const Dataset& parent, Options options, Site site)
      : Transform("with_options", site, parent), options_(options) {}
  const RowSource* rows() const override { return parent().rows(); }
  std::unique_ptr<IndexStream> indices(const PassInfo& pass) const override {
    return data::open<int64_t>(parent(), pass);
  }
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override {
    return parent().open(pass);
  }
  std::unique_ptr<ElementStream> batches(const PassInfo& pass, size_t size,
                                         bool drop_remainder) const override {
    return parent().batches(pass, size, drop_remainder);
  }
  std::string explain() const override {
    return fmt::format(
        "auto_shard_policy {}",
        name_of(options_.experimental_distribute.auto_shard_policy));
  }
  const Options& options() const { return options_; }

 private:
  const Options options_;
};

class PartNode : public Transform {
 public:
  PartNode(const Dataset& parent, int64_t parts, PassShard shard, Site site)
      : Transform("auto_shard", site, parent), parts_(parts), shard_(shard) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override;
  int64_t cardinality() const override {
    return parent().cardinality() == kInfinite ? kInfinite : kUnknown;
  }
  const std::vector<TensorSpec>& specs() const override {
    return specs_.get([&] {
      std::vector<TensorSpec> all = parent().specs();
      for (TensorSpec& spec : all) {
        if (spec.shape.rank() > 0) spec.shape[0] = kUnknownDim;
      }
      return all;
    });
  }
  int64_t parts() const { return parts_; }

 private:
  const int64_t parts_;  // of each batch
  const PassShard shard_;
  LazySpecs specs_;
};

class PartStream : public ElementStream {
 public:
  PartStream(const PartNode& node, const PassInfo& pass)
      : node_(node), source_(node.parent().open(pass)) {}
  bool next(Tensors* out) override {
    for (;;) {
      for (; part_ < parts(); ++part_) {
        const int64_t n = batch_.at(0).shape()[0];
        const int64_t begin = n * part_ / parts();
        const int64_t end = n * (part_ + 1) / parts();
        if (begin == end) continue;
        numbers_.resize(static_cast<size_t>(end - begin));
        std::iota(numbers_.begin(), numbers_.end(), begin);
        rows_->gather(numbers_, out);
        ++part_;
        return true;
      }
      if (!source_ || !source_->next(&batch_)) {
        source_.reset();
        rows_.reset();
        batch_.clear();
        return false;
      }
      part_ = 0;
      check();
    }
  }
  void save(PassWriter& w) override {
    w.begin(node_);
    w.put(part_);
    w.put(part_ < parts() ? batch_ : Tensors());
    save_source(w, source_);
  }
  void restore(PassReader& r) override {
    r.begin(node_);
    part_ = r.number(0, parts());
    batch_ = r.element();
    if (part_ < parts()) check();
    restore_source(r, &source_);
  }

 private:
  int64_t parts() const { return node_.parts(); }
  void check() {
    for (const Tensor& t : batch_) {
      if (t.rank() > 0 && t.shape()[0] == batch_[0].shape()[0]) continue;
      refuse(node_.where(),
             fmt::format("an element has components {} and {}; expected "
                         "batches, with one first dimension for the examples: "
                         "call batch() before",
                         batch_[0].spec().str(), t.spec().str()));
    }
    if (batch_.empty()) {
      refuse(node_.where(), "an element has no components; expected batches");
    }
    rows_.emplace(batch_);
  }

  const PartNode& node_;
  std::unique_ptr<ElementStream> source_;  // null at its end
  Tensors batch_;
  std::optional<TensorRows> rows_;  // of batch_
  std::vector<int64_t> numbers_;
  int64_t part_ = node_.parts();  // of batch_, the next
};

std::unique_ptr<ElementStream> PartNode::elements(const PassInfo& pass) const {
  PassInfo own = pass;
  own.shard = shard_;
  return std::make_unique<PartStream>(*this, own);
}

template <class Fn>
void visit_chain(const Node& node, std::set<const Node*>* seen, Fn&& fn) {
  if (!seen->insert(&node).second) return;
  fn(node);
  for (const Node* input : node.inputs()) visit_chain(*input, seen, fn);
}
template <class Fn>
void visit_chain(const Node& node, Fn&& fn) {
  std::set<const Node*> seen;
  visit_chain(node, &seen, fn);
}

// Below what permutes, repeats or reads ahead: every task has its files again
// in each repetition, whatever order is drawn.
const Node* under_order(const Node* names) {
  constexpr const char* kThrough[] = {"shuffle", "repeat", "prefetch",
                                      "with_options"};
  for (;;) {
    const auto through = std::any_of(
        std::begin(kThrough), std::end(kThrough),
        [&](const char* w) { return !std::strcmp(names->what(), w); });
    if (!through || names->inputs().size() != 1) return names;
    names = names->inputs()[0];
  }
}

}  // namespace

const char* name_of(AutoShardPolicy policy) {
  switch (policy) {
    case AutoShardPolicy::kOff:
      return "OFF";
    case AutoShardPolicy::kAuto:
      return "AUTO";
    case AutoShardPolicy::kFile:
      return "FILE";
    case AutoShardPolicy::kData:
      return "DATA";
    case AutoShardPolicy::kHint:
      return "HINT";
  }
  return "?";
}

Dataset with_options(const Dataset& dataset, const Options& options,
                     Site site) {
  const auto policy = options.experimental_distribute.auto_shard_policy;
  if (!std::strcmp(name_of(policy), "?")) {
    refuse(call_text("with_options", site),
           fmt::format("auto_shard_policy is {}; expected OFF, AUTO, FILE, "
                       "DATA or HINT",
                       static_cast<int>(policy)));
  }
  return make_dataset<OptionsNode>(dataset, options, site);
}

Options options_of(const Dataset& dataset) {
  const OptionsNode* last = nullptr;
  visit_chain(dataset.node(), [&](const Node& n) {
    if (last == nullptr) last = dynamic_cast<const OptionsNode*>(&n);
  });
  return last != nullptr ? last->options() : Options{};
}

bool reads_files(const Node& node) {
  bool found = false;
  visit_chain(node, [&](const Node& n) { found |= n.num_files().has_value(); });
  return found;
}

bool has_hint(const Node& node) {
  bool found = false;
  visit_chain(node, [&](const Node& n) { found |= n.takes_hint(); });
  return found;
}

FileSplit file_split(const Dataset& dataset) {
  std::vector<const Node*> readers;
  visit_chain(dataset.node(), [&](const Node& n) {
    if (n.num_files().has_value()) readers.push_back(&n);
  });
  FileSplit split;
  if (readers.empty()) {
    split.why_not = "it reads no files";
    return split;
  }
  if (readers.size() > 1) {
    split.why_not = fmt::format(
        "{} and {} both read files, and which belong together is "
        "not known",
        readers[0]->where(), readers[1]->where());
    return split;
  }
  const Node* names = readers[0]->file_names();
  const Node* at = names != nullptr ? under_order(names) : readers[0];
  split.files = names != nullptr ? at->cardinality() : *readers[0]->num_files();
  if (split.files < 0) {
    split.why_not =
        fmt::format("how many files {} hands out is not known", at->where());
    return split;
  }
  split.at = at;
  return split;
}

Dataset part_of_task(const Dataset& dataset, AutoShardPolicy policy,
                     int64_t tasks, int64_t index) {
  PassShard shard;
  if (policy == AutoShardPolicy::kFile) {
    shard = {.tasks = tasks, .index = index, .files = file_split(dataset).at};
  } else if (policy == AutoShardPolicy::kHint) {
    shard = {.tasks = tasks, .index = index, .by_hint = true};
  }
  return make_dataset<PartNode>(dataset, tasks, shard, dataset.node().site());
}

}  // namespace berth::data
