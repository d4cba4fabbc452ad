#include "conformance/gpu_programs/collected.h"

#include <fmt/format.h>

#include "backends/gpu/kernels.h"
#include "base/immortal.h"
#include "berth/errors.h"
#include "conformance/case.h"
#include "conformance/modes.h"
#include "expr/expr.h"
#include "op/infer.h"

namespace berth::conformance {

namespace {

struct Collected {
  std::map<std::string, CollectedProgram> programs;
  std::map<std::string, gpu::LibraryOp> library_ops;
  std::set<std::string> failures;
  Collected();
};

class RecordedKernel final : public gpu::Kernel {
 public:
  void launch(gpu::Queue&, const gpu::Grid&, const gpu::KernelArg*,
              int) override {
    throw errors::Internal("recorded kernels do not run");
  }
};

class RecordedModule final : public gpu::Module {
 public:
  explicit RecordedModule(CollectedProgram& program) : program_(program) {}
  std::unique_ptr<gpu::Kernel> kernel(const char* name) override {
    program_.kernels.insert(name);
    return std::make_unique<RecordedKernel>();
  }

 private:
  CollectedProgram& program_;
};

// Takes the texts and compiles nothing.
class RecordingCard final : public gpu::Card {
 public:
  explicit RecordingCard(std::map<std::string, CollectedProgram>& programs)
      : programs_(programs) {
    features_.name = "a card that takes texts";
    features_.memory_bytes = size_t{80} << 30;
    features_.local_bytes = 49152;
    features_.addresses = true;
    features_.attention = true;
    features_.joins_programs = false;
  }
  std::unique_ptr<gpu::Queue> make_queue() override { return nullptr; }
  std::unique_ptr<MemorySource> memory_source() override { return nullptr; }

  gpu::LibraryKernel library_kernel(const gpu::LibraryOp& op) override {
    library_ops.emplace(current, op);
    return {};
  }

  std::string current;  // the case
  std::map<std::string, gpu::LibraryOp> library_ops;

 protected:
  std::unique_ptr<gpu::Module> compile(const std::string& text) override {
    CollectedProgram& program = programs_[text];
    if (program.first.empty()) program.first = current;
    return std::make_unique<RecordedModule>(program);
  }

 private:
  std::map<std::string, CollectedProgram>& programs_;
};

std::vector<SpecView> specs_of_case(const Case& c, DType dtype) {
  std::vector<SpecView> specs;
  for (const Input& i : c.inputs) {
    const DType own = i.dtype == DType::kInvalid ? dtype : i.dtype;
    if (i.variable) {
      specs.push_back({resource, &i.shape, own});
    } else {
      specs.push_back({own, &i.shape});
    }
  }
  return specs;
}

// Prepares every candidate, also those after the first that takes the call.
void prepare_call(const KernelTable& table, const OpDef& op,
                  const AttrsRef& attrs, const std::vector<SpecView>& in) {
  std::vector<OutSpec> out(static_cast<size_t>(op.num_outputs(attrs.get())));
  infer_outputs(op, attrs.get(), in, out);
  const DType selects = kernel_dtype(in, out);
  PrepareArgs args{.op = &op, .attrs = attrs.get(), .in = in, .out = out};
  args.table = &table;
  for (const KernelDef& k : table.candidates(op)) {
    if ((k.dtypes & dtype_bit(selects)) && k.prepare) k.prepare(args);
  }
}

void prepare_case(const KernelTable& table, const Case& c, DType dtype) {
  prepare_call(table, c.def(), c.attrs_for(dtype), specs_of_case(c, dtype));
}

// An update of one variable also as one of 20, and of more than a launch takes.
void prepare_together(const KernelTable& table, const Case& c, DType dtype) {
  std::vector<Attrs::Pair> attrs;
  const AttrsRef own = c.attrs_for(dtype);
  if (own.get() != nullptr) attrs = own.get()->pairs();
  attrs.push_back({"op", c.def().name()});
  const AttrsRef together(std::move(attrs));
  const std::vector<SpecView> one = specs_of_case(c, dtype);
  for (const int updates : {20, 600}) {
    std::vector<SpecView> in;
    for (int k = 0; k < updates; ++k) {
      in.insert(in.end(), one.begin(), one.end());
    }
    prepare_call(table, op_named("_MultiApply"), together, in);
  }
}

// Groups of codes as fused ops, each code once for each dtype.
void prepare_fused(const KernelTable& table, DType dtype) {
  using expr::Expr;
  using expr::OpCode;
  const Shape shape{64};
  const DType types[] = {bool_, uint8, dtype, dtype};
  std::vector<SpecView> in;
  for (const DType d : types) in.push_back({d, &shape});
  Expr e;
  const auto reset = [&] {
    e = Expr();
    for (const DType d : types) e.input(d);
  };
  const auto flush = [&] {
    if (e.num_outputs() == 0) return;
    std::vector<std::string> names;
    for (const int o : e.outputs()) names.emplace_back(name_of(e[o].type));
    prepare_call(table, op_named("_Fused"),
                 AttrsRef({{"expr", e.str()}, {"types", names}}), in);
    reset();
  };
  const auto add = [&](int value) {
    e.output(value);
    if (e.num_outputs() == expr::kMaxOutputs) flush();
  };
  reset();
  for (int c = 0; c < expr::kNumCodes; ++c) {
    const expr::CodeInfo& i = expr::info(static_cast<OpCode>(c));
    if (i.operands == 0 || !(i.types & dtype_bit(expr::computed_type(dtype)))) {
      continue;
    }
    if (i.code == OpCode::kCast) {
      for (const DType to : kRunTypes) {
        if (expr::kValueTypes & dtype_bit(to)) add(e.cast(3, to));
      }
    } else if (i.code == OpCode::kSelect) {
      add(e.apply(i.code, {0, 2, 3}));
    } else if (i.code == OpCode::kKeep) {
      add(e.apply(i.code, {2, 1}));
    } else if (i.operands == 1) {
      add(e.apply(i.code, {3}));
    } else {
      add(e.apply(i.code, {2, 3}));
    }
  }
  flush();
}

Collected::Collected() {
  RecordingCard card(programs);
  KernelTable table;
  gpu::Kernels kernels(card, table);
  gpu::add_all(kernels);
  for (const Case& c : all_cases().all()) {
    for (const DType dtype : kRunTypes) {
      if (!(c.dtypes & dtype_bit(dtype))) continue;
      card.current = fmt::format("{}/{}/{}", c.op, c.name(), name_of(dtype));
      try {
        prepare_case(table, c, dtype);
        if (c.def().update()) prepare_together(table, c, dtype);
      } catch (const errors::Error& e) {
        failures.insert(fmt::format("{}: {}", card.current, e.what()));
      }
    }
  }
  for (const DType dtype : kRunTypes) {
    if (!(expr::kValueTypes & dtype_bit(dtype))) continue;
    card.current = fmt::format("_Fused/codes/{}", name_of(dtype));
    prepare_fused(table, dtype);
  }
  library_ops = std::move(card.library_ops);
}

const Collected& collected() {
  static const auto& all = immortal<Collected>();
  return all;
}

}  // namespace

const std::map<std::string, CollectedProgram>& collected_programs() {
  return collected().programs;
}

const std::map<std::string, gpu::LibraryOp>& collected_library_ops() {
  return collected().library_ops;
}

std::optional<gpu::LibraryOp> asked_of_library(
    const char* op, const AttrsRef& attrs, const std::vector<SpecView>& in) {
  std::map<std::string, CollectedProgram> programs;
  RecordingCard card(programs);
  KernelTable table;
  gpu::Kernels kernels(card, table);
  gpu::add_all(kernels);
  prepare_call(table, op_named(op), attrs, in);
  if (card.library_ops.empty()) return std::nullopt;
  return card.library_ops.begin()->second;
}

const std::set<std::string>& preparation_failures() {
  return collected().failures;
}

}  // namespace berth::conformance
