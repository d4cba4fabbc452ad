// Updates of variables: assignments and optimizers.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/gpu/kernels.h"
#include "backends/gpu/moves.h"
#include "berth/errors.h"

namespace berth::gpu {

namespace {
namespace training {

constexpr uint32_t kFlat = 256;  // FLAT_SIZE of dialect.cl
constexpr int kMost = 8;         // updates of one launch: Sizes of training.cl
// With tables: five of addresses, two of sizes.
constexpr int kMostOfTable = 512;
static_assert(5 * kMostOfTable <= kMostAddresses);

// Updates of one kind. The operands of the first are inputs `first` on, those
// of each following one `each` further on; scalars are those of the first.
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
    // A merged update has its members' attributes; a member may lack it.
    const Attrs* attrs = r.args().attrs;
    const AttrValue* v = attrs ? attrs->find("use_nesterov") : nullptr;
    const bool* use = v ? std::get_if<bool>(v) : nullptr;
    return value(int32_t{use && *use ? 1 : 0});
  }
};

// An argument of a kernel: shared by all updates, or one for each.
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

// How many updates one launch takes, and whether by a table; a card without
// addresses takes no more than its kernels have parameters for.
struct Together {
  int most = kMost;
  bool table = false;
};
Together together(const Features& features, int updates) {
  if (!features.addresses || updates < 2) return {};
  for (const int most : {16, 64, 256}) {
    if (updates <= most) return {most, true};
  }
  return {kMostOfTable, true};
}

uint32_t groups_of(const Updates& u, int64_t groups) {
  if (groups > INT32_MAX) {
    throw errors::InvalidArgument(fmt::format(
        "{}: updates of {} elements in one launch; a GPU takes {} at most",
        u.r.args().op->name(), groups * kFlat, int64_t{INT32_MAX} * kFlat));
  }
  return static_cast<uint32_t>(groups);
}

// The elements of each update, and the group at which it begins.
struct Layout {
  std::vector<int64_t> n, first;
  int64_t groups = 0;
};
Layout layout_of(const Updates& u, int slots) {
  Layout l;
  l.n.resize(static_cast<size_t>(slots), 0);
  l.first.resize(static_cast<size_t>(slots), INT64_MAX);
  for (int k = 0; k < u.count; ++k) {
    const auto i = static_cast<size_t>(k);
    l.n[i] = u.size(k);
    l.first[i] = l.groups;
    l.groups += (l.n[i] + kFlat - 1) / kFlat;
  }
  return l;
}

// Adds the arguments of an operand: one, one for each update, or their table.
void add_operand(const Updates& u, const Operand& o, const Together& how,
                 std::vector<Arg>* args) {
  const bool is_input = o.arg.kind == Arg::Kind::kIn;
  if (!o.own || u.count == 1) {
    args->push_back(o.arg);
  } else if (how.table) {
    args->push_back(
        addresses(o.arg.index, u.each, is_input ? u.count : 0, how.most));
  } else {
    for (int k = 0; k < kMost; ++k) {
      const bool is = k < u.count && is_input;
      args->push_back(is ? in(o.arg.index + k * u.each) : no_buffer());
    }
  }
}

// Appends the launch of `kernel`, of `kernel`_many for several updates, or of
// `kernel`_table for any number; sizes follow the operands.
void launch(const Updates& u, const std::string& kernel,
            std::initializer_list<Operand> operands) {
  const Together how = together(u.r.features(), u.count);
  std::vector<Arg> args;
  for (const Operand& o : operands) add_operand(u, o, how, &args);
  const Layout l = layout_of(u, how.most);
  std::vector<int64_t> words = l.n;
  words.insert(words.end(), l.first.begin(), l.first.end());
  args.push_back(u.count == 1 ? value(l.n[0]) : large_value(words));
  KernelSource s;
  s.files = {"training.cl"};
  s.types = {{"T", u.dtype()}};
  s.defines = {{"T_SINGLE", u.dtype() == float32 ? "1" : "0"}};
  if (how.table) s.defines.push_back({"TABLE", std::to_string(how.most)});
  const std::string name = kernel + (u.count == 1 ? ""
                                     : how.table  ? "_table"
                                                  : "_many");
  u.r.launch(s, name.c_str(), {{groups_of(u, l.groups), 1, 1}, kFlat}, args);
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
  const int most = r.features().addresses ? kMostOfTable : kMost;
  for (int i = 0; i < r.num_in(); i += most * each) {
    apply({r, i, std::min(most, (r.num_in() - i) / each), each});
  }
  return true;
}

// No copy here: the value may be the variable's own memory.
bool assign(Recipe& r) {
  const int64_t n = r.in_shape(1).num_elements();
  r.flat(storage_source(r.in_type(1), {"move.cl"}), "copy_elements", n,
         {in(0), in(1), value(n)});
  return true;
}

bool assign_with(Recipe& r, const char* kernel) {
  KernelSource s;
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
