// Optimizer updates: they change Variables and have no results.

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

Input scalar(double value) { return Input({}).of({value}); }
Input variable(Shape shape) { return Input(shape).as_variable(); }
Input squares(Shape shape) { return Input(shape).uniform(0, 1).as_variable(); }

std::string named(const char* label, bool nesterov) {
  return label + std::string(nesterov ? "_nesterov" : "");
}

// `shared`: other devices read the variable next.
void add_updates(Cases& cases, const char* label, Shape shape, bool perf,
                 bool shared = false) {
  std::vector<Case*> added;
  added.push_back(&cases.add("ResourceApplyGradientDescent", label,
                             {variable(shape), scalar(0.05), Input(shape)}));
  for (const bool nesterov : {false, true}) {
    for (const char* op :
         {"ResourceApplyMomentum", "ResourceApplyKerasMomentum"}) {
      added.push_back(&cases
                           .add(op, named(label, nesterov),
                                {variable(shape), variable(shape), scalar(0.05),
                                 Input(shape), scalar(0.9)})
                           .attr("use_nesterov", nesterov));
    }
    added.push_back(
        &cases
             .add("ResourceApplyAdam", named(label, nesterov),
                  {variable(shape), variable(shape), squares(shape),
                   scalar(0.81), scalar(0.998), scalar(0.01), scalar(0.9),
                   scalar(0.999), scalar(1e-7), Input(shape)})
             .attr("use_nesterov", nesterov));
    added.push_back(
        &cases
             .add("ResourceApplyAdamWithWeightDecay", named(label, nesterov),
                  {variable(shape), variable(shape), squares(shape),
                   scalar(0.81), scalar(0.998), scalar(0.01), scalar(0.9),
                   scalar(0.999), scalar(1e-7), scalar(0.04), Input(shape)})
             .attr("use_nesterov", nesterov));
  }
  added.push_back(&cases.add(
      "ResourceApplyRMSProp", label,
      {variable(shape), squares(shape), variable(shape), scalar(0.01),
       scalar(0.9), scalar(0.5), scalar(1e-3), Input(shape)}));
  // What is spread about the mean is a square too.
  added.push_back(&cases.add(
      "ResourceApplyCenteredRMSProp", label,
      {variable(shape), Input(shape).uniform(-0.5, 0.5).as_variable(),
       Input(shape).uniform(1, 2).as_variable(), variable(shape), scalar(0.01),
       scalar(0.9), scalar(0.5), scalar(1e-3), Input(shape)}));
  added.push_back(&cases.add("ResourceApplyAdagradV2", label,
                             {variable(shape), squares(shape), scalar(0.01),
                              scalar(1e-7), Input(shape)}));
  for (Case* c : added) {
    if (perf) c->types(dtype_bit(float32)).perf_only();
    if (shared) c->attr("shared", true);
  }
}

}  // namespace

void add_training_cases(Cases& cases) {
  add_updates(cases, "matrix", {5, 7}, false);
  add_updates(cases, "shared", {2501}, false, true);
  add_updates(cases, "odd_length", {131}, false);
  add_updates(cases, "scalar", {}, false);
  add_updates(cases, "empty", {0, 3}, false);
  add_updates(cases, "1m", {1024, 1024}, true);
}

}  // namespace berth::conformance
