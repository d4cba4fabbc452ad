#include "collective/shared_memory.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace berth {

namespace {

constexpr int64_t kCutBytes = 64;

// Whether the value is the update's only operand with its variables' shape.
bool updates_with(const Graph& graph, const Node& n, ValueRef v) {
  if (n.op->update_value() < 0) return false;
  const Shape& shape = graph.spec(v).shape;
  int times = 0;
  for (const ValueRef in : n.inputs) {
    const OutSpec& s = graph.spec(in);
    if (in == v) {
      ++times;
    } else if (s.dtype == resource) {
      if (graph[in.node].op->kind() != OpKind::kHandle) return false;
      if (!(s.shape == shape)) return false;
    } else if (s.shape.rank() != 0) {
      return false;
    }
  }
  return times == 1;
}

}  // namespace

std::vector<std::vector<ItemRange>> cut_evenly(
    const std::vector<int64_t>& elements, int64_t bytes_per_element,
    int devices) {
  int64_t total = 0;
  for (const int64_t n : elements) total += n;
  const int64_t step = std::max<int64_t>(1, kCutBytes / bytes_per_element);
  const int64_t small = kSmallestCutBytes / bytes_per_element;
  std::vector<std::vector<ItemRange>> ranges(static_cast<size_t>(devices));
  int64_t start = 0;  // of the item
  int device = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    const int64_t n = elements[i];
    int64_t begin = 0;
    while (begin < n) {
      int64_t end = n;
      if (device + 1 < devices) {
        int64_t cut = total * (device + 1) / devices - start;
        const bool whole = n < 2 * small;
        if (whole) {
          cut = cut < n - cut ? 0 : n;
        } else {
          cut = cut / step * step;
          if (cut - begin < small) cut = begin;
          if (n - cut < small) cut = n;
        }
        end = std::clamp(cut, begin, n);
      }
      if (end > begin) {
        ranges[device].push_back({static_cast<int>(i), begin, end - begin});
      }
      begin = end;
      if (begin < n) ++device;
    }
    start += n;
  }
  return ranges;
}

std::vector<ItemRange> cut_for_cache(const std::vector<ItemRange>& ranges,
                                     int64_t bytes_per_element) {
  const int64_t most = kCachedSumBytes / bytes_per_element;
  std::vector<ItemRange> cut;
  for (ItemRange r : ranges) {
    for (; r.count > most * 3 / 2; r.begin += most, r.count -= most) {
      cut.push_back({r.item, r.begin, most});
    }
    cut.push_back(r);
  }
  return cut;
}

bool only_updates(const Graph& graph,
                  const std::vector<std::vector<int32_t>>& users,
                  const AllReduceRequest& reduction) {
  for (const ValueRef& v : graph.outputs) {
    if (v.node == reduction.node) return false;
  }
  bool any = false;
  for (const int32_t u : users[reduction.node]) {
    bool reads = false;
    for (const ValueRef& v : graph[u].inputs) {
      if (v.node != reduction.node) continue;
      if (reads || !updates_with(graph, graph[u], v)) return false;
      reads = any = true;
    }
  }
  return any;
}

namespace {

// The sharded update of one bucket.
class ShardedUpdate {
 public:
  ShardedUpdate(Emit& emit, const Bucket& bucket,
                const std::vector<std::vector<int32_t>>& users)
      : emit_(emit), bucket_(bucket), users_(users) {
    for (const AllReduceRequest& r : bucket.items) {
      for (const Addend& p : r.pieces) add_device(p.device);
    }
  }

  void run() {
    find_updates();
    find_needs();
    std::vector<int64_t> elements;
    for (const AllReduceRequest& r : bucket_.items) {
      elements.push_back(emit_.graph()[r.node].outputs[0].shape.num_elements());
    }
    const auto bytes = static_cast<int64_t>(size_of(bucket_.dtype));
    const auto ranges =
        cut_evenly(elements, bytes, static_cast<int>(devices_.size()));
    for (size_t d = 0; d < ranges.size(); ++d) {
      add_device_part(devices_[d], cut_for_cache(ranges[d], bytes));
    }
    for (const auto& [update, parts] : parts_) emit_.drop(update, parts);
    for (const AllReduceRequest& r : bucket_.items) emit_.drop(r.node, {});
  }

 private:
  void add_device(DeviceId device) {
    if (std::find(devices_.begin(), devices_.end(), device) == devices_.end()) {
      devices_.push_back(device);
    }
  }

  void find_updates() {
    for (const AllReduceRequest& r : bucket_.items) {
      auto& updates = updates_.emplace_back();
      for (const int32_t u : users_[r.node]) {
        for (const ValueRef& v : emit_.graph()[u].inputs) {
          if (v.node == r.node) updates.push_back(u);
        }
      }
    }
  }

  // Finds what the updates need besides the sums and what does not itself
  // depend on a sum: the devices meet after that, too.
  void find_needs() {
    static const OpDef& all_reduce = op_named("_AllReduce");
    const Graph& g = emit_.graph();
    std::vector<bool> summed(users_.size(), false);
    const auto mark = [&](int32_t i) {
      for (const ValueRef& v : g[i].inputs) {
        summed[i] = summed[i] || (v.node < i && summed[v.node]);
      }
      for (const int32_t c : g[i].controls) {
        summed[i] = summed[i] || (c < i && summed[c]);
      }
    };
    for (size_t i = 0; i < users_.size(); ++i) {
      const auto n = static_cast<int32_t>(i);
      summed[i] = g[n].op == &all_reduce;
      if (!summed[i]) mark(n);
    }
    const auto need = [&](int32_t i) {
      if (!summed[i]) needs_.insert(i);
    };
    for (const auto& updates : updates_) {
      for (const int32_t u : updates) {
        for (const ValueRef& v : g[u].inputs) {
          if (g.spec(v).dtype != resource) need(v.node);
        }
        for (const int32_t c : g[u].controls) need(c);
      }
    }
  }

  // First all views of pieces, then sums, then updates.
  void add_device_part(DeviceId device, const std::vector<ItemRange>& ranges) {
    meeting_ = -1;
    std::vector<std::vector<Addend>> views;
    for (const ItemRange& range : ranges) {
      views.push_back(add_views(device, range));
    }
    std::vector<ValueRef> sums;
    for (size_t i = 0; i < ranges.size(); ++i) {
      const int32_t like = bucket_.items[ranges[i].item].node;
      std::vector<Addend> left = add_up(emit_, views[i], device, like);
      ValueRef sum = left[0].value;
      for (size_t k = 1; k < left.size(); ++k) {
        sum = emit_.add(sum, left[k].value, device, like);
      }
      if (bucket_.mean) sum = emit_.divide(sum, bucket_.owners, device, like);
      sums.push_back(sum);
    }
    for (size_t i = 0; i < ranges.size(); ++i) {
      for (const int32_t u : updates_[ranges[i].item]) {
        add_update(u, ranges[i], sums[i], device);
      }
    }
  }

  std::vector<Addend> add_views(DeviceId device, const ItemRange& range) {
    const AllReduceRequest& r = bucket_.items[range.item];
    std::vector<Addend> views = r.pieces;
    for (Addend& p : views) {
      const ValueRef flat = emit_.flat(p.value, device, r.node);
      if (!(flat == p.value)) behind_meeting(flat.node);
      p.value = emit_.rows(flat, range.begin, range.count, device, r.node);
      behind_meeting(p.value.node);
    }
    return views;
  }

  // At its first view a device meets the others: the view comes after all
  // pieces, its own included, so that no device waits before it has its own.
  void behind_meeting(int32_t view) {
    if (meeting_ >= 0) return emit_.order(meeting_, view);
    meeting_ = view;
    for (const AllReduceRequest& r : bucket_.items) {
      for (const Addend& p : r.pieces) emit_.order(p.value.node, meeting_);
    }
    for (const int32_t n : needs_) emit_.order(n, meeting_);
  }

  void add_update(int32_t update, const ItemRange& range, ValueRef sum,
                  DeviceId device) {
    std::vector<ValueRef> inputs = emit_.graph()[update].inputs;
    const int32_t reduction = bucket_.items[range.item].node;
    for (ValueRef& v : inputs) {
      if (v.node == reduction) {
        v = sum;
      } else if (emit_.graph().spec(v).dtype == resource) {
        v = range_of(v, range, device);
      }
    }
    const int32_t part = emit_.copy(update, inputs, device, "part");
    if (range.count * static_cast<int64_t>(size_of(bucket_.dtype)) >=
        kSmallestCutBytes) {
      set_shared(emit_[part]);
    }
    parts_[update].push_back(part);
  }

  static void set_shared(Node& node) {
    std::vector<Attrs::Pair> attrs;
    if (node.attrs.get()) attrs = node.attrs.get()->pairs();
    attrs.push_back({"shared", true});
    node.attrs = AttrsRef(std::move(attrs));
  }

  ValueRef range_of(ValueRef variable, const ItemRange& range,
                    DeviceId device) {
    const auto [it, fresh] =
        ranges_.try_emplace({variable, range.begin, range.count, device});
    if (fresh) {
      it->second =
          emit_.node("_VariableRange", {variable},
                     AttrsRef({{"begin", range.begin}, {"count", range.count}}),
                     device, variable.node, "range");
    }
    return it->second;
  }

  Emit& emit_;
  const Bucket& bucket_;
  const std::vector<std::vector<int32_t>>& users_;
  std::vector<DeviceId> devices_;
  std::vector<std::vector<int32_t>> updates_;  // by item
  std::set<int32_t> needs_;
  std::map<int32_t, std::vector<int32_t>> parts_;
  std::map<std::tuple<ValueRef, int64_t, int64_t, DeviceId>, ValueRef> ranges_;
  int32_t meeting_ = -1;
};

}  // namespace

void lower_updates(Emit& emit, const Bucket& bucket,
                   const std::vector<std::vector<int32_t>>& users) {
  ShardedUpdate(emit, bucket, users).run();
}

void lower_values(Emit& emit, const Bucket& bucket) {
  emit.set_late(true);
  for (const AllReduceRequest& r : bucket.items) {
    const DeviceId device =
        r.results.empty() ? r.pieces[0].device : r.results[0].device;
    const std::vector<Addend> left = add_up(emit, r.pieces, device, r.node);
    ValueRef sum = left[0].value;
    for (size_t k = 1; k < left.size(); ++k) {
      sum = emit.add(sum, left[k].value, device, r.node);
    }
    if (bucket.mean) sum = emit.divide(sum, bucket.owners, device, r.node);
    for (const SumReader& result : r.results) {
      emit.replace(r.node, result.output, sum);
    }
    emit.drop(r.node, {sum.node});
  }
  emit.set_late(false);
}

}  // namespace berth
