#include "data/flatten.h"

namespace berth::data {

namespace {

class FlattenStream : public ElementStream {
 public:
  FlattenStream(const FlattenNode& node, const PassInfo& pass)
      : node_(node), pass_(pass), datasets_(node.datasets(pass)) {}
  bool next(Tensors* out) override {
    while (!stopped(pass_.stop)) {
      if (source_ && source_->next(out)) return true;
      source_.reset();
      dataset_ = datasets_->next();
      if (!dataset_) return false;
      node_.learn(*dataset_);
      source_ = dataset_->node().open(pass_);
    }
    return false;
  }
  void save(PassWriter& w) override {
    w.begin(node_);
    w.put(source_ != nullptr);
    datasets_->save(w, source_ != nullptr);
    if (source_) source_->save(w);
  }
  void restore(PassReader& r) override {
    r.begin(node_);
    const bool reading = r.flag();
    dataset_ = datasets_->restore(r, reading);
    if (!reading) return;
    if (!dataset_) r.damaged("a dataset is read that is not there");
    source_ = dataset_->node().open(pass_);
    source_->restore(r);
  }

 private:
  const FlattenNode& node_;
  const PassInfo pass_;
  std::unique_ptr<DatasetStream> datasets_;
  std::optional<Dataset> dataset_;  // keeps what source_ refers to
  std::unique_ptr<ElementStream> source_;
};

class CollectedNode : public Node {
 public:
  CollectedNode(const char* what, Site site, std::vector<Tensors> elements,
                std::vector<TensorSpec> specs, NamesRef names)
      : Node(what, site),
        elements_(std::move(elements)),
        specs_(std::move(specs)),
        names_(std::move(names)) {}
  NamesRef names() const override { return names_; }
  std::unique_ptr<ElementStream> elements(const PassInfo&) const override {
    return std::make_unique<Stream>(*this);
  }
  int64_t cardinality() const override {
    return static_cast<int64_t>(elements_.size());
  }
  const std::vector<TensorSpec>& specs() const override { return specs_; }

 private:
  class Stream : public ElementStream {
   public:
    explicit Stream(const CollectedNode& node) : node_(node) {}
    bool next(Tensors* out) override {
      if (at_ == node_.elements_.size()) return false;
      *out = node_.elements_[at_++];
      return true;
    }
    void state(PassState& s) override {
      s.begin(node_);
      s(at_, node_.elements_.size());
    }

   private:
    const CollectedNode& node_;
    size_t at_ = 0;
  };

  std::vector<Tensors> elements_;
  std::vector<TensorSpec> specs_;
  NamesRef names_;
};

}  // namespace

std::unique_ptr<ElementStream> FlattenNode::elements(
    const PassInfo& pass) const {
  return std::make_unique<FlattenStream>(*this, pass);
}

const std::vector<TensorSpec>& FlattenNode::specs() const {
  return specs_.get([&] {
    std::stop_source stop;
    const auto all = datasets({.stop = stop.get_token(), .peek = true});
    const auto first = all->next();
    if (!first) return std::vector<TensorSpec>();
    learn(*first);
    return first->element_spec();
  });
}

Dataset collected(const char* what, Site site, std::vector<Tensors> elements,
                  std::vector<TensorSpec> like, NamesRef names) {
  return make_dataset<CollectedNode>(what, site, std::move(elements),
                                     std::move(like), std::move(names));
}

}  // namespace berth::data
