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
  std::unique_ptr<PassStream<T>> stream(const PassInfo& pass) const;
  int64_t cardinality() const override { return expected_; }

  [[noreturn]] void fail(const char* found, int64_t n) const {
    throw errors::FailedPrecondition(fmt::format(
        "{}: the dataset {} {} elements; expected {}", where(), found, n,
        expected_ == kInfinite ? "no end" : fmt::format("{}", expected_)));
  }

 private:
  int64_t expected_;
};

template <class T>
class AssertStream : public PassStream<T> {
 public:
  AssertStream(const AssertNode& node, std::unique_ptr<PassStream<T>> source,
               std::stop_token stop)
      : node_(node), source_(std::move(source)), stop_(std::move(stop)) {}
  bool next(T* out) override {
    const int64_t expected = node_.cardinality();
    if (source_->next(out)) {
      if (++seen_ > expected && expected >= 0)
        node_.fail("has at least", seen_);
      return true;
    }
    if (seen_ != expected && !stop_.stop_requested()) {
      node_.fail("ended after", seen_);
    }
    return false;
  }
  void save(PassWriter& w) override {
    w.begin(node_);
    w.put(seen_);
    source_->save(w);
  }
  void restore(PassReader& r) override {
    r.begin(node_);
    seen_ = r.number(0);
    source_->restore(r);
  }

 private:
  const AssertNode& node_;
  std::unique_ptr<PassStream<T>> source_;
  std::stop_token stop_;
  int64_t seen_ = 0;
};

template <class T>
std::unique_ptr<PassStream<T>> AssertNode::stream(const PassInfo& pass) const {
  return std::make_unique<AssertStream<T>>(*this, data::open<T>(parent(), pass),
                                           pass.stop);
}

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
