// Dataset::window.

#include <fmt/format.h>

#include <deque>

#include "base/where.h"
#include "data/flatten.h"
#include "data/user_call.h"

namespace berth::data {

namespace {

using WindowFunction = std::function<Dataset(const Dataset& window)>;

class WindowNode : public FlattenNode {
 public:
  WindowNode(const Dataset& parent, int64_t size, const WindowOptions& options,
             WindowFunction fn, Site site)
      : FlattenNode("window", site, parent),
        size_(size),
        options_(options),
        fn_(std::move(fn)) {}
  std::unique_ptr<DatasetStream> datasets(const PassInfo& pass) const override;
  int64_t size() const { return size_; }
  int64_t shift() const { return options_.shift.value_or(size_); }
  int64_t stride() const { return options_.stride; }
  bool drop_remainder() const { return options_.drop_remainder; }
  Dataset make(std::vector<Tensors> elements, int64_t number) const {
    const Dataset window = collected("window", site(), std::move(elements),
                                     parent().specs(), parent().names());
    return call_user(*this, number, [&] { return fn_(window); });
  }

 private:
  int64_t size_;
  WindowOptions options_;
  WindowFunction fn_;
};

// The elements from the start of the next window on that have been read.
class WindowStream : public DatasetStream {
 public:
  WindowStream(const WindowNode& node, const PassInfo& pass)
      : node_(node), source_(node.parent().open(pass)), stop_(pass.stop) {}

  std::optional<Dataset> next() override {
    const auto stride = static_cast<size_t>(node_.stride());
    const auto size = static_cast<size_t>(node_.size());
    if (!skip() || !fill((size - 1) * stride + 1)) return std::nullopt;
    last_.clear();
    for (size_t i = 0; i < size && i * stride < ahead_.size(); ++i) {
      last_.push_back(ahead_[i * stride]);
    }
    if (last_.empty() || (last_.size() < size && node_.drop_remainder())) {
      return std::nullopt;
    }
    skip_ = node_.shift();
    return node_.make(last_, number_++);
  }

  void save(PassWriter& w, bool reading) override {
    w.put(number_);
    w.put(skip_);
    save_values(w, reading ? last_ : std::vector<Tensors>{});
    save_values(w, std::vector<Tensors>(ahead_.begin(), ahead_.end()));
    save_source(w, source_);
  }

  std::optional<Dataset> restore(PassReader& r, bool reading) override {
    number_ = r.number(0);
    skip_ = r.number(0, node_.shift());
    restore_values(r, node_.parent(), &last_);
    std::vector<Tensors> ahead;
    restore_values(r, node_.parent(), &ahead);
    ahead_.assign(ahead.begin(), ahead.end());
    restore_source(r, &source_);
    if (!reading) return std::nullopt;
    if (number_ == 0) r.damaged("it reads a window before the first");
    return node_.make(last_, number_ - 1);
  }

 private:
  // Leaves out what lies before the next window; false after a stop.
  bool skip() {
    Tensors element;
    for (; skip_ > 0; --skip_) {
      if (stop_.stop_requested()) return false;
      if (!ahead_.empty()) {
        ahead_.pop_front();
      } else if (!read(&element)) {
        return false;
      }
    }
    return true;
  }
  // Reads on until so many are there or the source ends; false after a stop.
  bool fill(size_t count) {
    Tensors element;
    while (ahead_.size() < count && !stopped(stop_)) {
      if (!read(&element)) break;
      ahead_.push_back(element);
    }
    return !stop_.stop_requested();
  }
  bool read(Tensors* element) {
    if (source_ && source_->next(element)) return true;
    source_.reset();
    return false;
  }

  const WindowNode& node_;
  std::unique_ptr<ElementStream> source_;  // null at its end
  std::stop_token stop_;
  std::deque<Tensors> ahead_;
  std::vector<Tensors> last_;  // of the window that was made last
  int64_t number_ = 0;         // of the next window
  int64_t skip_ = 0;           // elements before it
};

std::unique_ptr<DatasetStream> WindowNode::datasets(
    const PassInfo& pass) const {
  return std::make_unique<WindowStream>(*this, pass);
}

}  // namespace

Windows Dataset::window(int64_t size, const WindowOptions& options,
                        Site site) const {
  const int64_t shift = options.shift.value_or(size);
  if (size < 1 || shift < 1 || options.stride < 1 ||
      size > INT64_MAX / 2 / options.stride) {
    refuse(call_text("window", site),
           fmt::format("size is {}, shift {}, stride {}; expected each of at "
                       "least 1, and size x stride below 2^62",
                       size, shift, options.stride));
  }
  return Windows(*this, size, options);
}

Dataset Windows::flat_map(WindowFunction fn, Site site) const {
  if (!fn) {
    refuse(call_text("window, flat_map", site),
           "the function is empty; expected one that makes a dataset");
  }
  return make_dataset<WindowNode>(parent_, size_, options_, std::move(fn),
                                  site);
}

Dataset Windows::batch(Site site) const {
  const int64_t size = size_;
  return flat_map(
      [size, site](const Dataset& window) {
        return window.batch(size, {}, site);
      },
      site);
}

int64_t Windows::cardinality() const {
  const int64_t n = parent_.cardinality();
  if (n < 0) return n;
  const int64_t shift = options_.shift.value_or(size_);
  const int64_t reach =
      options_.drop_remainder ? (size_ - 1) * options_.stride : 0;
  return n <= reach ? 0 : (n - reach - 1) / shift + 1;
}

}  // namespace berth::data
