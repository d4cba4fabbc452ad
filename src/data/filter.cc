// Dataset::filter.

#include "base/where.h"
#include "data/pass_state.h"
#include "data/user_call.h"

namespace berth::data {

namespace {

class FilterNode : public Transform {
 public:
  FilterNode(const Dataset& parent, Predicate keep, Site site)
      : Transform("filter", site, parent), keep_(std::move(keep)) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override;
  int64_t cardinality() const override {
    return parent().cardinality() == 0 ? 0 : kUnknown;
  }
  const Predicate& keep() const { return keep_; }

 private:
  Predicate keep_;
};

class FilterStream : public ElementStream {
 public:
  FilterStream(const FilterNode* node, const PassInfo& pass)
      : node_(node), source_(node->parent().open(pass)), stop_(pass.stop) {}
  bool next(Tensors* out) override {
    while (!stopped(stop_) && source_->next(out)) {
      if (call_user(*node_, number_++, [&] { return node_->keep()(*out); })) {
        return true;
      }
    }
    return false;
  }
  void save(PassWriter& w) override {
    w.begin(*node_);
    w.put(number_);
    source_->save(w);
  }
  void restore(PassReader& r) override {
    r.begin(*node_);
    number_ = r.number(0);
    source_->restore(r);
  }

 private:
  const FilterNode* node_;
  std::unique_ptr<ElementStream> source_;
  std::stop_token stop_;
  int64_t number_ = 0;
};

std::unique_ptr<ElementStream> FilterNode::elements(
    const PassInfo& pass) const {
  return std::make_unique<FilterStream>(this, pass);
}

}  // namespace

Dataset Dataset::filter(Predicate keep, Site site) const {
  if (!keep) {
    refuse(call_text("filter", site),
           "the predicate is empty; expected a function");
  }
  return make_dataset<FilterNode>(*this, std::move(keep), site);
}

Dataset Dataset::filter_named(NamedPredicate keep, Site site) const {
  if (!keep) return filter(Predicate(), site);
  return filter(
      [keep = std::move(keep), before = node_](const Tensors& element) {
        return keep(Element(element, before->names()));
      },
      site);
}

}  // namespace berth::data
