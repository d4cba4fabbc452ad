// What looks at one element after the other: take_while, scan, unique,
// rejection_resample; and reduce, get_single_element.

#include <fmt/format.h>

#include <cmath>
#include <unordered_set>

#include "base/rng.h"
#include "base/where.h"
#include "data/component_names.h"
#include "data/pass_state.h"
#include "data/seeded_passes.h"
#include "data/stack.h"
#include "data/user_call.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"

namespace berth::data {

namespace {

constexpr uint32_t kResampleOp = 0x7E5A3B1Eu;

class TakeWhileNode : public Transform {
 public:
  TakeWhileNode(const Dataset& parent, Predicate keep, Site site)
      : Transform("take_while", site, parent), keep_(std::move(keep)) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override {
    return std::make_unique<Stream>(*this, pass);
  }
  int64_t cardinality() const override {
    return parent().cardinality() == 0 ? 0 : kUnknown;
  }

 private:
  class Stream : public TransformStream<TakeWhileNode> {
   public:
    using TransformStream::TransformStream;
    bool next(Tensors* out) override {
      if (!source_ || !source_->next(out) ||
          !call_user(node_, number_, [&] { return node_.keep_(*out); })) {
        source_.reset();
        return false;
      }
      ++number_;
      return true;
    }
    void state(PassState& s) override {
      s.begin(node_);
      s(number_);
      s.until_end(source_);
    }
  };

  Predicate keep_;
};

using ScanFunction = std::function<std::pair<Tensors, Tensors>(
    const Tensors& state, const Tensors& element)>;

class ScanNode : public Transform {
 public:
  ScanNode(const Dataset& parent, Tensors initial, ScanFunction fn, Site site)
      : Transform("scan", site, parent),
        initial_(std::move(initial)),
        fn_(std::move(fn)) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override {
    return std::make_unique<Stream>(*this, pass);
  }
  NamesRef names() const override { return nullptr; }
  const std::vector<TensorSpec>& specs() const override {
    return specs_.get([&] {
      std::stop_source stop;
      return first_specs(*open({.stop = stop.get_token(), .peek = true}));
    });
  }

 private:
  class Stream : public TransformStream<ScanNode> {
   public:
    Stream(const ScanNode& node, const PassInfo& pass)
        : TransformStream(node, pass), state_(node.initial_) {}
    bool next(Tensors* out) override {
      Tensors element;
      if (!source_->next(&element)) return false;
      *out = call_map(
          node_, number_,
          [&](const Tensors& e) {
            auto [state, result] = node_.fn_(state_, e);
            if (state.size() != state_.size()) {
              throw errors::InvalidArgument(fmt::format(
                  "the function returned a state of {} tensors; expected {}",
                  state.size(), state_.size()));
            }
            state_ = std::move(state);
            return std::move(result);
          },
          element);
      ++number_;
      return true;
    }
    void state(PassState& s) override {
      s.begin(node_);
      s(number_);
      s(state_);
      s(source_);
    }

   private:
    Tensors state_;
  };

  Tensors initial_;
  ScanFunction fn_;
  LazySpecs specs_;
};

// What two elements have in common if they are equal, and only then.
std::string key_of(const Tensors& element) {
  std::string key;
  for (const Tensor& t : element) {
    key += t.spec().str();
    key += ':';
    if (t.dtype() == string_) {
      for (const std::string& s : strings_of(t)) {
        key += fmt::format("{}:", s.size()) + s;
      }
      continue;
    }
    const size_t at = key.size();
    key.resize(at + t.impl()->size_bytes());
    t.copy_to(key.data() + at);
  }
  return key;
}

class UniqueNode : public Transform {
 public:
  UniqueNode(const Dataset& parent, Site site)
      : Transform("unique", site, parent) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override {
    return std::make_unique<Stream>(*this, pass);
  }
  int64_t cardinality() const override {
    return parent().cardinality() == 0 ? 0 : kUnknown;
  }

 private:
  class Stream : public TransformStream<UniqueNode> {
   public:
    using TransformStream::TransformStream;
    bool next(Tensors* out) override {
      while (!stopped(stop_) && source_->next(out)) {
        if (seen_.insert(key_of(*out)).second) return true;
      }
      return false;
    }
    void save(PassWriter& w) override {
      w.begin(node_);
      w.put(seen_.size());
      for (const std::string& key : seen_) w.put(std::string_view(key));
      source_->save(w);
    }
    void restore(PassReader& r) override {
      r.begin(node_);
      for (int64_t n = r.number(0); n > 0; --n) seen_.insert(r.text());
      source_->restore(r);
    }

   private:
    std::unordered_set<std::string> seen_;
  };
};

using ClassFunction = std::function<int64_t(const Tensors& element)>;

class ResampleNode : public Transform {
 public:
  ResampleNode(const Dataset& parent, ClassFunction class_of,
               std::vector<double> target, const ResampleOptions& options,
               Site site)
      : Transform("rejection_resample", site, parent),
        class_of_(std::move(class_of)),
        target_(std::move(target)),
        initial_(options.initial_dist),
        passes_(options.seed, true) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override {
    return std::make_unique<Stream>(*this, pass);
  }
  int64_t cardinality() const override {
    return parent().cardinality() == 0 ? 0 : kUnknown;
  }
  const std::vector<TensorSpec>& specs() const override {
    return specs_.get([&] { return with_int64(parent().specs()); });
  }
  NamesRef names() const override {
    return names_after("class", parent().names());
  }
  NodeMemory memory() const override { return passes_.memory(); }
  void set_memory(const NodeMemory& m) const override { passes_.set(m); }

 private:
  size_t class_of(const Tensors& element, int64_t number) const {
    return call_user(*this, number, [&] {
      const int64_t c = class_of_(element);
      if (c < 0 || static_cast<size_t>(c) >= target_.size()) {
        throw errors::InvalidArgument(fmt::format(
            "class_func returned {}; expected 0 to {}", c, target_.size() - 1));
      }
      return static_cast<size_t>(c);
    });
  }

  // Keeps an element of class c with a probability in proportion to target[c]
  // over the share of c in the source, the largest of which is 1.
  class Stream : public TransformStream<ResampleNode> {
   public:
    Stream(const ResampleNode& node, const PassInfo& pass)
        : TransformStream(node, pass),
          pass_(node.passes_.begin(pass)),
          counts_(node.target_.size(), 1) {}
    bool next(Tensors* out) override {
      while (!stopped(stop_) && source_->next(out)) {
        const size_t c = node_.class_of(*out, number_);
        ++number_;
        ++counts_[c];
        const RandomStream words(static_cast<uint64_t>(pass_.seed), kResampleOp,
                                 static_cast<uint64_t>(pass_.passes));
        const auto i = static_cast<uint64_t>(number_);
        if (words.uniform(i) < kept(c)) {
          out->insert(out->begin(), int64_scalar(static_cast<int64_t>(c)));
          return true;
        }
      }
      return false;
    }
    void state(PassState& s) override {
      s.begin(node_);
      s(number_);
      s(pass_);
      s(counts_);
      if (counts_.size() != node_.target_.size()) {
        s.reader().damaged("it counts another number of classes");
      }
      s(source_);
    }

   private:
    double kept(size_t c) const {
      double most = 0;
      for (size_t i = 0; i < counts_.size(); ++i) {
        most = std::max(most, node_.target_[i] / share(i));
      }
      return node_.target_[c] / share(c) / most;
    }
    // Up to a factor.
    double share(size_t c) const {
      const auto& known = node_.initial_;
      if (known.empty()) return static_cast<double>(counts_[c]);
      return std::max(known[c], 1e-300);
    }

    NodeMemory pass_;
    std::vector<int64_t> counts_;  // by class, and one
  };

  ClassFunction class_of_;
  std::vector<double> target_, initial_;
  SeededPasses passes_;
  LazySpecs specs_;
};

void check_distribution(const std::string& where, const char* what,
                        const std::vector<double>& dist) {
  double sum = 0;
  for (const double p : dist) {
    if (!std::isfinite(p) || p < 0) {
      refuse(where,
             fmt::format("{} has {}; expected numbers of at least 0", what, p));
    }
    sum += p;
  }
  if (!(sum > 0)) {
    refuse(where,
           fmt::format("{} adds up to {}; expected more than 0", what, sum));
  }
}

}  // namespace

Dataset Dataset::take_while(Predicate keep, Site site) const {
  if (!keep) {
    refuse(call_text("take_while", site),
           "the predicate is empty; expected a function");
  }
  return make_dataset<TakeWhileNode>(*this, std::move(keep), site);
}

Dataset Dataset::scan(Tensors initial_state, ScanFunction fn, Site site) const {
  if (!fn) {
    refuse(call_text("scan", site),
           "the function is empty; expected one to call");
  }
  return make_dataset<ScanNode>(*this, std::move(initial_state), std::move(fn),
                                site);
}

Dataset Dataset::unique(Site site) const {
  return make_dataset<UniqueNode>(*this, site);
}

Dataset Dataset::rejection_resample(ClassFunction class_func,
                                    std::vector<double> target_dist,
                                    const ResampleOptions& options,
                                    Site site) const {
  const std::string where = call_text("rejection_resample", site);
  if (!class_func) refuse(where, "class_func is empty; expected a function");
  check_distribution(where, "target_dist", target_dist);
  if (!options.initial_dist.empty()) {
    check_distribution(where, "initial_dist", options.initial_dist);
    if (options.initial_dist.size() != target_dist.size()) {
      refuse(where,
             fmt::format("initial_dist has {} classes, target_dist {}; "
                         "expected equally many",
                         options.initial_dist.size(), target_dist.size()));
    }
  }
  return make_dataset<ResampleNode>(*this, std::move(class_func),
                                    std::move(target_dist), options, site);
}

Tensors Dataset::reduce(
    Tensors state,
    const std::function<Tensors(const Tensors&, const Tensors&)>& fn,
    Site) const {
  auto it = make_iterator();
  for (Tensors element; it.next(element);) state = fn(state, element);
  return state;
}

Tensors Dataset::get_single_element(Site site) const {
  auto it = make_iterator();
  std::optional<Tensors> only = it.next();
  if (only && !it.next()) return std::move(*only);
  refuse(call_text("get_single_element", site),
         fmt::format("the dataset has {}; expected exactly one element",
                     only ? "more than one element" : "no elements"));
}

}  // namespace berth::data
