// One element per item: neighbouring items process neighbouring elements.

#include <fmt/format.h>

#include "backends/gpu/element_layout.h"

namespace berth::gpu::element {

namespace {

// Inputs are dense, or in rows and columns, or along any axes; kWide: along any
// axes, with more elements than 32 bits count.
enum class Form : uint8_t { kSame, kRows, kWalk, kWide };
constexpr const char* kFormNames[] = {"same", "rows", "walk", "wide"};

// As in elementwise.cl.
struct Rows {
  uint32_t columns = 1;
  uint32_t unused = 0;
  uint32_t row[kMostInputs] = {};
  uint32_t column[kMostInputs] = {};
};

Form form_of(const OperandLayout& l, int64_t n) {
  if (l.same) return Form::kSame;
  if (n >= kMost32) return Form::kWide;
  return l.rank <= 2 ? Form::kRows : Form::kWalk;
}

std::string items_params(size_t inputs, Form form) {
  if (form == Form::kSame) return {};
  if (form == Form::kRows) return ", const Rows rows";
  return axes_params(inputs, form == Form::kWide);
}

std::string items_places(size_t inputs, Form form) {
  if (form == Form::kSame) return {};
  if (form != Form::kRows) return axes_places(inputs, form == Form::kWide);
  std::string text =
      "  const u32 row = (u32)i / rows.columns;\n"
      "  const u32 column = (u32)i - row * rows.columns;\n";
  for (size_t x = 0; x < inputs; ++x) {
    text += fmt::format(
        "  const u32 at{0} = row * rows.row[{0}] + column * "
        "rows.column[{0}];\n",
        x);
  }
  return text;
}

std::string items_text(const ElementKernel& k, Form form) {
  const Parts p = parts_of(k);
  std::string loads;
  for (size_t x = 0; x < k.in.size(); ++x) {
    loads += load_of(k, x, form == Form::kSame ? "i" : fmt::format("at{}", x));
  }
  return fmt::format(
      "KERNEL(FLAT_SIZE, {}_{})({}const i64 n{}{}) {{\n{}"
      "  const i64 i = ITEM;\n  if (i >= n) return;\n{}{}{}{}}}\n",
      k.name, kFormNames[static_cast<int>(form)], p.params,
      items_params(k.in.size(), form), k.params, p.pointers,
      items_places(k.in.size(), form), loads, k.body, p.stores);
}

Arg rows_of(const OperandLayout& l) {
  Rows rows;
  const int last = l.rank - 1;
  if (last >= 0) rows.columns = static_cast<uint32_t>(l.n[last]);
  for (int k = 0; k < l.inputs; ++k) {
    if (last >= 0) rows.column[k] = static_cast<uint32_t>(l.step[k][last]);
    if (last >= 1) rows.row[k] = static_cast<uint32_t>(l.step[k][0]);
  }
  return value(rows);
}

}  // namespace

ElementPlan plan_items(const OperandLayout& l, int64_t n,
                       const ElementKernel& k) {
  const Form form = form_of(l, n);
  ElementPlan plan;
  plan.text = items_text(k, form);
  plan.name = k.name + "_" + kFormNames[static_cast<int>(form)];
  plan.items = n;
  plan.group = 256;  // FLAT_SIZE
  plan.args.push_back(value(n));
  if (form == Form::kRows) plan.args.push_back(rows_of(l));
  if (form == Form::kWalk || form == Form::kWide) {
    add_axes(l, l.rank, form == Form::kWide, plan.args);
  }
  return plan;
}

}  // namespace berth::gpu::element
