// sample_from_datasets and choose_from_datasets: each element from one of
// several datasets.

#include <fmt/format.h>

#include <cmath>

#include "base/rng.h"
#include "base/where.h"
#include "data/cardinality.h"
#include "data/pass_state.h"
#include "data/seeded_passes.h"
#include "data/stack.h"

namespace berth::data {

namespace {

constexpr uint32_t kSampleOp = 0x5A3B1E02u;

// Which dataset the next element comes from.
class Chooser {
 public:
  virtual ~Chooser() = default;
  // Sets `out` to a number below the number of datasets; false at the end.
  // `empty` are those that have ended.
  virtual bool next(const std::vector<bool>& empty, size_t* out) = 0;
  virtual void state(PassState& s) = 0;
};

class ChoiceNode : public Node {
 public:
  ChoiceNode(const char* what, Site site, std::vector<Dataset> parents,
             bool stop_on_empty)
      : Node(what, site),
        parents_(std::move(parents)),
        stop_on_empty_(stop_on_empty) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override;
  const std::vector<TensorSpec>& specs() const override {
    return specs_.get([&] { return joined(); });
  }
  virtual std::unique_ptr<Chooser> chooser(const PassInfo& pass) const = 0;
  std::vector<const Node*> inputs() const override {
    std::vector<const Node*> all;
    for (const Dataset& d : parents_) all.push_back(&d.node());
    return all;
  }
  NamesRef names() const override { return parents_[0].node().names(); }
  const std::vector<Dataset>& parents() const { return parents_; }
  bool stop_on_empty() const { return stop_on_empty_; }

 private:
  std::vector<TensorSpec> joined() const {
    std::vector<TensorSpec> all = parents_[0].element_spec();
    for (const Dataset& d : parents_) {
      const auto& specs = d.element_spec();
      if (specs.size() != all.size()) {
        refuse(where(), fmt::format("elements have {} and {} components; "
                                    "expected equally many",
                                    all.size(), specs.size()));
      }
      for (size_t c = 0; c < all.size(); ++c) {
        all[c] = joined_spec(where(), c, all[c], specs[c]);
      }
    }
    return all;
  }

  std::vector<Dataset> parents_;
  bool stop_on_empty_;
  LazySpecs specs_;
};

class ChoiceStream : public ElementStream {
 public:
  ChoiceStream(const ChoiceNode& node, const PassInfo& pass)
      : node_(node), stop_(pass.stop), chooser_(node.chooser(pass)) {
    for (const Dataset& d : node.parents()) {
      sources_.push_back(d.node().open(pass));
    }
    empty_.resize(sources_.size());
  }
  bool next(Tensors* out) override {
    size_t which = 0;
    while (left() && !stopped(stop_) && chooser_->next(empty_, &which)) {
      if (!empty_[which] && sources_[which]->next(out)) return true;
      if (node_.stop_on_empty()) return false;
      empty_[which] = true;
      sources_[which].reset();
    }
    return false;
  }
  void state(PassState& s) override {
    s.begin(node_);
    chooser_->state(s);
    for (size_t i = 0; i < sources_.size(); ++i) {
      s.until_end(sources_[i]);
      empty_[i] = sources_[i] == nullptr;
    }
  }

 private:
  bool left() const {
    return std::find(empty_.begin(), empty_.end(), false) != empty_.end();
  }

  const ChoiceNode& node_;
  std::stop_token stop_;
  std::unique_ptr<Chooser> chooser_;
  std::vector<std::unique_ptr<ElementStream>> sources_;  // null at their end
  std::vector<bool> empty_;
};

std::unique_ptr<ElementStream> ChoiceNode::elements(
    const PassInfo& pass) const {
  specs();  // refuses datasets that do not fit
  return std::make_unique<ChoiceStream>(*this, pass);
}

// Draws by weight among those that have not ended.
class Drawn : public Chooser {
 public:
  Drawn(const std::vector<double>& weights, const NodeMemory& pass)
      : weights_(weights), pass_(pass), words_(words_of(pass)) {}
  bool next(const std::vector<bool>& empty, size_t* out) override {
    double sum = 0;
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (!empty[i]) sum += weights_[i];
    }
    double at = sum * static_cast<double>(words_.uniform(drawn_++));
    bool any = false;
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (empty[i] || weights_[i] == 0) continue;
      any = true;
      *out = i;
      if (at < weights_[i]) break;
      at -= weights_[i];
    }
    return any;
  }
  void state(PassState& s) override {
    s(pass_);
    words_ = words_of(pass_);
    s.any(drawn_);
  }

 private:
  static RandomStream words_of(const NodeMemory& pass) {
    return {static_cast<uint64_t>(pass.seed), kSampleOp,
            static_cast<uint64_t>(pass.passes)};
  }

  const std::vector<double>& weights_;
  NodeMemory pass_;
  RandomStream words_;
  uint64_t drawn_ = 0;
};

class SampleNode : public ChoiceNode {
 public:
  SampleNode(std::vector<Dataset> parents, std::vector<double> weights,
             const SampleOptions& options, Site site)
      : ChoiceNode("sample_from_datasets", site, std::move(parents),
                   options.stop_on_empty_dataset),
        weights_(std::move(weights)),
        passes_(options.seed, options.rerandomize_each_iteration) {}
  std::unique_ptr<Chooser> chooser(const PassInfo& pass) const override {
    return std::make_unique<Drawn>(weights_, passes_.begin(pass));
  }
  NodeMemory memory() const override { return passes_.memory(); }
  void set_memory(const NodeMemory& m) const override { passes_.set(m); }
  // Once all are read whole, nothing else is left.
  int64_t cardinality() const override {
    int64_t n = 0;
    for (size_t i = 0; i < parents().size(); ++i) {
      if (weights_[i] > 0) n = sum_of(n, parents()[i].cardinality());
    }
    return n > 0 && stop_on_empty() ? kUnknown : n;
  }

 private:
  std::vector<double> weights_;
  SeededPasses passes_;
};

class ChooseNode : public ChoiceNode {
 public:
  ChooseNode(std::vector<Dataset> parents, const Dataset& choices,
             const ChooseOptions& options, Site site)
      : ChoiceNode("choose_from_datasets", site, std::move(parents),
                   options.stop_on_empty_dataset),
        choices_(choices) {}
  std::unique_ptr<Chooser> chooser(const PassInfo& pass) const override;
  std::vector<const Node*> inputs() const override {
    auto all = ChoiceNode::inputs();
    all.push_back(&choices());
    return all;
  }
  int64_t cardinality() const override {
    return choices_.cardinality() == 0 ? 0 : kUnknown;
  }
  const Node& choices() const { return choices_.node(); }

 private:
  Dataset choices_;
};

class Chosen : public Chooser {
 public:
  Chosen(const ChooseNode& node, const PassInfo& pass)
      : node_(node), source_(node.choices().open(pass)) {}
  bool next(const std::vector<bool>& empty, size_t* out) override {
    if (!source_->next(&element_)) return false;
    const bool fits = element_.size() == 1 && element_[0].rank() == 0 &&
                      element_[0].dtype() == int64;
    const int64_t n = fits ? element_[0].item<int64_t>() : -1;
    if (n < 0 || static_cast<size_t>(n) >= empty.size()) {
      refuse(node_.where(),
             fmt::format("choice {} is {}; expected an int64 scalar of 0 to {}",
                         number_, element_[0].str(), empty.size() - 1));
    }
    ++number_;
    *out = static_cast<size_t>(n);
    return true;
  }
  void state(PassState& s) override {
    s(number_);
    s(source_);
  }

 private:
  const ChooseNode& node_;
  std::unique_ptr<ElementStream> source_;
  Tensors element_;
  int64_t number_ = 0;
};

std::unique_ptr<Chooser> ChooseNode::chooser(const PassInfo& pass) const {
  return std::make_unique<Chosen>(*this, pass);
}

}  // namespace

Dataset Dataset::sample_from_datasets(const std::vector<Dataset>& datasets,
                                      const SampleOptions& options, Site site) {
  const std::string where = call_text("sample_from_datasets", site);
  if (datasets.empty()) {
    refuse(where, "no datasets were given; expected at least one");
  }
  std::vector<double> weights = options.weights;
  if (weights.empty()) weights.assign(datasets.size(), 1.0);
  if (weights.size() != datasets.size()) {
    refuse(where, fmt::format("there are {} weights for {} datasets; expected "
                              "one for each, or none",
                              weights.size(), datasets.size()));
  }
  double sum = 0;
  for (const double w : weights) {
    if (!std::isfinite(w) || w < 0) {
      refuse(where, fmt::format("a weight is {}; expected numbers of at least "
                                "0",
                                w));
    }
    sum += w;
  }
  if (!(sum > 0) || !std::isfinite(sum)) {
    refuse(where,
           fmt::format("the weights add up to {}; expected more than 0", sum));
  }
  return make_dataset<SampleNode>(datasets, std::move(weights), options, site);
}

Dataset Dataset::choose_from_datasets(const std::vector<Dataset>& datasets,
                                      const Dataset& choice_dataset,
                                      const ChooseOptions& options, Site site) {
  if (datasets.empty()) {
    refuse(call_text("choose_from_datasets", site),
           "no datasets were given; expected at least one");
  }
  return make_dataset<ChooseNode>(datasets, choice_dataset, options, site);
}

}  // namespace berth::data
