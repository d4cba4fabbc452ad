// berth ops: the support table, read from the registry and the kernel tables.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "berth/errors.h"
#include "cli/colours.h"
#include "cli/commands.h"
#include "cli/names.h"
#include "device/device_manager.h"
#include "op/kernel.h"

namespace berth::cli {

namespace {

struct OpsArguments {
  std::vector<std::string> names;  // empty: all
  std::string device;
  bool markdown = false, json = false;
};

// One op, with what all three forms show.
struct OpRow {
  std::string name, gradient, split, doc;
  std::vector<std::string> inputs, attrs;
  // By device type; those in `loops` have only the plain reference loops.
  std::map<std::string, std::vector<std::string>> dtypes, loops;
};

std::string type_of(const AttrValue& v) {
  constexpr const char* kNames[std::variant_size_v<AttrValue>] = {
      "bool", "int",     "double",  "string", "dtype",   "shape",
      "ints", "doubles", "strings", "tensor", "function"};
  return kNames[v.index()];
}

std::string input_text(const ArgDef& a) {
  std::string s = a.name;
  if (a.access == Access::kReadsVariable) s += " (variable)";
  if (writes(a.access)) s += " (variable, written)";
  if (a.variadic) s += "...";
  if (a.optional && !a.variadic) s += "?";
  return s;
}

DTypeSet accepted(const OpDef& op) {
  for (const ArgDef& a : op.inputs()) {
    if (a.types != kResourceType) return a.types;
  }
  return ~DTypeSet{0};
}

// Returns the dtypes for which the device has a kernel; one word for ops that
// need none.
std::vector<std::string> support(const Device& device, const OpDef& op) {
  switch (op.kind()) {
    case OpKind::kAlias:
      return {"alias"};
    case OpKind::kReadVariable:
    case OpKind::kCall:
    case OpKind::kControl:
      return {"engine"};
    case OpKind::kCompute:
      break;
    default:
      return {"graphs only"};
  }
  std::vector<std::string> dtypes;
  for (int d = 1; d < kNumDTypes; ++d) {
    const auto dtype = static_cast<DType>(d);
    if ((accepted(op) & dtype_bit(dtype)) != 0 &&
        device.kernels().supports(op, dtype)) {
      dtypes.emplace_back(name_of(dtype));
    }
  }
  if (dtypes.empty() && op.decompose()) return {"by parts"};
  if (dtypes.empty()) return {"none"};
  return dtypes;
}

// Returns the dtypes for which the device has no kernel of its own. A simulated
// one stands for another, whose kernels are not here.
std::vector<std::string> by_loops(const Device& device, const OpDef& op,
                                  const std::vector<std::string>& dtypes) {
  std::vector<std::string> loops;
  if (device.simulated()) return loops;
  for (const std::string& name : dtypes) {
    for (const KernelDef& k : device.kernels().candidates(op)) {
      bool takes = false;
      for (int d = 1; d < kNumDTypes; ++d) {
        const auto dtype = static_cast<DType>(d);
        takes |= name == name_of(dtype) && (k.dtypes & dtype_bit(dtype)) != 0;
      }
      if (!takes) continue;
      if (k.label == "reference" || k.label == "widened") loops.push_back(name);
      break;
    }
  }
  return loops;
}

OpRow row_of(const OpDef& op, const std::vector<const Device*>& devices) {
  OpRow row;
  row.name = op.name();
  row.doc = op.doc();
  row.split = op.split() ? "yes" : "no";
  row.gradient = op.gradient() ? "rule" : op.decompose() ? "by parts" : "none";
  for (const ArgDef& a : op.inputs()) row.inputs.push_back(input_text(a));
  for (const AttrDef& a : op.attrs()) {
    row.attrs.push_back(a.name + ": " + type_of(a.default_value) +
                        (a.required ? "" : "?"));
  }
  for (const Device* d : devices) {
    const auto& dtypes = row.dtypes[d->type()] = support(*d, op);
    row.loops[d->type()] = by_loops(*d, op, dtypes);
  }
  return row;
}

// Returns the requested device, else the first of each type.
std::vector<const Device*> choose(const std::string& name) {
  DeviceManager& m = DeviceManager::get();
  if (!name.empty()) {
    try {
      return {&m.lookup(DeviceName::parse(name))};
    } catch (const errors::Error& e) {
      throw UsageError(std::string("ops: --device: ") + e.what());
    }
  }
  std::vector<const Device*> first;
  for (const Device* d : m.devices()) {
    bool known = false;
    for (const Device* f : first) known = known || f->type() == d->type();
    if (!known) first.push_back(d);
  }
  return first;
}

std::string cell(const std::vector<std::string>& list) {
  return fmt::format("{}", fmt::join(list, ", "));
}

// Returns "float32; loops: int32": kernels by dtype.
std::string kernels_text(const OpRow& row, const std::string& device) {
  const std::vector<std::string>& loops = row.loops.at(device);
  std::vector<std::string> own = row.dtypes.at(device);
  std::erase_if(own, [&](const std::string& dtype) {
    return std::find(loops.begin(), loops.end(), dtype) != loops.end();
  });
  std::string s = cell(own);
  if (!loops.empty()) s += (s.empty() ? "loops: " : "; loops: ") + cell(loops);
  return s;
}

std::string escaped(std::string s) {
  for (size_t at = 0; (at = s.find('|', at)) != s.npos; at += 2) {
    s.insert(at, "\\");
  }
  return s;
}

void print_markdown(const std::vector<OpRow>& rows,
                    const std::vector<const Device*>& devices) {
  fmt::print(
      "# Ops\n\n"
      "What `berth ops --markdown` prints: {} ops. Per device type: the dtypes "
      "that a\nkernel takes, or how else the op is done (`by parts`: composed "
      "of other ops;\n`engine`, `alias`: without a kernel). For those after "
      "`loops:` the device has no\nkernel of its own: plain reference loops "
      "stand in. An attribute with `?` has a\ndefault; an input with `...` may "
      "repeat, one with `?` may be absent. Gradient: a\nrule of its own, or "
      "that of its parts. Split: whether it says how to compute it in\n"
      "parts.\n\n",
      rows.size());
  std::string head = "| op | inputs | attributes |", line = "|---|---|---|";
  for (const Device* d : devices) {
    head +=
        fmt::format(" {}{} |", d->type(), d->simulated() ? " (simulated)" : "");
    line += "---|";
  }
  fmt::print("{} gradient | split | what |\n{}---|---|---|\n", head, line);
  for (const OpRow& r : rows) {
    std::string s =
        fmt::format("| {} | {} | {} |", r.name, cell(r.inputs), cell(r.attrs));
    for (const Device* d : devices) {
      s += fmt::format(" {} |", kernels_text(r, d->type()));
    }
    fmt::print("{} {} | {} | {} |\n", s, r.gradient, r.split, escaped(r.doc));
  }
}

void print_json(const std::vector<OpRow>& rows) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const OpRow& r : rows) {
    all.push_back({{"op", r.name},
                   {"inputs", r.inputs},
                   {"attributes", r.attrs},
                   {"dtypes", r.dtypes},
                   {"loops", r.loops},
                   {"gradient", r.gradient},
                   {"split", r.split == "yes"},
                   {"doc", r.doc}});
  }
  fmt::print("{}\n", all.dump(2));
}

void print_text(const std::vector<OpRow>& rows) {
  const Colours colours(stdout);
  for (const OpRow& r : rows) {
    fmt::print("{}({})", colours.bold(r.name), cell(r.inputs));
    if (!r.attrs.empty()) fmt::print(" {{{}}}", cell(r.attrs));
    fmt::print("\n");
    for (const auto& [type, dtypes] : r.dtypes) {
      fmt::print("    {}: {}\n", type, kernels_text(r, type));
    }
    fmt::print("    gradient: {}; split: {}\n", r.gradient, r.split);
    if (!r.doc.empty()) fmt::print("    {}\n", r.doc);
  }
}

// Returns the ops with these names, or all for no names.
std::vector<const OpDef*> ops_named(const std::vector<std::string>& names) {
  const auto all = OpRegistry::get().all();
  if (names.empty()) return {all.begin(), all.end()};
  std::vector<const OpDef*> found;
  std::vector<std::string> known;
  for (const OpDef* op : all) known.push_back(op->name());
  for (const std::string& name : names) {
    const auto at = std::find(known.begin(), known.end(), name);
    if (at == known.end()) {
      throw UsageError(fmt::format("ops: there is no op '{}'{}", name,
                                   nearest_names(name, known)));
    }
    found.push_back(all[static_cast<size_t>(at - known.begin())]);
  }
  return found;
}

void run(const OpsArguments& o) {
  const std::vector<const OpDef*> ops = ops_named(o.names);
  const std::vector<const Device*> devices = choose(o.device);
  std::vector<OpRow> rows;
  for (const OpDef* op : ops) rows.push_back(row_of(*op, devices));
  std::sort(rows.begin(), rows.end(),
            [](const OpRow& a, const OpRow& b) { return a.name < b.name; });
  if (o.markdown) {
    print_markdown(rows, devices);
  } else if (o.json) {
    print_json(rows);
  } else {
    print_text(rows);
  }
}

}  // namespace

void add_ops(CLI::App& program) {
  auto options = std::make_shared<OpsArguments>();
  CLI::App* ops =
      program.add_subcommand("ops", "Lists the ops and what computes them");
  ops->add_option("op", options->names,
                  "of these alone, for example MatMul; without: all");
  ops->add_option("--device", options->device,
                  "of this device alone, for example /CPU:0");
  auto* markdown =
      ops->add_flag("--markdown", options->markdown, "as docs/ops.md");
  ops->add_flag("--json", options->json, "as JSON")->excludes(markdown);
  ops->callback([options] { run(*options); });
}

}  // namespace berth::cli
