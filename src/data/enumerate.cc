// Dataset::enumerate.

#include <mutex>

#include "data/component_names.h"
#include "data/pass_state.h"
#include "data/stack.h"

namespace berth::data {

namespace {

class EnumerateNode : public Transform {
 public:
  EnumerateNode(const Dataset& parent, int64_t start, Site site)
      : Transform("enumerate", site, parent), start_(start) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override;
  const std::vector<TensorSpec>& specs() const override {
    std::call_once(once_, [&] {
      specs_ = parent().specs();
      specs_.insert(specs_.begin(), TensorSpec{Shape{}, int64, {}});
    });
    return specs_;
  }
  // "index", then those before.
  NamesRef names() const override {
    return names_after("index", parent().names());
  }
  int64_t start() const { return start_; }

 private:
  int64_t start_;
  mutable std::once_flag once_;
  mutable std::vector<TensorSpec> specs_;
};

class EnumerateStream : public ElementStream {
 public:
  EnumerateStream(const EnumerateNode& node, const PassInfo& pass)
      : node_(node), source_(node.parent().open(pass)), number_(node.start()) {}
  bool next(Tensors* out) override {
    if (!source_->next(out)) return false;
    out->insert(out->begin(), int64_scalar(number_++));
    return true;
  }
  void save(PassWriter& w) override {
    w.begin(node_);
    w.put(number_);
    source_->save(w);
  }
  void restore(PassReader& r) override {
    r.begin(node_);
    number_ = r.number(node_.start());
    source_->restore(r);
  }

 private:
  const EnumerateNode& node_;
  std::unique_ptr<ElementStream> source_;
  int64_t number_;
};

std::unique_ptr<ElementStream> EnumerateNode::elements(
    const PassInfo& pass) const {
  return std::make_unique<EnumerateStream>(*this, pass);
}

}  // namespace

Dataset Dataset::enumerate(int64_t start, Site site) const {
  return make_dataset<EnumerateNode>(*this, start, site);
}

}  // namespace berth::data
