// Mode support: which device computes which op for which dtypes, and which
// modes check it. An op without a case fails.

#include <fmt/format.h>

#include <map>
#include <set>

#include "conformance/modes.h"
#include "device/device_manager.h"
#include "op/kernel.h"

namespace berth::conformance {

namespace {

// Ops that no case can call alone, or that only passes make.
bool exempt(const OpDef& op) {
  return op.graph_only() || op.kind() == OpKind::kCall ||
         op.kind() == OpKind::kControl ||  // random programs check these
         op.name().starts_with('_');
}

// "f32": the first letter and the bits.
std::string short_name(DType d) {
  if (d == bool_) return "bool";
  const std::string name = name_of(d);
  return (d == bfloat16 ? "bf" : name.substr(0, 1)) +
         std::to_string(size_of(d) * 8);
}

// "direct", "prepared", "decomposition" or "" for one dtype; the first
// candidate decides.
const char* how(const KernelTable& table, const OpDef& op, DType d) {
  for (const KernelDef& k : table.candidates(op)) {
    if (k.dtypes & dtype_bit(d)) return k.direct ? "direct" : "prepared";
  }
  return op.decompose() ? "decomposition" : "";
}

DTypeSet dtypes_of_op(const OpDef& op) {
  for (const ArgDef& a : op.inputs()) {
    if (a.types != kResourceType) return a.types;
  }
  return kEveryType;
}

// "direct f32 f64; prepared f32"
std::string support(const Device& device, const OpDef& op) {
  if (op.kind() == OpKind::kAlias) return "alias";
  if (op.kind() == OpKind::kReadVariable) return "engine";
  if (op.kind() == OpKind::kCall) return "function";
  if (op.kind() == OpKind::kControl) return "engine";
  if (op.graph_only()) return "graph only";
  std::map<std::string, std::string> ways;
  for (const DType d : kRunTypes) {
    if (!(dtypes_of_op(op) & dtype_bit(d))) continue;
    const std::string way = how(device.kernels(), op, d);
    if (!way.empty()) ways[way] += " " + short_name(d);
  }
  std::string text;
  for (const auto& [way, dtypes] : ways) {
    text += (text.empty() ? "" : "; ") + way + dtypes;
  }
  return text.empty() ? "none" : text;
}

struct Coverage {
  int cases = 0;
  std::map<Mode, int> runs;
  std::map<Mode, std::set<std::string>> reasons;
};

constexpr std::pair<Mode, const char*> kModes[] = {{Mode::kTest, "test"},
                                                   {Mode::kGrad, "grad"},
                                                   {Mode::kGrad2, "grad2"},
                                                   {Mode::kSplit, "split"},
                                                   {Mode::kPerf, "perf"}};

std::map<std::string, Coverage> coverage() {
  std::map<std::string, Coverage> all;
  for (const Case& c : all_cases().all()) {
    Coverage& of = all[c.op];
    if (!c.perf) ++of.cases;
    for (const auto& [mode, name] : kModes) {
      for (const DType d : dtypes_of(c)) {
        if ((mode != Mode::kPerf && c.perf) || !applies(mode, c, d)) continue;
        const auto skipped = c.skipped.find(mode);
        if (skipped == c.skipped.end()) {
          ++of.runs[mode];
        } else {
          of.reasons[mode].insert(skipped->second);
        }
      }
    }
  }
  return all;
}

// "12", or why there is none: "-" when the op has nothing to check.
std::string cell(const OpDef& op, Coverage& of, Mode mode, bool* lacks) {
  if (of.runs[mode] > 0) return std::to_string(of.runs[mode]);
  if (!of.reasons[mode].empty()) return "skipped";
  const bool wanted =
      mode == Mode::kTest ||
      ((mode == Mode::kGrad || mode == Mode::kGrad2) && op.differentiable() &&
       (dtypes_of_op(op) & kFloatingTypes) && !op.inputs().empty());
  if (wanted) *lacks = true;
  return wanted ? "NONE" : "-";
}

void print_row(const std::vector<std::string>& cells, bool markdown) {
  static constexpr int kWidths[] = {34, 5, 5, 6, 6, 5};
  std::string line = markdown ? "|" : "";
  for (size_t i = 0; i < cells.size(); ++i) {
    if (markdown) {
      line += " " + cells[i] + " |";
    } else {
      line += i < std::size(kWidths)
                  ? fmt::format("{:<{}} ", cells[i], kWidths[i])
                  : fmt::format("{:<32} ", cells[i]);
    }
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  fmt::print("{}\n", line);
}

// The first device of each type.
std::vector<const Device*> device_types() {
  std::vector<const Device*> list;
  std::set<std::string> seen;
  for (const Device* d : DeviceManager::get().devices()) {
    if (seen.insert(d->type()).second) list.push_back(d);
  }
  return list;
}

void print_reasons(const std::map<std::string, Coverage>& all) {
  fmt::print("\nSkipped, and why:\n");
  for (const auto& [op, of] : all) {
    for (const auto& [mode, name] : kModes) {
      const auto reasons = of.reasons.find(mode);
      if (reasons == of.reasons.end()) continue;
      for (const std::string& why : reasons->second) {
        if (of.runs.count(mode) == 0 || of.runs.at(mode) == 0) {
          fmt::print("- {} {}: {}\n", op, name, why);
        }
      }
    }
  }
}

}  // namespace

int run_support(bool markdown) {
  std::map<std::string, Coverage> all = coverage();
  const std::vector<const Device*> devices = device_types();
  std::vector<std::string> header = {"op"};
  for (const auto& [mode, name] : kModes) header.push_back(name);
  for (const Device* d : devices) {
    header.push_back(d->type() + (d->simulated() ? " (simulated)" : ""));
  }
  print_row(header, markdown);
  if (markdown) {
    print_row(std::vector<std::string>(header.size(), "---"), true);
  }
  std::string without_case, lacking;
  for (const OpDef* op : OpRegistry::get().all()) {
    Coverage& of = all[op->name()];
    bool lacks = false;
    std::vector<std::string> row = {op->name()};
    for (const auto& [mode, name] : kModes) {
      row.push_back(exempt(*op) ? "-" : cell(*op, of, mode, &lacks));
    }
    for (const Device* d : devices) row.push_back(support(*d, *op));
    print_row(row, markdown);
    if (exempt(*op)) continue;
    if (of.cases == 0) {
      without_case += " " + op->name();
    } else if (lacks) {
      lacking += " " + op->name();
    }
  }
  print_reasons(all);
  if (!without_case.empty()) {
    fmt::print("\nFAILED: ops without a case:{}\n", without_case);
  }
  if (!lacking.empty()) {
    fmt::print(
        "\nFAILED: differentiable ops without a gradient case (skip it "
        "with a reason if none is possible):{}\n",
        lacking);
  }
  return without_case.empty() && lacking.empty() ? 0 : 1;
}

}  // namespace berth::conformance
