#include "collective/task_buckets.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <tuple>

#include "collective/emit.h"
#include "device/device_manager.h"
#include "tensor/tensor_impl.h"

namespace berth {

namespace {

constexpr int64_t kTaskPackBytes = 4 << 20;

using Ints64 = std::vector<int64_t>;

// Exchanges of different plans have different names.
int64_t next_program() {
  static std::atomic<int64_t> last{0};
  return ++last;
}

template <class T>
const T& of(const Node& n, const char* name) {
  return n.op->attr<T>(n.attrs.get(), name);
}

// Meetings that form one exchange.
struct TaskBucket {
  std::vector<int32_t> items;
  bool gather = false, feeds = false;
  int64_t level = 0, last_number = 0, bytes = 0, limit = 0;

  // After what it waits for; those that others wait for come first.
  auto order() const { return std::tuple(level, !feeds, last_number); }
};

class TaskPacker {
 public:
  explicit TaskPacker(const Graph& graph) : graph_(graph) {}

  std::vector<TaskBucket> run() {
    std::vector<int32_t> nodes;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const std::string& op = graph_[i].op->name();
      if (op == "_TaskReduce" || op == "_TaskGather") nodes.push_back(i);
    }
    std::sort(nodes.begin(), nodes.end(), [&](int32_t a, int32_t b) {
      return of<int64_t>(graph_[a], "number") <
             of<int64_t>(graph_[b], "number");
    });
    for (const int32_t i : nodes) pack(i);
    std::sort(buckets_.begin(), buckets_.end(),
              [](const TaskBucket& a, const TaskBucket& b) {
                return a.order() < b.order();
              });
    return std::move(buckets_);
  }

 private:
  void pack(int32_t i) {
    const Node& n = graph_[i];
    TaskBucket b;
    b.items = {i};
    b.gather = n.op->name() == "_TaskGather";
    b.feeds = of<bool>(n, "feeds");
    b.level = of<int64_t>(n, "level");
    b.last_number = of<int64_t>(n, "number");
    const DType dtype = of<DType>(n, "T");
    b.bytes = of<Shape>(n, "shape").num_elements() *
              static_cast<int64_t>(size_of(dtype));
    b.limit = of<int64_t>(n, "pack_bytes");
    if (b.limit <= 0) b.limit = kTaskPackBytes;
    if (b.gather) return buckets_.push_back(std::move(b));
    // If nothing waits for them, the level does not matter.
    const int64_t base = -1 - of<int64_t>(n, "base");
    const Key key{b.feeds ? b.level : base, static_cast<int>(dtype), b.limit,
                  of<int64_t>(n, "slices")};
    const auto [it, fresh] = open_.try_emplace(key, buckets_.size());
    if (!fresh && buckets_[it->second].bytes + b.bytes <= b.limit) {
      TaskBucket& to = buckets_[it->second];
      to.items.push_back(i);
      to.bytes += b.bytes;
      to.level = std::max(to.level, b.level);
      to.last_number = b.last_number;
      return;
    }
    it->second = buckets_.size();
    buckets_.push_back(std::move(b));
  }

  using Key = std::tuple<int64_t, int, int64_t, int64_t>;
  const Graph& graph_;
  std::vector<TaskBucket> buckets_;
  std::map<Key, size_t> open_;
};

class TaskLowering {
 public:
  TaskLowering(Graph& graph, double timeout_seconds)
      : emit_(graph),
        program_(next_program()),
        timeout_seconds_(timeout_seconds) {}

  void run(const std::vector<TaskBucket>& buckets) {
    std::vector<Sum> sums;
    for (const TaskBucket& b : buckets) {
      emit_.set_turn(number_);
      const int32_t before = start_;
      sums.push_back(begin(b));
      start_ = sums.back().start.node;
      if (before >= 0) emit_.order(before, start_);
      ++number_;
    }
    emit_.set_late(true);
    for (size_t k = 0; k < buckets.size(); ++k) end(buckets[k], sums[k]);
    emit_.set_late(false);
    emit_.finish();
  }

 private:
  struct Sum {
    ValueRef start;
    int64_t number = 0;
    Ints64 sizes;
    DeviceId device;
  };

  const Node& node(int32_t i) { return emit_[i]; }

  // This task's pieces of an item, added as far as possible.
  std::vector<Addend> pieces_of(int32_t i, DeviceId device) {
    const Node& n = node(i);
    const Ints64 starts = of<Ints64>(n, "starts");
    const Ints64 counts = of<Ints64>(n, "counts");
    const auto slices = of<int64_t>(n, "slices");
    std::vector<Addend> pieces;
    for (size_t k = 0; k < n.inputs.size(); ++k) {
      Addend p;
      p.value = n.inputs[k];
      p.device = node(p.value.node).requested;
      if (p.device.empty()) p.device = device;
      if (!starts.empty()) {
        p.start = starts[k];
        p.end = starts[k] + counts[k];
        // The last one extends to the end of the tree.
        if (p.end == slices) p.end = INT64_MAX;
      }
      pieces.push_back(p);
    }
    if (pieces.size() < 2) return pieces;
    const DeviceId at = pieces[0].device;
    return add_up(emit_, std::move(pieces), at, i);
  }

  Sum begin(const TaskBucket& b) {
    // References to nodes are invalidated when nodes are added.
    const int32_t first = b.items[0];
    Sum s;
    s.number = number_;
    s.device = DeviceId(of<std::string>(node(first), "device"));
    const auto slices =
        b.gather ? int64_t{0} : of<int64_t>(node(first), "slices");
    std::vector<std::vector<Addend>> pieces;
    for (const int32_t i : b.items) {
      pieces.push_back(b.gather ? parts_of(i) : pieces_of(i, s.device));
      s.sizes.push_back(of<Shape>(node(i), "shape").num_elements());
    }
    // This task contributes to some of the sums, but not to all.
    const bool any = std::any_of(pieces.begin(), pieces.end(),
                                 [](const auto& p) { return !p.empty(); });
    for (size_t k = 0; any && slices == 0 && k < pieces.size(); ++k) {
      if (pieces[k].empty()) pieces[k] = {nothing(b.items[k], s.device)};
    }
    std::vector<ValueRef> values;
    Ints64 starts, counts;
    for (size_t k = 0; k < pieces[0].size(); ++k) {
      const Addend& p = pieces[0][k];
      if (slices > 0) {
        starts.push_back(p.start);
        counts.push_back((p.end == INT64_MAX ? slices : p.end) - p.start);
      }
      for (const auto& of_item : pieces) values.push_back(of_item[k].value);
    }
    std::vector<Attrs::Pair> attrs = common(first, s);
    attrs.insert(attrs.end(), {{"channel", int64_t{b.feeds ? 0 : 1}},
                               {"how", std::string(b.gather     ? "gather"
                                                   : slices > 0 ? "ordered"
                                                                : "sum")},
                               {"starts", starts},
                               {"counts", counts},
                               {"slices", slices},
                               {"timeout_seconds", timeout_seconds_},
                               {"what", what(b)}});
    if (b.gather) attrs.emplace_back("lengths", elements_by_rank(first));
    s.start = emit_.node("_TaskStart", values, AttrsRef(std::move(attrs)),
                         s.device, first, "start");
    return s;
  }

  Addend nothing(int32_t i, DeviceId device) {
    const Tensor zeros =
        make_tensor(DeviceManager::get().host(), of<DType>(node(i), "T"),
                    of<Shape>(node(i), "shape"));
    std::memset(zeros.impl()->data(), 0, zeros.impl()->size_bytes());
    Addend p;
    p.value = emit_.node("Const", {}, AttrsRef({{"value", zeros}}), device, i,
                         "nothing");
    return p;
  }

  std::vector<Attrs::Pair> common(int32_t like, const Sum& s) {
    return {{"T", of<DType>(node(like), "T")},
            {"link", of<int64_t>(node(like), "link")},
            {"ranks", of<int64_t>(node(like), "ranks")},
            {"program", program_},
            {"number", s.number},
            {"sizes", s.sizes}};
  }

  std::string what(const TaskBucket& b) {
    const Node& n = node(b.items[0]);
    std::string text = n.sources.empty() ? n.name : n.sources[0].name;
    if (b.items.size() > 1) {
      text += " and " + std::to_string(b.items.size() - 1) + " more";
    }
    return text;
  }

  std::vector<Addend> parts_of(int32_t i) {
    std::vector<Addend> parts;
    for (const ValueRef& v : node(i).inputs) parts.emplace_back().value = v;
    return parts;
  }

  Ints64 elements_by_rank(int32_t i) {
    const Node& n = node(i);
    const Shape& shape = of<Shape>(n, "shape");
    const auto axis = static_cast<int>(of<int64_t>(n, "axis"));
    int64_t row = 1;
    for (int d = 0; d < shape.rank(); ++d) row *= d == axis ? 1 : shape[d];
    Ints64 elements = of<Ints64>(n, "lengths");
    for (int64_t& e : elements) e *= row;
    return elements;
  }

  void end(const TaskBucket& b, const Sum& s) {
    const ValueRef end =
        emit_.node("_TaskEnd", {s.start}, AttrsRef(common(b.items[0], s)),
                   s.device, b.items[0], "end");
    for (size_t k = 0; k < b.items.size(); ++k) {
      const int32_t i = b.items[k];
      ValueRef v{end.node, static_cast<int32_t>(k)};
      const Shape shape = of<Shape>(node(i), "shape");
      if (b.gather && of<int64_t>(node(i), "axis") > 0) {
        v = side_by_side(v, i, s.device);
      } else if (shape.rank() != 1) {
        v = emit_.reshape(v, shape, s.device, i);
      }
      if (!b.gather && of<std::string>(node(i), "reduction") == "mean") {
        v = emit_.divide(v, static_cast<int>(of<int64_t>(node(i), "owners")),
                         s.device, i);
      }
      for (size_t o = 0; o < node(i).outputs.size(); ++o) {
        emit_.replace(i, static_cast<int>(o), v);
      }
      emit_.drop(i, {v.node});
    }
  }

  // Concatenated parts, joined along another axis.
  ValueRef side_by_side(ValueRef all, int32_t i, DeviceId device) {
    const Shape whole = of<Shape>(node(i), "shape");
    const auto axis = of<int64_t>(node(i), "axis");
    const Ints64 lengths = of<Ints64>(node(i), "lengths");
    const Ints64 elements = elements_by_rank(i);
    std::vector<ValueRef> parts;
    int64_t begin = 0;
    for (size_t r = 0; r < lengths.size(); ++r) {
      if (elements[r] > 0) {
        Shape shape = whole;
        shape[static_cast<int>(axis)] = lengths[r];
        parts.push_back(emit_.reshape(
            emit_.rows(all, begin, elements[r], device, i), shape, device, i));
      }
      begin += elements[r];
    }
    if (parts.size() == 1) return parts[0];
    return emit_.node("ConcatV2", parts, AttrsRef({{"axis", axis}}), device, i,
                      "gathered");
  }

  Emit emit_;
  const int64_t program_;
  const double timeout_seconds_;
  int number_ = 0;
  int32_t start_ = -1;
};

}  // namespace

void lower_task_reductions(Graph& graph, double timeout_seconds) {
  const std::vector<TaskBucket> buckets = TaskPacker(graph).run();
  if (buckets.empty()) return;
  TaskLowering(graph, timeout_seconds).run(buckets);
}

}  // namespace berth
