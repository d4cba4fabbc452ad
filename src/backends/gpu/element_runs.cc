// For processors: an item loops over neighbours along the last axis, so that
// compilers vectorise it. The text fixes whether an input steps along that
// axis.

#include <fmt/format.h>

#include <mutex>
#include <unordered_map>

#include "backends/gpu/element_layout.h"
#include "base/immortal.h"

namespace berth::gpu::element {

namespace {

constexpr int64_t kRun = 256;       // RUN of elementwise.cl
constexpr uint32_t kRunItems = 16;  // RUN_ITEMS

// One bit per input that steps along the last axis; kDense: one axis, all do.
constexpr uint32_t kDense = ~0u;

std::string run_name(const ElementKernel& k, uint32_t along, bool wide) {
  if (along == kDense) return k.name + "_same";
  return fmt::format("{}_run{}{}", k.name, wide ? "_wide" : "", along);
}

std::string run_loop(const ElementKernel& k, const std::string& loads,
                     const std::string& stores) {
  return fmt::format(
      "  INDEPENDENT\n"
      "  for (i64 i = first; i < last; ++i) {{\n{}{}{}  }}\n}}\n",
      loads, k.body, stores);
}

std::string dense_text(const ElementKernel& k) {
  const Parts p = parts_of(k, "i");
  std::string loads;
  for (size_t x = 0; x < k.in.size(); ++x) loads += load_of(k, x, "i");
  return fmt::format(
             "KERNEL(RUN_ITEMS, {}_same)({}const i64 n{}) {{\n{}"
             "  const i64 first = ITEM * RUN;\n"
             "  const i64 last = first + RUN < n ? first + RUN : n;\n",
             k.name, p.params, k.params, p.pointers) +
         run_loop(k, loads, p.stores);
}

std::string run_text(const ElementKernel& k, uint32_t along, bool wide) {
  if (along == kDense) return dense_text(k);
  const size_t inputs = k.in.size();
  const Parts p = parts_of(k, "base + i");
  std::string still, loads;
  for (size_t x = 0; x < inputs; ++x) {
    if (along >> x & 1) {
      loads += load_of(k, x, fmt::format("(i64)at{} + i", x));
    } else {
      still += load_of(k, x, fmt::format("at{}", x));
    }
  }
  return fmt::format(
             "KERNEL(RUN_ITEMS, {})({}const i64 items, const i64 columns{}{}) "
             "{{\n{}  if (ITEM >= items) return;\n"
             "  const i64 runs = (columns + RUN - 1) / RUN;\n"
             "  const i64 row = ITEM / runs;\n"
             "  const i64 first = (ITEM - row * runs) * RUN;\n"
             "  const i64 last = first + RUN < columns ? first + RUN : "
             "columns;\n  const i64 base = row * columns;\n{}{}",
             run_name(k, along, wide), p.params, axes_params(inputs, wide),
             k.params, p.pointers, axes_places(inputs, wide, "row"), still) +
         run_loop(k, loads, p.stores);
}

// Covers every combination of up to three inputs along the last axis.
std::string made_text(const ElementSet& set) {
  std::string text;
  for (const ElementKernel& k : set.kernels()) {
    text += run_text(k, kDense, false);
    const size_t inputs = k.in.size();
    const uint32_t ways = inputs == 2 || inputs == 3 ? 1u << inputs : 0;
    for (uint32_t along = 1; along < ways; ++along) {
      text += run_text(k, along, false);
    }
  }
  return text;
}

struct Texts {
  std::mutex mutex;
  std::unordered_map<std::string, std::string> of;
};

std::string text_of_set(const ElementSet& set) {
  static auto& texts = immortal<Texts>();
  std::lock_guard lock(texts.mutex);
  std::string& text = texts.of[set.name];
  if (text.empty()) text = made_text(set);
  return text;
}

uint32_t along_of(const Layout& l) {
  uint32_t along = 0;
  for (int k = 0; k < l.inputs; ++k) {
    if (l.rank > 0 && l.step[k][l.rank - 1] != 0) along |= 1u << k;
  }
  return along;
}

}  // namespace

Plan plan_runs(const Layout& l, int64_t n, const ElementKernel& k,
               const ElementSet& set) {
  const uint32_t along = l.same ? kDense : along_of(l);
  const bool wide = !l.same && n >= kMost32;
  const bool in_set =
      !set.name.empty() && !wide &&
      (l.same || (along != 0 && (l.inputs == 2 || l.inputs == 3)));
  Plan plan;
  plan.text = in_set ? text_of_set(set) : run_text(k, along, wide);
  plan.name = run_name(k, along, wide);
  plan.group = kRunItems;
  if (l.same) {
    plan.items = (n + kRun - 1) / kRun;
    plan.args.push_back(value(n));
    return plan;
  }
  const int64_t columns = l.n[l.rank - 1];
  plan.items = columns == 0 ? 0 : n / columns * ((columns + kRun - 1) / kRun);
  plan.args.push_back(value(plan.items));
  plan.args.push_back(value(columns));
  add_axes(l, l.rank - 1, wide, plan.args);
  return plan;
}

}  // namespace berth::gpu::element
