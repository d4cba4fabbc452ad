// Mode slices: how slices of a batch are shared out changes no bit.
//
// An op that is cut in S slices by a split signature is computed by one plan,
// and by several that have a subtree of the slices each, as replicas have.
// Batches of cases are small: they are repeated.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "conformance/device_run.h"
#include "conformance/host_run.h"
#include "conformance/modes.h"
#include "exec/plan.h"
#include "graph/node_part.h"

namespace berth::conformance {

namespace {

constexpr int8_t kWhole = SplitSignature::kWhole;
constexpr int kSlices = 4;
constexpr int kUneven = 6;         // a tree that is not full
constexpr int64_t kExamples = 13;  // at least

// [first, end) of the slices, a subtree of the binary tree over all.
struct Range {
  int first, end;
};
using Ranges = std::vector<Range>;

class Slices {
 public:
  Slices(const Case& c, const HostCall& call, Arrays in,
         std::vector<OutSpec> outputs, const SplitSignature& rule,
         int signature, int total)
      : c_(c),
        call_(call),
        in_(std::move(in)),
        outputs_(std::move(outputs)),
        rule_(rule),
        signature_(signature),
        total_(total) {
    for (size_t i = 0; i < in_.size(); ++i) {
      if (rule.inputs[i] >= 0) batch_ = in_[i].shape()[rule.inputs[i]];
    }
    for (size_t o = 0; o < outputs_.size(); ++o) {
      if (rule.outputs[o] >= 0) batch_ = outputs_[o].shape[rule.outputs[o]];
    }
    if (possible()) repeat();
  }

  // False when there is nothing to share.
  bool possible() const {
    for (const Input& i : c_.inputs) {
      if (i.variable) return false;
    }
    for (size_t o = 0; o < outputs_.size(); ++o) {
      const int8_t axis = rule_.outputs[o];
      if (axis == kWhole || !is_first(outputs_[o].shape, axis)) return false;
    }
    for (size_t i = 0; i < in_.size(); ++i) {
      if (!is_first(in_[i].shape(), rule_.inputs[i])) return false;
    }
    return batch_ > 0;
  }

  Arrays run(const Ranges& ranges) {
    std::vector<Arrays> parts;
    for (const Range& r : ranges) parts.push_back(part(r));
    // The tree: a subtree that begins at r is added to the one that begins
    // where r has one bit less.
    Arrays all;
    for (size_t o = 0; o < outputs_.size(); ++o) {
      Array whole(outputs_[o].dtype, outputs_[o].shape);
      for (size_t p = parts.size(); p-- > 0;) {
        if (rule_.outputs[o] >= 0) {
          paste(&whole, parts[p][o], rule_.outputs[o], begin(ranges[p].first));
        }
      }
      if (rule_.outputs[o] == SplitSignature::kPartialSum)
        whole = add_up(ranges, parts, o);
      all.push_back(std::move(whole));
    }
    return all;
  }

  std::string describe() const {
    const std::vector<int> in(rule_.inputs.begin(), rule_.inputs.end());
    const std::vector<int> out(rule_.outputs.begin(), rule_.outputs.end());
    return fmt::format("rule [{}] -> [{}], {} slices of {}", fmt::join(in, ","),
                       fmt::join(out, ","), total_, batch_);
  }

 private:
  void repeat() {
    const int64_t times = (kExamples + batch_ - 1) / batch_;
    for (size_t i = 0; i < in_.size(); ++i) {
      if (rule_.inputs[i] < 0) continue;
      Shape shape = in_[i].shape();
      shape[rule_.inputs[i]] *= times;
      Array all(in_[i].dtype(), shape);
      for (int64_t t = 0; t < times; ++t) {
        paste(&all, in_[i], rule_.inputs[i], t * batch_);
      }
      in_[i] = std::move(all);
    }
    for (size_t o = 0; o < outputs_.size(); ++o) {
      if (rule_.outputs[o] >= 0) outputs_[o].shape[rule_.outputs[o]] *= times;
    }
    batch_ *= times;
  }

  // Batches are cut along their first axis that is not 1.
  static bool is_first(const Shape& shape, int axis) {
    for (int i = 0; i < axis; ++i) {
      if (shape[i] != 1) return false;
    }
    return true;
  }

  int64_t begin(int slice) const { return batch_ * slice / total_; }

  Array add_up(const Ranges& ranges, std::vector<Arrays> parts,
               size_t o) const {
    for (int width = 1; width < total_; width *= 2) {
      for (size_t p = 0; p < ranges.size(); ++p) {
        const int at = ranges[p].first;
        if (at % (2 * width) != width) continue;
        for (size_t q = 0; q < ranges.size(); ++q) {
          if (ranges[q].first == at - width) {
            add(&parts[q][o], parts[p][o]);
          }
        }
      }
    }
    return parts[0][o];
  }

  static void add(Array* a, const Array& b) {
    for (int64_t e = 0; e < a->parts(); ++e) a->set(e, a->at(e) + b.at(e));
  }

  // What the owner of a range computes.
  Arrays part(const Range& r) const {
    const std::string device = device_under_test().str();
    Graph g;
    Node node;
    Tensors args;
    for (size_t i = 0; i < in_.size(); ++i) {
      const int8_t axis = rule_.inputs[i];
      const Array a =
          axis < 0 ? in_[i] : cut(in_[i], axis, begin(r.first), begin(r.end));
      args.push_back(to_device(a));
      Node arg;
      arg.op = &op_named("_Arg");
      arg.name = fmt::format("x{}", i);
      arg.attrs = AttrsRef({{"index", static_cast<int64_t>(i)},
                            {"dtype", a.dtype()},
                            {"shape", a.shape()}});
      arg.outputs = {{a.dtype(), a.shape()}};
      arg.assigned = device;
      g.args.push_back(g.add(std::move(arg)));
      node.inputs.push_back({g.args.back(), 0});
    }
    node.name = call_.op->name();
    node.op = call_.op;
    node.attrs = AttrsRef::share(call_.attrs);
    node.outputs = outputs_;
    node.assigned = device;
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      if (rule_.outputs[o] < 0) continue;
      node.outputs[o].shape[rule_.outputs[o]] = begin(r.end) - begin(r.first);
    }
    node.part = std::make_shared<const NodePart>(part_of(r));
    const auto n = static_cast<int32_t>(outputs_.size());
    const int32_t id = g.add(std::move(node));
    for (int32_t o = 0; o < n; ++o) g.outputs.push_back({id, o});
    const auto plan = Plan::build(std::move(g), {.slices = total_});
    std::vector<const Tensor*> in;
    for (const Tensor& t : args) in.push_back(&t);
    Tensors out(static_cast<size_t>(n));
    plan->run(in, out);
    Arrays results;
    for (const Tensor& t : out) results.push_back(to_host(t));
    return results;
  }

  NodePart part_of(const Range& r) const {
    NodePart p;
    if (!in_.empty()) p.unsplit = in_[0].shape();
    p.signature = signature_;
    p.first = r.first;
    p.count = r.end - r.first;
    p.total = total_;
    p.batch = batch_;
    if (!outputs_.empty() && rule_.outputs[0] >= 0) {
      const Shape& s = outputs_[0].shape;
      p.origin = begin(r.first) * (s.num_elements() / s[rule_.outputs[0]]);
    }
    return p;
  }

  const Case& c_;
  const HostCall& call_;
  Arrays in_;
  std::vector<OutSpec> outputs_;
  const SplitSignature& rule_;
  int signature_, total_;
  int64_t batch_ = -1;
};

// Halves and quarters, and shares as uneven as subtrees allow.
std::vector<Ranges> ways_to_share(int total) {
  if (total == kSlices) {
    return {{{0, 2}, {2, 4}},
            {{0, 1}, {1, 2}, {2, 4}},
            {{0, 1}, {1, 2}, {2, 3}, {3, 4}}};
  }
  return {{{0, 4}, {4, 6}}, {{0, 2}, {2, 4}, {4, 6}}, {{0, 4}, {4, 5}, {5, 6}}};
}

void expect_same_bits(const Arrays& got, const Arrays& want) {
  for (size_t o = 0; o < want.size(); ++o) {
    const size_t n = want[o].size_bytes();
    if (n == 0 || std::memcmp(got[o].data(), want[o].data(), n) == 0) continue;
    const std::string first = difference(got[o], want[o], {});
    ADD_FAILURE() << "output " << o << " has other bits: "
                  << (first.empty() ? "of a zero or a NaN" : first);
  }
}

}  // namespace

void slices_case(const Case& c, DType dtype) {
  if (c.def().decompose() || !device_can_run(c.def(), dtype)) {
    GTEST_SKIP() << "no kernel of its own";
  }
  const AttrsRef attrs = c.attrs_for(dtype);
  const HostCall call = host_call(c, attrs);
  const Arrays in = make_inputs(c, dtype);
  const std::vector<OutSpec> outputs = infer_on_host(call, in);
  const std::vector<SpecView> specs = specs_of(call, in);
  std::vector<OutSpec> scratch = outputs;
  int shared = 0;
  const std::vector<SplitSignature> rules =
      c.def().split()(InferContext(c.def(), call.attrs, specs, scratch));
  for (size_t rule = 0; rule < rules.size(); ++rule) {
    for (const int total : {kSlices, kUneven}) {
      Slices slices(c, call, in, outputs, rules[rule], static_cast<int>(rule),
                    total);
      if (!slices.possible()) continue;
      ++shared;
      SCOPED_TRACE(slices.describe());
      const Arrays one = slices.run({{0, total}});
      for (const Ranges& ranges : ways_to_share(total)) {
        SCOPED_TRACE(fmt::format("{} owners", ranges.size()));
        expect_same_bits(slices.run(ranges), one);
      }
    }
  }
  if (shared == 0) GTEST_SKIP() << "no first axis to cut";
}

}  // namespace berth::conformance
