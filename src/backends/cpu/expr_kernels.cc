// Kernels that run expressions: fused groups, every elementwise op in every
// dtype that expressions support, and what the dedicated loops do not take.

#include <array>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"
#include "backends/reference/reference.h"
#include "base/immortal.h"
#include "expr/program.h"

namespace berth::cpu {

namespace {

using expr::Expr;
using expr::ExprProgram;

// Programs by text. Old ones are dropped when there are too many; a program
// that is running is kept by its caller.
class ProgramTable {
 public:
  std::shared_ptr<const ExprProgram> find(const std::string& text) {
    std::lock_guard lock(mutex_);
    const auto it = programs_.find(text);
    if (it != programs_.end()) return it->second;
    auto program =
        std::make_shared<const ExprProgram>(Expr::parse(text), *loops().expr);
    if (programs_.size() >= kMost) programs_.clear();
    programs_.emplace(text, program);
    return program;
  }

 private:
  static constexpr size_t kMost = 4096;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const ExprProgram>> programs_;
};

ProgramTable& programs() {
  static auto& table = immortal<ProgramTable>();
  return table;
}

// The program that this thread ran last, by the address of its attributes.
// Another op may have that address by now, so the text decides.
struct Recent {
  const Attrs* attrs = nullptr;
  std::string text;
  std::shared_ptr<const ExprProgram> program;
};

const ExprProgram& program_of(const KernelCall& c) {
  constexpr size_t kRecent = 64;
  auto& recent = of_this_thread<std::array<Recent, kRecent>>();
  const std::string& text = c.attr<std::string>("expr");
  Recent& r = recent[reinterpret_cast<uintptr_t>(c.attrs) / 64 % kRecent];
  if (r.attrs != c.attrs || r.text != text) {
    r.program = programs().find(text);
    r.text = text;
    r.attrs = c.attrs;
  }
  return *r.program;
}

void fused(const KernelCall& c) { program_of(c).run(c.in, c.out); }

// Programs of single ops, by op and by the dtypes of the last input and of the
// result. The table is filled before devices exist.
using ByTypes =
    std::array<std::unique_ptr<ExprProgram>, expr::kNumTypes * expr::kNumTypes>;

std::unordered_map<uint16_t, ByTypes>& single_programs() {
  static auto& table = immortal<std::unordered_map<uint16_t, ByTypes>>();
  return table;
}

size_t types_index(DType last, DType result) {
  return static_cast<size_t>(expr::type_index(last) * expr::kNumTypes +
                             expr::type_index(result));
}

// Returns null when expressions lack a dtype of the call.
const ExprProgram* single_program(const KernelCall& c) {
  const DType last = c.in[c.num_in - 1].dtype, result = c.out[0].dtype;
  if (expr::type_index(last) >= expr::kNumTypes ||
      expr::type_index(result) >= expr::kNumTypes) {
    return nullptr;
  }
  const auto it = single_programs().find(c.op->id());
  if (it == single_programs().end()) return nullptr;
  return it->second[types_index(last, result)].get();
}

void single(const KernelCall& c) {
  if (run_single(c)) return;
  // A narrow dtype is left to the next kernel.
  const DTypeSet type = dtype_bit(c.in[0].dtype);
  for (const KernelDef& k : kernels().candidates(*c.op)) {
    if ((k.dtypes & type) && k.direct && k.direct != &single)
      return k.direct(c);
  }
  reference::kernels().fast(c.op->id(), c.in[0].dtype)(c);
}

// Makes the program of an op for these input dtypes, if it has one.
bool add_single(const OpDef& op, std::span<const DType> in, DType result) {
  Expr e;
  int args[3];
  for (size_t i = 0; i < in.size(); ++i) args[i] = e.input(in[i]);
  const auto y = expr::lower(e, op, nullptr, {args, in.size()}, result);
  if (!y || e[*y].type != result) return false;
  e.output(*y);
  single_programs()[op.id()][types_index(in.back(), result)] =
      std::make_unique<ExprProgram>(e, *loops().expr);
  return true;
}

// Adds every form of an op whose attributes do not matter.
void add_op(KernelTable& t, const OpDef& op) {
  const size_t operands = op.inputs().size();
  if (!op.elementwise() || operands == 0 || operands > 3) return;
  const bool cast = op.name() == "Cast", choice = op.name() == "SelectV2";
  if (!op.attrs().empty() && !cast) return;
  DTypeSet taken = 0;
  for (int d = 1; d <= expr::kNumTypes; ++d) {
    const auto type = static_cast<DType>(d);
    DType in[3] = {type, type, type};
    if (choice) in[0] = bool_;
    if (!choice && !(op.input(0).types & dtype_bit(type))) continue;
    for (int r = 1; r <= expr::kNumTypes; ++r) {
      const auto result = static_cast<DType>(r);
      if (!cast && result != type && result != bool_) continue;
      if (!expr::can_lower(op, nullptr, {in, operands}, result)) continue;
      if (add_single(op, {in, operands}, result)) taken |= dtype_bit(in[0]);
    }
  }
  if (taken) t.direct(op.name(), taken, &single, "blocks", true);
}

}  // namespace

bool run_single(const KernelCall& c) {
  const ExprProgram* p = single_program(c);
  if (p == nullptr) return false;
  p->run(c.in, c.out);
  return true;
}

void add_expressions(KernelTable& t) {
  t.direct("_Fused", kAllTypes, &fused, "blocks", true);
  for (const OpDef* op : OpRegistry::get().all()) add_op(t, *op);
}

}  // namespace berth::cpu
