// Dataset::ignore_errors.

#include <fmt/format.h>

#include "base/diagnostics.h"
#include "data/pass_state.h"

namespace berth::data {

namespace {

class IgnoreNode : public Transform {
 public:
  IgnoreNode(const Dataset& parent, bool log_warning, Site site)
      : Transform("ignore_errors", site, parent), log_warning_(log_warning) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override;
  int64_t cardinality() const override {
    return parent().cardinality() == 0 ? 0 : kUnknown;
  }
  bool log_warning() const { return log_warning_; }
  std::string explain() const override {
    return fmt::format("{} errors ignored", ignored_.load());
  }
  void count() const { ++ignored_; }

 private:
  bool log_warning_;
  mutable std::atomic<int64_t> ignored_{0};
};

class IgnoreStream : public ElementStream {
 public:
  IgnoreStream(const IgnoreNode& node, const PassInfo& pass)
      : node_(node), pass_(pass), source_(open_source()) {}

  bool next(Tensors* out) override {
    while (!stopped(pass_.stop)) {
      try {
        return source_->next(out);
      } catch (...) {
        const PassError failure = PassError::current();
        if (failure.code == errors::Code::kCancelled) throw;
        ignore(failure);
      }
    }
    return false;
  }
  void state(PassState& s) override {
    s.begin(node_);
    s(ignored_);
    if (s.restoring() && pass_.counts) pass_.counts->ignored += ignored_;
    s(source_);
  }

 private:
  std::unique_ptr<ElementStream> open_source() const {
    PassInfo inner = pass_;
    inner.keep_going = true;
    return node_.parent().open(inner);
  }

  void ignore(const PassError& failure) {
    ++ignored_;
    node_.count();
    if (pass_.counts) {
      ++pass_.counts->ignored;
      std::lock_guard lock(pass_.counts->mutex);
      pass_.counts->last_error = failure.message;
    }
    if (!node_.log_warning() || pass_.peek) return;
    report({"element-ignored", debugging::Severity::kWarning,
            fmt::format("{} left an element out: {}", node_.where(),
                        failure.message),
            node_.site()});
  }

  const IgnoreNode& node_;
  const PassInfo pass_;
  std::unique_ptr<ElementStream> source_;
  int64_t ignored_ = 0;
};

std::unique_ptr<ElementStream> IgnoreNode::elements(
    const PassInfo& pass) const {
  return std::make_unique<IgnoreStream>(*this, pass);
}

}  // namespace

Dataset Dataset::ignore_errors(const IgnoreErrorsOptions& options,
                               Site site) const {
  return make_dataset<IgnoreNode>(*this, options.log_warning, site);
}

}  // namespace berth::data
