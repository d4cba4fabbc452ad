#include "backends/gpu/element_kernel.h"

#include <fmt/format.h>

#include "backends/gpu/element_layout.h"

namespace berth::gpu {

namespace {

// Returns the kernel under a name that no other kernel has.
ElementKernel with_own_name(ElementKernel k) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  const auto add = [&](const std::string& text) {
    for (const char c : text + '\n') {
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    }
  };
  for (const std::string& word : k.in) add(word);
  add(k.body);
  for (const std::string& word : k.out) add(word);
  add(k.params);
  add(k.begin);
  k.name += fmt::format("_{:016x}", hash);
  return k;
}

}  // namespace

std::string computed_in(std::string_view word) {
  if (word == "bf16" || word == "f16") return "f32";
  return word == "b8" ? "u8" : std::string(word);
}

std::string converted(const std::string& x, std::string_view from,
                      std::string_view to) {
  const auto is_complex = [](std::string_view w) { return w[0] == 'c'; };
  const std::string type = computed_in(from), wanted = computed_in(to);
  if (from == to) return x;
  if (is_complex(from) && is_complex(to)) {
    return fmt::format("{0}_make({1}({2}).re, {1}({2}).im)", to,
                       to == "c64" ? "(f32)" : "(f64)", x);
  }
  if (is_complex(from)) {
    return converted(fmt::format("({}).re", x), from == "c64" ? "f32" : "f64",
                     to);
  }
  if (is_complex(to)) {
    return fmt::format("{}_make({}({}), 0)", to,
                       to == "c64" ? "(f32)" : "(f64)", x);
  }
  if (to == "b8") return fmt::format("(u8)(({}) != 0)", x);
  if (type == wanted) return x;
  if (wanted[0] != 'f' && type[0] == 'f') {
    return fmt::format("{}_TO_{}({})", type, wanted, x);
  }
  return fmt::format("({})({})", wanted, x);
}

bool launch_elements(Recipe& recipe, std::vector<std::string> files,
                     const ElementKernel& kernel,
                     const std::vector<Arg>& more) {
  const int64_t n = recipe.out_shape(0).num_elements();
  if (recipe.num_in() > element::kMostInputs) return false;
  if (n == 0) return true;
  const element::OperandLayout layout = element::layout_of(recipe);
  element::ElementPlan plan =
      element::plan_items(layout, n, with_own_name(kernel));
  const int64_t groups = (plan.items + plan.group - 1) / plan.group;
  if (groups > INT32_MAX) return false;
  KernelSource source;
  source.files = std::move(files);
  source.files.insert(source.files.begin(), "elementwise.cl");
  source.generated = std::move(plan.text);
  source.joins = true;
  std::vector<Arg> args;
  for (int k = 0; k < recipe.num_in(); ++k) args.push_back(in(k));
  for (int k = 0; k < recipe.num_out(); ++k) args.push_back(out(k));
  args.insert(args.end(), plan.args.begin(), plan.args.end());
  args.insert(args.end(), more.begin(), more.end());
  recipe.launch(source, plan.name.c_str(),
                {{static_cast<uint32_t>(groups), 1, 1}, plan.group}, args);
  return true;
}

}  // namespace berth::gpu
