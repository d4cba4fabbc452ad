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
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override {
    return std::make_unique<Stream>(*this, pass);
  }
  int64_t cardinality() const override {
    return parent().cardinality() == 0 ? 0 : kUnknown;
  }

 private:
  class Stream : public TransformStream<FilterNode> {
   public:
    using TransformStream::TransformStream;
    bool next(Tensors* out) override {
      while (!stopped(stop_) && source_->next(out)) {
        if (call_user(node_, number_++, [&] { return node_.keep_(*out); })) {
          return true;
        }
      }
      return false;
    }
  };

  Predicate keep_;
};

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
