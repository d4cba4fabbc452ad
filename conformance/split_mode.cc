// Mode split: cut, run the parts, join; equals the whole.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "conformance/device_run.h"
#include "conformance/host_run.h"
#include "conformance/modes.h"
#include "conformance/oracle/oracle.h"

namespace berth::conformance {

namespace {

struct SplitRun {
  const Case& c;
  const KernelTable& table;
  const HostCall& call;
  const Arrays& in;
  const HostResult& whole;
  std::vector<OutSpec> outputs;
};

// The length of the dimension that a rule cuts; -1 when axes disagree.
int64_t cut_length(const SplitRun& run, const SplitSignature& rule) {
  int64_t length = -1;
  bool agree = true;
  const auto look = [&](const Shape& shape, int8_t axis) {
    if (axis < 0) return;
    if (axis >= shape.rank()) {
      agree = false;
      return;
    }
    agree &= length < 0 || shape[axis] == length;
    length = shape[axis];
  };
  for (size_t i = 0; i < run.in.size(); ++i) {
    look(run.in[i].shape(), rule.inputs[i]);
  }
  for (size_t i = 0; i < run.outputs.size(); ++i) {
    look(run.outputs[i].shape, rule.outputs[i]);
  }
  return agree ? length : -1;
}

std::string describe(const SplitSignature& rule,
                     const std::vector<int64_t>& borders) {
  const std::vector<int> in(rule.inputs.begin(), rule.inputs.end());
  const std::vector<int> out(rule.outputs.begin(), rule.outputs.end());
  return fmt::format("rule [{}] -> [{}] cut at {}", fmt::join(in, ","),
                     fmt::join(out, ","), fmt::join(borders, ","));
}

// Where part `begin` starts in the unsplit output 0. Only a cut of the first
// dimension that is not 1 leaves a part that is one stretch.
int64_t origin_of(const SplitRun& run, const SplitSignature& rule,
                  int64_t begin) {
  if (run.outputs.empty() || rule.outputs[0] < 0) return 0;
  const Shape& shape = run.outputs[0].shape;
  int64_t inner = 1;
  for (int i = rule.outputs[0] + 1; i < shape.rank(); ++i) inner *= shape[i];
  for (int i = 0; i < rule.outputs[0]; ++i) {
    if (run.c.def().random()) {
      EXPECT_EQ(shape[i], 1) << "a random op cut along an inner axis: its "
                                "parts are not one stretch of indices";
    }
  }
  return begin * inner;
}

struct Joined {
  Arrays outputs;
  Arrays inputs;  // variables after the call
};

// Runs one part and joins its results to `all`.
void run_part(const SplitRun& run, const SplitSignature& rule, int64_t begin,
              int64_t end, Joined* all) {
  Arrays in;
  for (size_t i = 0; i < run.in.size(); ++i) {
    const int8_t axis = rule.inputs[i];
    in.push_back(axis < 0 ? run.in[i] : cut(run.in[i], axis, begin, end));
  }
  HostCall call = run.call;
  call.outputs = run.outputs;
  for (size_t i = 0; i < run.outputs.size(); ++i) {
    if (rule.outputs[i] >= 0) {
      (*call.outputs)[i].shape[rule.outputs[i]] = end - begin;
    }
  }
  call.slice_origin = origin_of(run, rule, begin);
  if (!run.in.empty()) call.unsplit = &run.in[0].shape();
  const Arrays out = run_on_host(run.table, call, &in);
  for (size_t i = 0; i < out.size(); ++i) {
    Array& sum = all->outputs[i];
    if (rule.outputs[i] >= 0) {
      paste(&sum, out[i], rule.outputs[i], begin);
    } else if (rule.outputs[i] == SplitSignature::kPartialSum && begin > 0) {
      for (int64_t e = 0; e < sum.parts(); ++e) {
        sum.set(e, sum.at(e) + out[i].at(e));
      }
    } else if (begin == 0) {
      sum = out[i];
    } else {  // whole: every part has the same
      EXPECT_EQ(difference(out[i], sum, {}), "") << "whole output " << i;
    }
  }
  for (size_t i = 0; i < in.size(); ++i) {
    if (!run.c.inputs[i].variable) continue;
    if (rule.inputs[i] >= 0) {
      paste(&all->inputs[i], in[i], rule.inputs[i], begin);
    } else {
      all->inputs[i] = in[i];
    }
  }
}

// How far sums of parts may be from the sum of all.
Tolerance slack_of(const Case& c, DType dtype) {
  if (dtype == bfloat16) return {2e-2, 2e-2};
  if (dtype == float16) return {3e-3, 3e-3};
  if (dtype == float64 || dtype == complex128) return {1e-10, 1e-10};
  return {std::max(1e-5, c.tolerance.rtol), std::max(1e-5, c.tolerance.atol)};
}

// What rounding each of three parts and two sums of them to 16 bits may come
// to, as large as they are.
double half_rounding(const Array& sum) {
  const double unit = sum.dtype() == bfloat16  ? 0x1p-8
                      : sum.dtype() == float16 ? 0x1p-11
                                               : 0;
  double largest = 0;
  for (int64_t i = 0; unit > 0 && i < sum.parts(); ++i) {
    largest = std::max(largest, std::fabs(sum.at(i)));
  }
  return 2 * unit * largest;
}

void run_rule(const SplitRun& run, const SplitSignature& rule,
              const std::vector<int64_t>& borders) {
  SCOPED_TRACE(describe(rule, borders));
  Joined all;
  for (const OutSpec& o : run.outputs) {
    all.outputs.emplace_back(o.dtype, o.shape);
  }
  for (const Array& a : run.in) all.inputs.emplace_back(a.dtype(), a.shape());
  for (size_t p = 0; p + 1 < borders.size(); ++p) {
    run_part(run, rule, borders[p], borders[p + 1], &all);
  }
  for (size_t i = 0; i < run.outputs.size(); ++i) {
    // Parts of an elementwise op have the bits of the whole. Where a kernel
    // adds up floats, vector lanes may fall differently in a part.
    const bool exact =
        rule.outputs[i] != SplitSignature::kPartialSum &&
        (run.c.def().elementwise() || !is_inexact(run.outputs[i].dtype));
    Tolerance t = exact ? Tolerance{} : slack_of(run.c, run.outputs[i].dtype);
    if (rule.outputs[i] == SplitSignature::kPartialSum) {
      t.atol += half_rounding(run.whole.outputs[i]);
    }
    EXPECT_EQ(difference(all.outputs[i], run.whole.outputs[i], t), "")
        << "output " << i;
  }
  for (size_t i = 0; i < run.in.size(); ++i) {
    if (!run.c.inputs[i].variable) continue;
    EXPECT_EQ(difference(all.inputs[i], run.whole.inputs[i], {}), "")
        << "variable " << i;
  }
}

// Borders of 2 even, 2 uneven and 3 uneven parts of `n`.
std::vector<std::vector<int64_t>> ways_to_cut(int64_t n) {
  std::vector<std::vector<int64_t>> ways;
  if (n >= 2) ways.push_back({0, n / 2, n});
  if (n >= 3) {
    ways.push_back({0, n - 1, n});
    ways.push_back({0, 1, 1 + n / 2, n});
  }
  ways.erase(std::remove_if(ways.begin(), ways.end(),
                            [](const std::vector<int64_t>& b) {
                              return b.size() == 4 && b[2] >= b[3];
                            }),
             ways.end());
  return ways;
}

}  // namespace

namespace {

std::vector<SplitSignature> rules_of(const HostCall& call, const Arrays& in,
                                     std::vector<OutSpec> outputs) {
  const std::vector<SpecView> specs = specs_of(call, in);
  return call.op->split()(InferContext(*call.op, call.attrs, specs, outputs));
}

}  // namespace

bool can_split(const Case& c, DType dtype) {
  if (!c.def().split()) return false;
  const AttrsRef attrs = c.attrs_for(dtype);
  const HostCall call = host_call(c, attrs);
  Arrays in;
  for (const Input& i : c.inputs) {
    in.emplace_back(i.dtype == DType::kInvalid ? dtype : i.dtype, i.shape);
  }
  const std::vector<OutSpec> outputs = infer_on_host(call, in);
  for (const SplitSignature& rule : rules_of(call, in, outputs)) {
    for (size_t i = 0; i < in.size(); ++i) {
      const int8_t axis = rule.inputs[i];
      if (axis >= 0 && in[i].shape()[axis] >= 2) return true;
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const int8_t axis = rule.outputs[i];
      if (axis >= 0 && outputs[i].shape[axis] >= 2) return true;
    }
  }
  return false;
}

void split_case(const Case& c, DType dtype) {
  const AttrsRef attrs = c.attrs_for(dtype);
  const HostCall call = host_call(c, attrs);
  const Arrays in = make_inputs(c, dtype);
  const std::vector<OutSpec> outputs = infer_on_host(call, in);
  const std::vector<SplitSignature> rules = rules_of(call, in, outputs);
  const KernelTable* table = kernels_on_host();
  if (!table) table = &oracle_kernels();
  HostResult whole;
  whole.inputs = in;
  whole.outputs = run_on_host(*table, call, &whole.inputs);
  const SplitRun run{c, *table, call, in, whole, outputs};
  int ways = 0;
  for (const SplitSignature& rule : rules) {
    ASSERT_EQ(rule.inputs.size(), in.size());
    ASSERT_EQ(rule.outputs.size(), outputs.size());
    const int64_t n = cut_length(run, rule);
    EXPECT_GE(n, 0) << describe(rule, {}) << " cuts axes of unequal length";
    for (const std::vector<int64_t>& borders : ways_to_cut(n)) {
      run_rule(run, rule, borders);
      ++ways;
    }
  }
  EXPECT_GT(ways, 0) << "no rule cuts anything";
}

}  // namespace berth::conformance
