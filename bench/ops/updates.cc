// Rows of ops that write variables, and the list of ops that have no row.

#include "bench/ops/rows.h"

namespace berth_bench {

using namespace berth;

namespace {

// `variables` of zeros or, for sums of squares, of positive numbers; then
// scalars, the gradient, and scalars that follow it.
void add_optimizer(Rows& rows, const char* op, const std::string& name,
                   int variables, const std::vector<float>& before,
                   const std::vector<float>& after = {}) {
  add(rows, op, name, kFloats, [=](DType d, int64_t side) {
    Call call;
    for (int i = 0; i < variables; ++i) {
      call.variables.emplace_back(values(d, {side, side}));
    }
    for (const float f : before) call.in.push_back(constant(f));
    call.in.push_back(values(d, {side, side}, -1, 1));
    for (const float f : after) call.in.push_back(constant(f));
    return call;
  });
}

}  // namespace

void add_updates(Rows& rows) {
  for (const Named& n :
       std::vector<Named>{{"AssignVariableOp", "assign"},
                          {"AssignAddVariableOp", "assign_add"},
                          {"AssignSubVariableOp", "assign_sub"}}) {
    add(rows, n.op, n.name, kFloats, [](DType d, int64_t side) {
      return Call{
          {values(d, {side, side})}, {}, {Variable(values(d, {side, side}))}};
    });
  }
  add_optimizer(rows, "ResourceApplyGradientDescent", "sgd", 1, {0.01f});
  add_optimizer(rows, "ResourceApplyMomentum", "momentum", 2, {0.01f}, {0.9f});
  add_optimizer(rows, "ResourceApplyKerasMomentum", "keras_momentum", 2,
                {0.01f}, {0.9f});
  add_optimizer(rows, "ResourceApplyAdagradV2", "adagrad", 2, {0.01f, 1e-7f});
  add_optimizer(rows, "ResourceApplyRMSProp", "rmsprop", 3,
                {0.01f, 0.9f, 0.5f, 1e-3f});
  add_optimizer(rows, "ResourceApplyCenteredRMSProp", "rmsprop_centered", 4,
                {0.01f, 0.9f, 0.5f, 1e-3f});
  const std::vector<float> adam = {0.81f, 0.998f, 0.01f, 0.9f, 0.999f, 1e-7f};
  add_optimizer(rows, "ResourceApplyAdam", "adam", 3, adam);
  std::vector<float> decay = adam;
  decay.push_back(0.01f);
  add_optimizer(rows, "ResourceApplyAdamWithWeightDecay", "adamw", 3, decay);
}

const std::vector<Skipped>& skipped_ops() {
  static const std::vector<Skipped>& list = *new std::vector<Skipped>{
      {"If", "the time is that of a branch"},
      {"FFT", "KissFFT's, in double"},
      {"CTCLoss", "plain loops, in double"},
      {"CTCBeamSearchDecoder", "plain loops, in double"},
      {"NonMaxSuppression", "plain loops"},
      {"Bitcast", "a copy, as reshape"},
      {"RandomGamma", "plain loops of draws that are refused or taken"},
      {"RandomPoisson", "plain loops of draws that are refused or taken"},
      {"RandomBinomial", "plain loops of draws that are refused or taken"},
      {"While", "the time is that of the body"},
      {"_OwnGradient", "the time is that of the function"},
      {"_Fused", "made of elementwise ops: bench_fused_kernels"},
      {"_FusedMatMul", "made of MatMul and what follows: bench_train_step"},
      {"_MultiApply", "made of small updates: bench_train_step"},
      {"_AllReduce", "needs several devices: bench_all_reduce"},
      {"_AllReduceStart", "needs several devices: bench_all_reduce"},
      {"_AllReduceEnd", "needs several devices: bench_all_reduce"},
      {"_TaskStart", "needs several tasks: bench_task_all_reduce"},
      {"_TaskEnd", "needs several tasks: bench_task_all_reduce"},
      {"_TaskGather", "needs several tasks: bench_task_all_reduce"},
      {"_TaskReduce", "needs several tasks: bench_task_all_reduce"},
      {"_TaskSend", "needs several tasks: bench_remote"},
      {"_TaskRecv", "needs several tasks: bench_remote"}};
  return list;
}

}  // namespace berth_bench
