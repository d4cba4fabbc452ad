// Dataset::concatenate.

#include <fmt/format.h>

#include "data/cardinality.h"
#include "data/pass_state.h"
#include "data/stack.h"

namespace berth::data {

namespace {

class ConcatenateNode : public Transform {
 public:
  ConcatenateNode(const Dataset& first, const Dataset& second, Site site)
      : Transform("concatenate", site, first), second_(second) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override;
  int64_t cardinality() const override {
    return sum_of(parent().cardinality(), second_.cardinality());
  }
  const std::vector<TensorSpec>& specs() const override {
    return specs_.get([&] { return joined(); });
  }
  std::vector<const Node*> inputs() const override {
    return {&parent(), &second_.node()};
  }
  const Node& part(int i) const { return i == 0 ? parent() : second_.node(); }

 private:
  std::vector<TensorSpec> joined() const {
    const auto& a = parent().specs();
    const auto& b = second_.element_spec();
    if (a.size() != b.size()) {
      refuse(where(), fmt::format("elements have {} and {} components; "
                                  "expected equally many",
                                  a.size(), b.size()));
    }
    std::vector<TensorSpec> all;
    for (size_t c = 0; c < a.size(); ++c) {
      all.push_back(joined_spec(where(), c, a[c], b[c]));
    }
    return all;
  }

  Dataset second_;
  LazySpecs specs_;
};

class ConcatenateStream : public ElementStream {
 public:
  ConcatenateStream(const ConcatenateNode& node, const PassInfo& pass)
      : node_(node), pass_(pass), source_(node.part(0).open(pass)) {}
  bool next(Tensors* out) override {
    for (;;) {
      if (source_->next(out)) return true;
      if (part_ == 1 || pass_.stop.stop_requested()) return false;
      source_ = node_.part(++part_).open(pass_);
    }
  }
  void save(PassWriter& w) override {
    w.begin(node_);
    w.put(part_);
    w.put_memory(node_.part(1), [&] { source_->save(w); });
  }
  void restore(PassReader& r) override {
    r.begin(node_);
    part_ = static_cast<int>(r.number(0, 1));
    if (part_ == 1) source_ = node_.part(1).open(pass_);
    r.memory(node_.part(1));
    source_->restore(r);
  }

 private:
  const ConcatenateNode& node_;
  const PassInfo pass_;
  std::unique_ptr<ElementStream> source_;
  int part_ = 0;  // that source_ reads
};

std::unique_ptr<ElementStream> ConcatenateNode::elements(
    const PassInfo& pass) const {
  specs();  // refuses datasets that do not fit
  return std::make_unique<ConcatenateStream>(*this, pass);
}

}  // namespace

Dataset Dataset::concatenate(const Dataset& other, Site site) const {
  return make_dataset<ConcatenateNode>(*this, other, site);
}

}  // namespace berth::data
