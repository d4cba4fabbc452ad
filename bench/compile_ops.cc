// How compile time grows: seconds to trace, optimise, place and plan programs
// of 100,000 ops. `--model chain|regions|wide|updates|train`, default each.

#include "bench_common.h"
#include "berth/berth.h"

using namespace berth;
using namespace berth_bench;

namespace {

constexpr int kOps = 100000;

Tensor vector_of(int64_t n, float value) { return fill({n}, value); }

// Each op reads the result of the one before, which nobody else does; in
// "regions" on values so large that ops are cut into slices.
Tensors chain(const Tensor& x) {
  Tensor y = x;
  for (int i = 0; i < kOps; i += 2) y = math::tanh(y) + x;
  return {y};
}

// Every op reads the argument and is a result of the function.
Tensors wide(const Tensor& x) {
  Tensors all;
  for (int i = 0; i < kOps; ++i) all.push_back(x * static_cast<double>(i));
  return all;
}

// Reads and updates of one variable, in turns.
Tensors updates(const Tensor& x, Variable& v) {
  Tensor y = x;
  for (int i = 0; i < kOps; i += 3) {
    v.assign_add(x);
    y = y + v.value();
  }
  return {y};
}

// Forward, backward and the updates of a network of many small layers: what
// the forward pass computes lives until the backward pass reads it.
Tensors train(const Tensor& x, std::vector<Variable>& w) {
  GradientTape tape;
  Tensor y = x;
  for (Variable& v : w) y = math::tanh(y * v.value());
  const Tensor loss = math::reduce_sum(y);
  const Tensors grads = tape.gradient(loss, w);
  for (size_t i = 0; i < w.size(); ++i) w[i].assign_sub(grads[i] * 0.01);
  return {loss};
}

// Returns the seconds that compiling took, without the trace.
double compile(const std::string& model, bool optimize) {
  std::vector<Variable> w;
  // A layer has two ops forward, about six backward, two for the update.
  if (model == "train") {
    for (int i = 0; i < kOps / 10; ++i) w.emplace_back(vector_of(16, 1.f));
  } else {
    w.emplace_back(vector_of(16, 1.f));
  }
  auto f = function(
      [&](const Tensor& x) {
        return model == "updates" ? updates(x, w[0])
               : model == "train" ? train(x, w)
               : model == "wide"  ? wide(x)
                                  : chain(x);
      },
      {.name = model, .optimize = optimize});
  const double begin = now_seconds();
  f(vector_of(model == "regions" ? 16384 : 16, 1.f));
  const double seconds = now_seconds() - begin;
  const FunctionPlanInfo info = f.plan_info();
  Line("compile_ops", 1)
      .add("model", model)
      .add("optimize", optimize)
      .add("ops", info.ops_traced)
      .add("trace_seconds", info.trace_seconds)
      .add("compile_seconds", info.compile_seconds)
      .add("first_call_seconds", seconds)
      .print();
  return info.compile_seconds;
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  double worst = 0;
  for (const char* model : {"chain", "regions", "wide", "updates", "train"}) {
    if (!args.model.empty() && args.model != model) continue;
    for (const bool optimize : {true, false}) {
      worst = std::max(worst, compile(model, optimize));
    }
  }
  Line("compile_ops_all", 1).add("worst_seconds", worst).print();
}
