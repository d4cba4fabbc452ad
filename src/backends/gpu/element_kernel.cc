#include "backends/gpu/element_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "base/immortal.h"

namespace berth::gpu {

namespace element {

constexpr int kMostInputs = 16;   // MOST_INPUTS of elementwise.cl
constexpr uint32_t kGroup = 256;  // FLAT_SIZE
// Elements that 32 bits count.
constexpr int64_t kMost32 = int64_t{1} << 31;

// As in elementwise.cl.
struct Rows {
  uint32_t columns = 1;
  uint32_t unused = 0;
  uint32_t row[kMostInputs] = {};
  uint32_t column[kMostInputs] = {};
};
template <class U, class Rank>
struct Axes {
  U n[kMaxRank] = {};
  Rank rank = 0;
};
using Axes32 = Axes<uint32_t, int64_t>;
using Axes64 = Axes<uint64_t, int64_t>;
template <class U>
struct Steps {
  U by[4][kMaxRank] = {};
};

enum class Form : uint8_t { kSame, kRows, kWalk, kWide };
constexpr const char* kFormNames[] = {"same", "rows", "walk", "wide"};

// The axes of the outputs, those joined along which every input goes on.
struct Layout {
  int rank = 0;
  int64_t n[kMaxRank] = {};
  int64_t step[kMostInputs][kMaxRank] = {};
  bool same = true;  // every input has the shape of the outputs
};

Layout layout_of(const Recipe& r) {
  Layout l;
  const Shape& out = r.out_shape(0);
  int64_t steps[kMostInputs][kMaxRank] = {};
  const int inputs = r.num_in();
  for (int k = 0; k < inputs; ++k) {
    const Shape& in = r.in_shape(k);
    const int shift = out.rank() - in.rank();
    int64_t step = 1;
    for (int d = in.rank() - 1; d >= 0; --d) {
      steps[k][d + shift] = in[d] == 1 ? 0 : step;
      step *= in[d];
    }
    l.same &= step == out.num_elements();
  }
  for (int d = 0; d < out.rank(); ++d) {
    if (out[d] == 1) continue;
    const int last = l.rank - 1;
    bool joins = l.rank > 0;
    for (int k = 0; joins && k < inputs; ++k) {
      joins = l.step[k][last] == steps[k][d] * out[d];
    }
    const int at = joins ? last : l.rank++;
    l.n[at] = joins ? l.n[at] * out[d] : out[d];
    for (int k = 0; k < inputs; ++k) l.step[k][at] = steps[k][d];
  }
  return l;
}

Form form_of(const Layout& l, int64_t n) {
  if (l.same) return Form::kSame;
  if (n >= kMost32) return Form::kWide;
  return l.rank <= 2 ? Form::kRows : Form::kWalk;
}

std::string places(const ElementKernel& k, Form form) {
  std::string text;
  const size_t inputs = k.in.size();
  if (form == Form::kRows) {
    text =
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
  const char* u = form == Form::kWide ? "u64" : "u32";
  text = fmt::format("  {0} rest = ({0})i;\n", u);
  for (size_t x = 0; x < inputs; ++x) {
    text += fmt::format("  {} at{} = 0;\n", u, x);
  }
  text += fmt::format(
      "  for (i32 d = (i32)axes.rank - 1; d >= 0; --d) {{\n"
      "    const {0} q = d > 0 ? rest / axes.n[d] : 0;\n"
      "    const {0} at = rest - q * axes.n[d];\n    rest = q;\n",
      u);
  for (size_t x = 0; x < inputs; ++x) {
    text +=
        fmt::format("    at{} += at * steps{}.by[{}][d];\n", x, x / 4, x % 4);
  }
  return text + "  }\n";
}

std::string form_params(const ElementKernel& k, Form form) {
  if (form == Form::kSame) return {};
  if (form == Form::kRows) return ", const Rows rows";
  const char* bits = form == Form::kWide ? "64" : "32";
  std::string text = fmt::format(", const Axes{} axes", bits);
  for (size_t s = 0; s * 4 < k.in.size(); ++s) {
    text += fmt::format(", const Steps{} steps{}", bits, s);
  }
  return text;
}

std::string text_of(const ElementKernel& k, Form form) {
  std::string params, pointers, loads, stores;
  for (size_t x = 0; x < k.in.size(); ++x) {
    const std::string& word = k.in[x];
    params += fmt::format("BUF(const {}, in{}), ", word, x);
    pointers += fmt::format("  AT(const {}, in{});\n", word, x);
    loads += fmt::format("  const {0} x{1} = {2}_LOAD(in{1}, {3});\n",
                         computed_in(word), x, word,
                         form == Form::kSame ? "i" : fmt::format("at{}", x));
  }
  for (size_t y = 0; y < k.out.size(); ++y) {
    const std::string& word = k.out[y];
    params += fmt::format("BUF({}, out{}), ", word, y);
    pointers += fmt::format("  AT({}, out{});\n", word, y);
    stores += fmt::format("  {0}_STORE(out{1}, i, y{1});\n", word, y);
  }
  return fmt::format(
      "KERNEL(FLAT_SIZE, {}_{})({}const i64 n{}{}) {{\n{}{}"
      "  const i64 i = ITEM;\n  if (i >= n) return;\n{}{}{}{}}}\n",
      k.name, kFormNames[static_cast<int>(form)], params, form_params(k, form),
      k.params, pointers, k.begin,
      form == Form::kSame ? std::string() : places(k, form), loads, k.body,
      stores);
}

// All forms but the rare one of all kernels.
std::string made_text(const ElementSet& set) {
  std::string text;
  for (const ElementKernel& k : set.kernels()) {
    for (const Form f : {Form::kSame, Form::kRows, Form::kWalk}) {
      text += text_of(k, f);
    }
  }
  return text;
}

struct Texts {
  std::mutex mutex;
  std::unordered_map<std::string, std::string> of;
};

std::string text_of(const ElementSet& set) {
  if (set.name.empty()) return made_text(set);
  static auto& texts = immortal<Texts>();
  std::lock_guard lock(texts.mutex);
  std::string& text = texts.of[set.name];
  if (text.empty()) text = made_text(set);
  return text;
}

template <class AxesT, class U>
void add_walk(const Layout& l, int inputs, std::vector<Arg>& args) {
  AxesT axes;
  axes.rank = l.rank;
  for (int d = 0; d < l.rank; ++d) axes.n[d] = static_cast<U>(l.n[d]);
  args.push_back(value(axes));
  for (int first = 0; first < inputs; first += 4) {
    Steps<U> steps;
    for (int k = first; k < std::min(first + 4, inputs); ++k) {
      for (int d = 0; d < l.rank; ++d) {
        steps.by[k - first][d] = static_cast<U>(l.step[k][d]);
      }
    }
    args.push_back(value(steps));
  }
}

void add_layout(const Layout& l, Form form, int inputs,
                std::vector<Arg>& args) {
  if (form == Form::kSame) return;
  if (form == Form::kWalk) return add_walk<Axes32, uint32_t>(l, inputs, args);
  if (form == Form::kWide) return add_walk<Axes64, uint64_t>(l, inputs, args);
  Rows rows;
  const int last = l.rank - 1;
  if (last >= 0) rows.columns = static_cast<uint32_t>(l.n[last]);
  for (int k = 0; k < inputs; ++k) {
    if (last >= 0) rows.column[k] = static_cast<uint32_t>(l.step[k][last]);
    if (last >= 1) rows.row[k] = static_cast<uint32_t>(l.step[k][0]);
  }
  args.push_back(value(rows));
}

}  // namespace element

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
                     const ElementKernel& kernel, const ElementSet& set,
                     const std::vector<Arg>& more) {
  const int64_t n = recipe.out_shape(0).num_elements();
  const int64_t groups = (n + element::kGroup - 1) / element::kGroup;
  const int inputs = recipe.num_in();
  if (groups > INT32_MAX || inputs > element::kMostInputs) return false;
  const element::Layout layout = element::layout_of(recipe);
  const element::Form form = element::form_of(layout, n);
  Source source;
  source.files = std::move(files);
  source.files.insert(source.files.begin(), "elementwise.cl");
  const bool together =
      recipe.features().is_cpu && form != element::Form::kWide;
  source.generated =
      together ? element::text_of(set) : element::text_of(kernel, form);
  std::vector<Arg> args;
  for (int k = 0; k < inputs; ++k) args.push_back(in(k));
  for (int k = 0; k < recipe.num_out(); ++k) args.push_back(out(k));
  args.push_back(value(n));
  element::add_layout(layout, form, inputs, args);
  args.insert(args.end(), more.begin(), more.end());
  const std::string name =
      kernel.name + "_" + element::kFormNames[static_cast<int>(form)];
  recipe.launch(source, name.c_str(),
                {{static_cast<uint32_t>(groups), 1, 1}, element::kGroup}, args);
  return true;
}

}  // namespace berth::gpu
