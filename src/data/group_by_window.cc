// Dataset::group_by_window.

#include <fmt/format.h>

#include <map>

#include "base/where.h"
#include "data/flatten.h"
#include "data/user_call.h"

namespace berth::data {

namespace {

using KeyFunction = std::function<int64_t(const Tensors& element)>;
using ReduceFunction =
    std::function<Dataset(int64_t key, const Dataset& window)>;

class GroupNode : public FlattenNode {
 public:
  GroupNode(const Dataset& parent, KeyFunction key, ReduceFunction reduce,
            const GroupByWindowOptions& options, Site site)
      : FlattenNode("group_by_window", site, parent),
        key_(std::move(key)),
        reduce_(std::move(reduce)),
        options_(options) {}
  std::unique_ptr<DatasetStream> datasets(const PassInfo& pass) const override;

  int64_t key(const Tensors& element, int64_t number) const {
    return call_user(*this, number, [&] { return key_(element); });
  }
  size_t window_size(int64_t key, int64_t number) const {
    if (options_.window_size > 0) {
      return static_cast<size_t>(options_.window_size);
    }
    const int64_t size = call_user(
        *this, number, [&] { return options_.window_size_func(key); });
    if (size < 1) {
      refuse(where(), fmt::format("window_size_func({}) is {}; expected at "
                                  "least 1",
                                  key, size));
    }
    return static_cast<size_t>(size);
  }
  Dataset make(int64_t key, std::vector<Tensors> window, int64_t number) const {
    const Dataset d = collected("window", site(), std::move(window),
                                parent().specs(), parent().names());
    return call_user(*this, number, [&] { return reduce_(key, d); });
  }

 private:
  KeyFunction key_;
  ReduceFunction reduce_;
  GroupByWindowOptions options_;
};

class GroupStream : public DatasetStream {
 public:
  GroupStream(const GroupNode& node, const PassInfo& pass)
      : node_(node), source_(node.parent().open(pass)), stop_(pass.stop) {}

  std::optional<Dataset> next() override {
    Tensors element;
    while (source_ && !stopped(stop_)) {
      if (!source_->next(&element)) {
        source_.reset();
        break;
      }
      const int64_t key = node_.key(element, number_);
      Group& group = groups_[key];
      if (group.size == 0) group.size = node_.window_size(key, number_);
      ++number_;
      group.elements.push_back(std::move(element));
      element = {};
      if (group.elements.size() == group.size) return make(key);
    }
    if (groups_.empty() || stop_.stop_requested()) return std::nullopt;
    return make(groups_.begin()->first);
  }

  void save(PassWriter& w, bool reading) override {
    w.put(number_);
    w.put(last_key_);
    save_values(w, reading ? last_ : std::vector<Tensors>{});
    w.put(groups_.size());
    for (const auto& [key, group] : groups_) {
      w.put(key);
      w.put(group.size);
      save_values(w, group.elements);
    }
    save_source(w, source_);
  }

  std::optional<Dataset> restore(PassReader& r, bool reading) override {
    number_ = r.number(0);
    last_key_ = r.number();
    restore_values(r, node_.parent(), &last_);
    for (int64_t n = r.number(0); n > 0; --n) {
      Group& group = groups_[r.number()];
      group.size = static_cast<size_t>(r.number(1));
      restore_values(r, node_.parent(), &group.elements);
      if (group.elements.size() >= group.size) {
        r.damaged("a window is full that is being filled");
      }
    }
    restore_source(r, &source_);
    if (!reading) return std::nullopt;
    return node_.make(last_key_, last_, number_);
  }

 private:
  struct Group {
    size_t size = 0;  // of its next window
    std::vector<Tensors> elements;
  };

  Dataset make(int64_t key) {
    last_key_ = key;
    last_ = std::move(groups_[key].elements);
    groups_.erase(key);
    return node_.make(key, last_, number_);
  }

  const GroupNode& node_;
  std::unique_ptr<ElementStream> source_;  // null at its end
  std::stop_token stop_;
  std::map<int64_t, Group> groups_;
  std::vector<Tensors> last_;  // of the window that was made last
  int64_t last_key_ = 0;
  int64_t number_ = 0;  // of the next element
};

std::unique_ptr<DatasetStream> GroupNode::datasets(const PassInfo& pass) const {
  return std::make_unique<GroupStream>(*this, pass);
}

std::string sequence_where(Site site) {
  return call_text("bucket_by_sequence_length", site);
}

void check_buckets(const std::vector<int64_t>& boundaries,
                   const std::vector<int64_t>& sizes, Site site) {
  if (sizes.size() != boundaries.size() + 1) {
    refuse(sequence_where(site),
           fmt::format("there are {} bucket_batch_sizes for {} "
                       "bucket_boundaries; expected one more",
                       sizes.size(), boundaries.size()));
  }
  for (size_t i = 1; i < boundaries.size(); ++i) {
    if (boundaries[i] > boundaries[i - 1]) continue;
    refuse(sequence_where(site),
           fmt::format("bucket_boundaries has {} after {}; expected rising "
                       "numbers",
                       boundaries[i], boundaries[i - 1]));
  }
  for (const int64_t size : sizes) {
    if (size >= 1) continue;
    refuse(sequence_where(site),
           fmt::format("a bucket_batch_size is {}; expected at least 1", size));
  }
}

// Shapes of elements of a bucket below `boundary`, whose unknown dimensions
// are as long as they may be there.
std::vector<Shape> bucket_shapes(const std::vector<Shape>& asked,
                                 const std::vector<TensorSpec>& specs,
                                 int64_t boundary, Site site) {
  std::vector<Shape> shapes = asked;
  for (size_t c = shapes.size(); c < specs.size(); ++c) {
    shapes.push_back(specs[c].shape);
  }
  bool any = false;
  for (Shape& shape : shapes) {
    for (int i = 0; i < shape.rank(); ++i) {
      any |= shape[i] < 0;
      if (shape[i] < 0) shape[i] = boundary - 1;
    }
  }
  if (!any) {
    refuse(sequence_where(site),
           "pad_to_bucket_boundary: no dimension of an element is unknown; "
           "expected padded_shapes with -1 where lengths vary");
  }
  return shapes;
}

}  // namespace

Dataset Dataset::group_by_window(KeyFunction key_func,
                                 ReduceFunction reduce_func,
                                 const GroupByWindowOptions& options,
                                 Site site) const {
  const std::string where = call_text("group_by_window", site);
  if (!key_func || !reduce_func) {
    refuse(where, "a function is empty; expected key_func and reduce_func");
  }
  const bool by_key = static_cast<bool>(options.window_size_func);
  if (by_key == (options.window_size != 0) || options.window_size < 0) {
    refuse(where, fmt::format("window_size is {}, window_size_func {}; "
                              "expected a window_size of at least 1 or a "
                              "window_size_func",
                              options.window_size,
                              by_key ? "is given" : "is not given"));
  }
  return make_dataset<GroupNode>(*this, std::move(key_func),
                                 std::move(reduce_func), options, site);
}

Dataset Dataset::bucket_by_sequence_length(
    KeyFunction element_length_func, std::vector<int64_t> bucket_boundaries,
    std::vector<int64_t> bucket_batch_sizes, const BucketOptions& options,
    Site site) const {
  check_buckets(bucket_boundaries, bucket_batch_sizes, site);
  if (!element_length_func) {
    refuse(sequence_where(site),
           "element_length_func is empty; expected a function");
  }
  const auto bucket = [length = std::move(element_length_func),
                       bounds = bucket_boundaries](const Tensors& element) {
    const auto at =
        std::upper_bound(bounds.begin(), bounds.end(), length(element));
    return static_cast<int64_t>(at - bounds.begin());
  };
  const auto batch = [o = options, bounds = std::move(bucket_boundaries),
                      sizes = bucket_batch_sizes,
                      site](int64_t key, const Dataset& window) {
    const auto i = static_cast<size_t>(key);
    if (o.no_padding) {
      return window.ragged_batch(sizes[i], {.drop_remainder = o.drop_remainder},
                                 site);
    }
    std::vector<Shape> shapes = o.padded_shapes;
    if (o.pad_to_bucket_boundary) {
      if (i == bounds.size()) {
        throw errors::InvalidArgument(fmt::format(
            "pad_to_bucket_boundary: an element is not shorter than the last "
            "boundary, {}; expected a boundary above every length",
            bounds.empty() ? 0 : bounds.back()));
      }
      shapes = bucket_shapes(shapes, window.element_spec(), bounds[i], site);
    }
    return window.padded_batch(sizes[i],
                               {.padded_shapes = std::move(shapes),
                                .padding_values = o.padding_values,
                                .drop_remainder = o.drop_remainder},
                               site);
  };
  return group_by_window(
      bucket, batch,
      {.window_size_func =
           [sizes = std::move(bucket_batch_sizes)](int64_t key) {
             return sizes[static_cast<size_t>(key)];
           }},
      site);
}

}  // namespace berth::data
