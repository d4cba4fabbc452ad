// Dataset::zip.

#include "base/where.h"
#include "data/cardinality.h"
#include "data/component_names.h"
#include "data/pass_state.h"

namespace berth::data {

namespace {

class ZipNode : public Node {
 public:
  ZipNode(std::vector<Dataset> parents, Site site)
      : Node("zip", site), parents_(std::move(parents)) {
    for (const Dataset& d : parents_) {
      cardinality_ = shorter_of(cardinality_, d.cardinality());
    }
  }
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override {
    return std::make_unique<Stream>(*this, pass);
  }
  int64_t cardinality() const override { return cardinality_; }
  const std::vector<TensorSpec>& specs() const override {
    return specs_.get([&] {
      std::vector<TensorSpec> all;
      for (const Dataset& d : parents_) {
        const auto& specs = d.element_spec();
        all.insert(all.end(), specs.begin(), specs.end());
      }
      return all;
    });
  }
  std::vector<const Node*> inputs() const override {
    std::vector<const Node*> all;
    for (const Dataset& d : parents_) all.push_back(&d.node());
    return all;
  }
  NamesRef names() const override { return joined_names(parents_); }

 private:
  class Stream : public ElementStream {
   public:
    Stream(const ZipNode& node, const PassInfo& pass) : node_(node) {
      for (const Dataset& d : node.parents_) {
        sources_.push_back(d.node().open(pass));
      }
    }
    bool next(Tensors* out) override {
      out->clear();
      for (auto& source : sources_) {
        if (!source->next(&part_)) return false;
        for (Tensor& t : part_) out->push_back(std::move(t));
      }
      return true;
    }
    void state(PassState& s) override {
      s.begin(node_);
      for (auto& source : sources_) s(source);
    }

   private:
    const ZipNode& node_;
    std::vector<std::unique_ptr<ElementStream>> sources_;
    Tensors part_;
  };

  std::vector<Dataset> parents_;
  int64_t cardinality_ = kInfinite;
  LazySpecs specs_;
};

}  // namespace

Dataset Dataset::zip(const std::vector<Dataset>& datasets, Site site) {
  if (datasets.empty()) {
    refuse(call_text("zip", site),
           "no datasets were given; expected at least one");
  }
  return make_dataset<ZipNode>(datasets, site);
}

}  // namespace berth::data
