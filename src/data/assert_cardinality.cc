// Dataset::assert_cardinality.

#include <fmt/format.h>

#include "base/where.h"
#include "data/pass_state.h"

namespace berth::data {

namespace {

class AssertNode : public Selection<AssertNode> {
 public:
  AssertNode(const Dataset& parent, int64_t expected, Site site)
      : Selection("assert_cardinality", site, parent), expected_(expected) {}
  template <class T>
  std::unique_ptr<PassStream<T>> stream(const PassInfo& pass) const {
    return std::make_unique<Stream<T>>(*this, pass);
  }
  int64_t cardinality() const override { return expected_; }

 private:
  [[noreturn]] void fail(const char* found, int64_t n) const {
    throw errors::FailedPrecondition(fmt::format(
        "{}: the dataset {} {} elements; expected {}", where(), found, n,
        expected_ == kInfinite ? "no end" : fmt::format("{}", expected_)));
  }

  template <class T>
  class Stream : public TransformStream<AssertNode, T> {
   public:
    using TransformStream<AssertNode, T>::TransformStream;
    bool next(T* out) override {
      const AssertNode& node = this->node_;
      int64_t& seen = this->number_;
      if (this->source_->next(out)) {
        if (++seen > node.expected_ && node.expected_ >= 0)
          node.fail("has at least", seen);
        return true;
      }
      if (seen != node.expected_ && !this->stop_.stop_requested()) {
        node.fail("ended after", seen);
      }
      return false;
    }
  };

  int64_t expected_;
};

}  // namespace

Dataset Dataset::assert_cardinality(int64_t expected, Site site) const {
  if (expected < 0 && expected != kInfinite) {
    refuse(call_text("assert_cardinality", site),
           fmt::format("expected is {}; expected at least 0, or "
                       "data::kInfinite",
                       expected));
  }
  return make_dataset<AssertNode>(*this, expected, site);
}

}  // namespace berth::data
