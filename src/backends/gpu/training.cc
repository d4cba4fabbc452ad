// Updates of variables: assignments and optimizers.

#include "backends/gpu/kernels.h"
#include "backends/gpu/moves.h"

namespace berth::gpu {

namespace {
namespace training {

// One update: its operands are inputs `first` on.
struct Update {
  Recipe& r;
  int first = 0;

  Arg operator[](int i) const { return in(first + i); }
  DType dtype() const { return r.in_type(first); }
  int64_t size() const { return r.in_shape(first).num_elements(); }
  int32_t nesterov() const {
    // A merged update has the attributes of its members, which may lack it.
    const Attrs* attrs = r.args().attrs;
    const AttrValue* v = attrs ? attrs->find("use_nesterov") : nullptr;
    const bool* use = v ? std::get_if<bool>(v) : nullptr;
    return use && *use ? 1 : 0;
  }
  void launch(const char* kernel, std::initializer_list<Arg> args) const {
    Source s;
    s.files = {"runs.cl", "training.cl"};
    s.types = {{"T", dtype()}};
    s.defines = {{"T_SINGLE", dtype() == float32 ? "1" : "0"}};
    r.flat(s, kernel, runs_of(r.features(), size()), args);
  }
};

using Apply = void (*)(const Update& u);

void gradient_descent(const Update& u) {
  u.launch("gradient_descent", {u[0], u[1], u[2], value(u.size())});
}

void momentum(const Update& u) {
  u.launch("momentum", {u[0], u[1], u[2], u[3], u[4], value(u.nesterov()),
                        value(u.size())});
}

void keras_momentum(const Update& u) {
  u.launch("keras_momentum", {u[0], u[1], u[2], u[3], u[4], value(u.nesterov()),
                              value(u.size())});
}

template <bool kDecay>
void adam(const Update& u) {
  u.launch("adam",
           {u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8],
            kDecay ? u[9] : no_buffer(), u[kDecay ? 10 : 9],
            value(int32_t{kDecay}), value(u.nesterov()), value(u.size())});
}

template <bool kCentered>
void rms_prop(const Update& u) {
  constexpr int k = kCentered ? 4 : 3;
  u.launch("rms_prop", {u[0], kCentered ? u[1] : no_buffer(), u[k - 2],
                        u[k - 1], u[k], u[k + 1], u[k + 2], u[k + 3], u[k + 4],
                        value(int32_t{kCentered}), value(u.size())});
}

void adagrad(const Update& u) {
  u.launch("adagrad", {u[0], u[1], u[2], u[3], u[4], value(u.size())});
}

struct Named {
  const char* op;
  Apply apply;
};
constexpr Named kUpdates[] = {
    {"ResourceApplyGradientDescent", &gradient_descent},
    {"ResourceApplyMomentum", &momentum},
    {"ResourceApplyKerasMomentum", &keras_momentum},
    {"ResourceApplyAdam", &adam<false>},
    {"ResourceApplyAdamWithWeightDecay", &adam<true>},
    {"ResourceApplyRMSProp", &rms_prop<false>},
    {"ResourceApplyCenteredRMSProp", &rms_prop<true>},
    {"ResourceApplyAdagradV2", &adagrad},
};

Apply named(const std::string& op) {
  for (const Named& n : kUpdates) {
    if (op == n.op) return n.apply;
  }
  return nullptr;
}

bool apply(Recipe& r) {
  named(r.args().op->name())({r});
  return true;
}

bool multi_apply(Recipe& r) {
  const auto& name = r.args().attr<std::string>("op");
  const Apply apply = named(name);
  if (apply == nullptr) return false;
  const auto each = static_cast<int>(op_named(name).inputs().size());
  for (int i = 0; i < r.num_in(); i += each) apply({r, i});
  return true;
}

// Not a copy: the value may be the variable's own memory.
bool assign(Recipe& r) {
  const int64_t n = r.in_shape(1).num_elements();
  const int64_t items = runs_of(r.features(), n);
  r.flat(storage_source(r.in_type(1), {"move.cl"}), "copy_elements", items,
         {in(0), in(1), value(n), value(items)});
  return true;
}

bool assign_with(Recipe& r, const char* kernel) {
  Source s;
  s.files = {"assign.cl"};
  s.types = {{"T", r.in_type(1)}};
  const int64_t n = r.in_shape(1).num_elements();
  r.flat(s, kernel, n, {in(0), in(1), value(n)});
  return true;
}

}  // namespace training
}  // namespace

void add_training(Kernels& k) {
  for (const training::Named& n : training::kUpdates) {
    k.add(n.op, kFloatingTypes, &training::apply);
  }
  k.add("_MultiApply", kFloatingTypes, &training::multi_apply);
  k.add("AssignVariableOp", kEveryType, &training::assign);
  k.add("AssignAddVariableOp", kEveryNumber,
        [](Recipe& r) { return training::assign_with(r, "assign_add"); });
  k.add("AssignSubVariableOp", kEveryNumber,
        [](Recipe& r) { return training::assign_with(r, "assign_sub"); });
}

}  // namespace berth::gpu
