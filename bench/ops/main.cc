// Ops of the catalogue as warm plans, by size: what bench/ops.py sets against
// NumPy and PyTorch. A line per row, dtype and size: `best_us`.
//
// `--model check` runs every row once at the smallest size, and fails if an op
// that computes has neither a row nor a reason (ops/updates.cc), or if a row's
// op is not in its trace.

#include <functional>
#include <set>

#include "bench/bench_common.h"
#include "bench/ops/rows.h"
#include "op/dispatcher.h"
#include "op/op_registry.h"

using namespace berth;
using namespace berth_bench;

namespace {

constexpr double kLong = 0.3;  // seconds

Tensor call_op(const Row& row, const Call& call, const Tensors& in) {
  if (call.fn) return call.fn(in);
  const OpDef& op = op_named(row.op);
  const AttrsRef attrs = call.attrs.empty() ? AttrsRef() : AttrsRef(call.attrs);
  std::vector<const Tensor*> inputs;
  for (const Variable& v : call.variables) inputs.push_back(&v.handle());
  for (const Tensor& t : in) inputs.push_back(&t);
  Tensors out(static_cast<size_t>(op.num_outputs(attrs.get())));
  apply(op, inputs, attrs.get(), out);
  return out.empty() ? constant(0) : out[0];
}

void time_row(const Row& row, DType dtype, int64_t side, const Args& args) {
  Line line("ops", args.cores);
  line.add("op", row.name).add("dtype", name_of(dtype)).add("side", side);
  try {
    const Call call = row.make(dtype, side);
    auto run =
        function([&](const Tensors& in) { return call_op(row, call, in); });
    const auto step = [&] { (void)run(call.in); };
    step();  // compiles
    const double begin = now_seconds();
    step();
    const double once = now_seconds() - begin;
    // What takes long needs no second look.
    line.timing(
        once > kLong ? Timing{once, once, 0} : measure(step, args.seconds),
        "us", 1e6);
  } catch (const std::exception& e) {
    line.add("failed", e.what());
  }
  line.print();
}

// What is wrong with the row, "" when it runs and times its op.
std::string fault_of(const Row& row, DType dtype) {
  try {
    const Call call = row.make(dtype, 32);
    auto run =
        function([&](const Tensors& in) { return call_op(row, call, in); });
    (void)run(call.in);
    const bool there =
        run.text("trace").find(" = " + row.op + "(") != std::string::npos;
    return there ? "" : "its trace has no " + row.op;
  } catch (const std::exception& e) {
    return e.what();
  }
}

int check() {
  int faults = 0;
  const auto say = [&](const std::string& what, const std::string& fault) {
    std::printf("%s: %s\n", what.c_str(), fault.c_str());
    ++faults;
  };
  std::set<std::string> known, names;
  for (const Row& row : all_rows()) {
    known.insert(row.op);
    for (const DType dtype : row.types) {
      const std::string what = row.name + " of " + name_of(dtype);
      if (!names.insert(what).second) say(what, "two rows have this name");
      const std::string fault = fault_of(row, dtype);
      if (!fault.empty()) say(what, fault);
    }
  }
  for (const Skipped& s : skipped_ops()) {
    if (!known.insert(s.op).second) say(s.op, "has a row and a reason");
    if (OpRegistry::get().find(s.op) == nullptr)
      say(s.op, "there is no such op");
  }
  for (const OpDef* op : OpRegistry::get().all()) {
    // The others run no kernel, or read shapes alone.
    if (op->kind() == OpKind::kAlias || op->metadata()) continue;
    if (op->kind() != OpKind::kCompute && op->kind() != OpKind::kControl) {
      continue;
    }
    if (known.contains(op->name())) continue;
    say(op->name(),
        "no row times it; expected one in bench/ops, or a reason in "
        "bench/ops/updates.cc");
  }
  std::printf("bench_ops: %zu rows of %zu ops, %d faults\n", names.size(),
              known.size() - skipped_ops().size(), faults);
  return faults > 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  if (!use_cores(args.cores)) {
    return skip("ops", args.cores, "fewer cores than asked for");
  }
  if (args.model == "check") return check();
  for (const int64_t side : {32, 1024, 3072}) {
    for (const Row& row : all_rows()) {
      if (!args.model.empty() && args.model != row.name) continue;
      for (const DType dtype : row.types) time_row(row, dtype, side, args);
    }
  }
}
