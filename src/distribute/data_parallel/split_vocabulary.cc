#include "distribute/data_parallel/split_vocabulary.h"

#include <algorithm>

#include "base/immortal.h"
#include "berth/ops/array.h"
#include "berth/ops/clip.h"
#include "berth/ops/math.h"
#include "function/replace_nodes.h"
#include "ops/named_call.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

namespace {

const math::ReduceOptions& along_last() {
  static const auto& last = immortal<math::ReduceOptions>(
      math::ReduceOptions{.axis = std::vector<int64_t>{-1}, .keepdims = true});
  return last;
}

// Which nodes are rewritten.
class Wanted {
 public:
  Wanted(const Graph& graph, const SplitStates& states, int64_t units)
      : graph_(graph), states_(states), units_(units) {
    for (const Node& n : graph.nodes) {
      if (!n.variable.defined()) continue;
      const VariableState& v = variable_state(n.variable);
      if (v.split_axis == 0) tables_.push_back(v.shape);
    }
  }

  bool gather(const Node& n) const {
    return n.op->name() == "GatherV2" && is_plain(n) && split(n.inputs[0], 0);
  }
  bool gather_grad(const Node& n) const {
    return n.op->name() == "GatherGrad" && is_plain(n) &&
           is_whole(n.inputs[0]) && is_whole(n.inputs[1]) &&
           std::find(tables_.begin(), tables_.end(), n.outputs[0].shape) !=
               tables_.end();
  }
  bool softmax(const Node& n) const {
    const std::string& op = n.op->name();
    if (op != "Softmax" && op != "LogSoftmax" &&
        op != "SoftmaxCrossEntropyWithLogits" &&
        op != "SparseSoftmaxCrossEntropyWithLogits") {
      return false;
    }
    return split(n.inputs[0], graph_.spec(n.inputs[0]).shape.rank() - 1);
  }

 private:
  // Along axis 0, once for the whole table.
  static bool is_plain(const Node& n) {
    const Attrs* attrs = n.attrs.get();
    return n.op->attr<int64_t>(attrs, "axis") == 0 &&
           n.op->attr<int64_t>(attrs, "batch_dims") == 0;
  }
  const SplitState& state(ValueRef v) const {
    return states_.values[v.node][v.output];
  }
  bool split(ValueRef v, int axis) const {
    return state(v).kind == SplitState::Kind::kSplit && state(v).axis == axis &&
           graph_.spec(v).shape[axis] % units_ == 0;
  }
  bool is_whole(ValueRef v) const {
    return state(v).kind == SplitState::Kind::kWhole;
  }

  const Graph& graph_;
  const SplitStates& states_;
  const int64_t units_;
  std::vector<Shape> tables_;
};

class Vocabulary {
 public:
  explicit Vocabulary(int64_t units) : units_(units) {}

  Tensor gather(const Tensor& table, const Tensor& ids) const {
    const Rows r = rows_of(table.shape(), ids);
    const Tensor all =
        berth::gather(reshape(table, r.parts, site_), r.local, 1, site_);
    const Tensor own =
        where(mine(r, table.rank() - 1), all, zeros_like(all, site_), site_);
    return math::reduce_sum(own, {.axis = std::vector<int64_t>{0}}, site_);
  }

  Tensor gather_grad(const Tensor& dy, const Tensor& ids,
                     const Shape& table) const {
    const Rows r = rows_of(table, ids);
    const Tensor each = expand_dims(dy, 0, site_);
    const Tensor own =
        where(mine(r, table.rank() - 1), each, zeros_like(each, site_), site_);
    const AttrsRef attrs({{"axis", int64_t{1}}, {"shape", r.parts}});
    const Tensor dx = call1(op_of<"GatherGrad">(), own, r.local, attrs.get());
    return reshape(dx, table, site_);
  }

  // What logits [..., classes] become: less their largest, the exponentials of
  // these, and their sums [..., 1].
  struct Exponentials {
    Tensor shifted, exp, sum;
  };
  Exponentials exponentials(const Tensor& logits) const {
    Shape parts = logits.shape();
    const int last = parts.rank() - 1;
    const int64_t classes = parts[last];
    parts[last] = units_;
    parts.push_back(classes / units_);
    Tensor largest = reshape(logits, parts, site_);
    largest =
        math::reduce_max(largest, {.axis = std::vector<int64_t>{-1}}, site_);
    largest = math::reduce_max(largest, along_last(), site_);
    Exponentials e;
    e.shifted = math::subtract(logits, largest, site_);
    e.exp = math::exp(e.shifted, site_);
    e.sum = math::reduce_sum(e.exp, along_last(), site_);
    return e;
  }

  // The results of a softmax or a cross entropy.
  Tensors softmax(const Node& n, const Tensors& in) const {
    const DType type = in[0].dtype();
    const Exponentials e =
        exponentials(math::cast(in[0], float_of(type), site_));
    Tensors results;
    if (n.op->name() == "LogSoftmax") {
      results = {math::subtract(e.shifted, math::log(e.sum, site_), site_)};
    } else if (n.op->name() == "Softmax") {
      results = {math::divide(e.exp, e.sum, site_)};
    } else {
      results = cross_entropy(n, e, in[1]);
    }
    for (Tensor& t : results) t = math::cast(t, type, site_);
    return results;
  }

 private:
  // A table [units, classes / units, ...], and which row of which part is
  // meant.
  struct Rows {
    Shape parts;
    Tensor owner, local;
  };

  // Numbers that no row has stay such: the lookup names them.
  Rows rows_of(const Shape& table, const Tensor& ids) const {
    Rows r;
    const int64_t rows = table[0] / units_;
    r.parts = table;
    r.parts[0] = rows;
    r.parts.insert(0, units_);
    const auto number = [&](int64_t n) {
      return fill({}, static_cast<double>(n), ids.dtype(), site_);
    };
    r.owner = clip_by_value(math::floordiv(ids, number(rows), site_), number(0),
                            number(units_ - 1), site_);
    r.local = math::subtract(ids, math::multiply(r.owner, number(rows), site_),
                             site_);
    return r;
  }

  // [units, ids..., 1...]: whether the part has the row.
  Tensor mine(const Rows& r, int row_rank) const {
    const int rank = r.owner.rank();
    Shape places{units_}, owner{1};
    for (int i = 0; i < rank; ++i) {
      places.push_back(1);
      owner.push_back(r.owner.shape()[i]);
    }
    for (int i = 0; i < row_rank; ++i) {
      places.push_back(1);
      owner.push_back(1);
    }
    const Tensor all = range(0, units_, 1, r.owner.dtype(), site_);
    return math::equal(reshape(all, places, site_),
                       reshape(r.owner, owner, site_), site_);
  }

  Tensors cross_entropy(const Node& n, const Exponentials& e,
                        const Tensor& labels) const {
    const bool sparse = n.op->name()[1] == 'p';
    const int64_t classes = e.exp.shape()[1];
    Tensor truth, checked;
    if (sparse) {
      const Tensor all = range(0, classes, 1, labels.dtype(), site_);
      truth = math::equal(expand_dims(labels, 1, site_),
                          reshape(all, {1, classes}, site_), site_);
      truth = math::cast(truth, e.exp.dtype(), site_);
      // Names a label beyond the classes.
      checked = berth::gather(zeros({classes}, e.exp.dtype(), site_), labels, 0,
                              site_);
    } else {
      truth = math::cast(labels, e.exp.dtype(), site_);
    }
    const Tensor log_p =
        math::subtract(e.shifted, math::log(e.sum, site_), site_);
    const Tensor picked =
        where(math::equal(truth, zeros_like(truth, site_), site_), truth,
              math::multiply(truth, log_p, site_), site_);
    Tensor loss = math::negative(
        math::reduce_sum(picked, {.axis = std::vector<int64_t>{-1}}, site_),
        site_);
    if (sparse) loss = math::add(loss, checked, site_);
    return {loss,
            math::subtract(math::divide(e.exp, e.sum, site_), truth, site_)};
  }

  static DType float_of(DType type) {
    return type == float64 ? float64 : float32;
  }

  const int64_t units_;
  const Site site_ = t_state.site;
};

}  // namespace

bool split_vocabulary(Graph& graph, const SplitStates& states, int64_t units) {
  const Wanted wanted(graph, states, units);
  return replace_nodes(
      graph,
      [&](const Node& n) {
        return wanted.gather(n) || wanted.gather_grad(n) || wanted.softmax(n);
      },
      [&](const Node& n, const Tensors& in) -> Tensors {
        const Vocabulary vocabulary(units);
        if (wanted.gather(n)) return {vocabulary.gather(in[0], in[1])};
        if (wanted.softmax(n)) return vocabulary.softmax(n, in);
        return {vocabulary.gather_grad(in[0], in[1], n.outputs[0].shape)};
      });
}

}  // namespace berth::distribute
