// Updates of variables: assignments and optimizers.

#include <algorithm>
#include <string>
#include <vector>

#include "backends/gpu/kernels.h"
#include "backends/gpu/moves.h"

namespace berth::gpu {

namespace {
namespace training {

constexpr uint32_t kFlat = 256;  // FLAT_SIZE of dialect.cl
constexpr int kMost = 8;         // updates of one launch: Sizes of training.cl

// Updates of one kind: the operands of the first are inputs `first` on, those
// of each next one `each` further on; scalars are those of the first.
struct Updates {
  Recipe& r;
  int first = 0;
  int count = 1;
  int each = 0;

  Arg operator[](int i) const { return in(first + i); }
  DType dtype() const { return r.in_type(first); }
  int64_t size(int k) const {
    return r.in_shape(first + k * each).num_elements();
  }
  Arg nesterov() const {
    // A merged update has the attributes of its members, which may lack it.
    const Attrs* attrs = r.args().attrs;
    const AttrValue* v = attrs ? attrs->find("use_nesterov") : nullptr;
    const bool* use = v ? std::get_if<bool>(v) : nullptr;
    return value(int32_t{use && *use ? 1 : 0});
  }
};

// An argument of a kernel: one for all updates, or each has its own.
struct Operand {
  Operand(const Arg& a) : arg(a) {}  // NOLINT: is one
  Arg arg;
  bool own = false;
};
Operand own(const Arg& a) {
  Operand o = a;
  o.own = true;
  return o;
}

// Appends the launch of `kernel`, or of `kernel`_many for several updates;
// sizes follow the operands.
void launch(const Updates& u, const std::string& kernel,
            std::initializer_list<Operand> operands) {
  const bool many = u.count > 1;
  std::vector<Arg> args;
  for (const Operand& o : operands) {
    args.push_back(o.arg);
    for (int k = 1; k < kMost && o.own && many; ++k) {
      const bool is = k < u.count && o.arg.kind == Arg::Kind::kIn;
      args.push_back(is ? in(o.arg.index + k * u.each) : no_buffer());
    }
  }
  struct {
    int64_t n[kMost];
  } sizes = {};
  int64_t items = 0;
  for (int k = 0; k < u.count; ++k) {
    sizes.n[k] = u.size(k);
    items = std::max(items, runs_of(u.r.features(), sizes.n[k]));
  }
  args.push_back(many ? value(sizes) : value(sizes.n[0]));
  Source s;
  s.files = {"runs.cl", "training.cl"};
  s.types = {{"T", u.dtype()}};
  s.defines = {{"T_SINGLE", u.dtype() == float32 ? "1" : "0"}};
  const auto groups = static_cast<uint32_t>((items + kFlat - 1) / kFlat);
  u.r.launch(s, (many ? kernel + "_many" : kernel).c_str(),
             {{groups, static_cast<uint32_t>(u.count), 1}, kFlat}, args);
}

using Apply = void (*)(const Updates& u);

void gradient_descent(const Updates& u) {
  launch(u, "gradient_descent", {own(u[0]), u[1], own(u[2])});
}

void momentum(const Updates& u) {
  launch(u, "momentum",
         {own(u[0]), own(u[1]), u[2], own(u[3]), u[4], u.nesterov()});
}

void keras_momentum(const Updates& u) {
  launch(u, "keras_momentum",
         {own(u[0]), own(u[1]), u[2], own(u[3]), u[4], u.nesterov()});
}

template <bool kDecay>
void adam(const Updates& u) {
  launch(u, "adam",
         {own(u[0]), own(u[1]), own(u[2]), u[3], u[4], u[5], u[6], u[7], u[8],
          kDecay ? u[9] : no_buffer(), own(u[kDecay ? 10 : 9]), u.nesterov()});
}

template <bool kCentered>
void rms_prop(const Updates& u) {
  constexpr int k = kCentered ? 4 : 3;
  launch(u, "rms_prop",
         {own(u[0]), own(kCentered ? u[1] : no_buffer()), own(u[k - 2]),
          own(u[k - 1]), u[k], u[k + 1], u[k + 2], u[k + 3], own(u[k + 4]),
          value(int32_t{kCentered})});
}

void adagrad(const Updates& u) {
  launch(u, "adagrad", {own(u[0]), own(u[1]), u[2], u[3], own(u[4])});
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
  for (int i = 0; i < r.num_in(); i += kMost * each) {
    apply({r, i, std::min(kMost, (r.num_in() - i) / each), each});
  }
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
  s.files = {"runs.cl", "assign.cl"};
  s.types = {{"T", r.in_type(1)}};
  const int64_t n = r.in_shape(1).num_elements();
  const int64_t items = runs_of(r.features(), n);
  r.flat(s, kernel, items, {in(0), in(1), value(n), value(items)});
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
