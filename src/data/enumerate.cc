// Dataset::enumerate.

#include "data/component_names.h"
#include "data/pass_state.h"
#include "data/stack.h"

namespace berth::data {

namespace {

class EnumerateNode : public Transform {
 public:
  EnumerateNode(const Dataset& parent, int64_t start, Site site)
      : Transform("enumerate", site, parent), start_(start) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override {
    return std::make_unique<Stream>(*this, pass);
  }
  const std::vector<TensorSpec>& specs() const override {
    return specs_.get([&] { return with_int64(parent().specs()); });
  }
  // "index", then those before.
  NamesRef names() const override {
    return names_after("index", parent().names());
  }

 private:
  class Stream : public TransformStream<EnumerateNode> {
   public:
    Stream(const EnumerateNode& node, const PassInfo& pass)
        : TransformStream(node, pass) {
      number_ = node.start_;
    }
    bool next(Tensors* out) override {
      if (!source_->next(out)) return false;
      out->insert(out->begin(), int64_scalar(number_++));
      return true;
    }
    void state(PassState& s) override {
      s.begin(node_);
      s(number_, node_.start_);
      s(source_);
    }
  };

  int64_t start_;
  LazySpecs specs_;
};

}  // namespace

Dataset Dataset::enumerate(int64_t start, Site site) const {
  return make_dataset<EnumerateNode>(*this, start, site);
}

}  // namespace berth::data
