#include "backends/gpu/element_layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::gpu::element {

namespace {

// As in elementwise.cl.
template <class U>
struct Axes {
  U n[kMaxRank] = {};
  int64_t rank = 0;
};
template <class U>
struct Steps {
  U by[4][kMaxRank] = {};
};

template <class U>
void add_axes_of(const OperandLayout& l, int rank, std::vector<Arg>& args) {
  Axes<U> axes;
  axes.rank = rank;
  for (int d = 0; d < rank; ++d) axes.n[d] = static_cast<U>(l.n[d]);
  args.push_back(value(axes));
  for (int first = 0; first < l.inputs; first += 4) {
    Steps<U> steps;
    for (int k = first; k < std::min(first + 4, l.inputs); ++k) {
      for (int d = 0; d < rank; ++d) {
        steps.by[k - first][d] = static_cast<U>(l.step[k][d]);
      }
    }
    args.push_back(value(steps));
  }
}

}  // namespace

OperandLayout layout_of(const Recipe& r) {
  OperandLayout l;
  l.inputs = r.num_in();
  const Shape& out = r.out_shape(0);
  int64_t steps[kMostInputs][kMaxRank] = {};
  for (int k = 0; k < l.inputs; ++k) {
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
    for (int k = 0; joins && k < l.inputs; ++k) {
      joins = l.step[k][last] == steps[k][d] * out[d];
    }
    const int at = joins ? last : l.rank++;
    l.n[at] = joins ? l.n[at] * out[d] : out[d];
    for (int k = 0; k < l.inputs; ++k) l.step[k][at] = steps[k][d];
  }
  return l;
}

void add_axes(const OperandLayout& l, int rank, bool wide,
              std::vector<Arg>& args) {
  return wide ? add_axes_of<uint64_t>(l, rank, args)
              : add_axes_of<uint32_t>(l, rank, args);
}

std::string axes_params(size_t inputs, bool wide) {
  const int bits = wide ? 64 : 32;
  std::string text = fmt::format(", const Axes{} axes", bits);
  for (size_t s = 0; s * 4 < inputs; ++s) {
    text += fmt::format(", const Steps{} steps{}", bits, s);
  }
  return text;
}

std::string axes_places(size_t inputs, bool wide) {
  const char* u = wide ? "u64" : "u32";
  std::string text = fmt::format("  {0} rest = ({0})i;\n", u);
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

Parts parts_of(const ElementKernel& k) {
  Parts p;
  for (size_t x = 0; x < k.in.size(); ++x) {
    p.params += fmt::format("BUF(const {}, in{}), ", k.in[x], x);
    p.pointers += fmt::format("  AT(const {}, in{});\n", k.in[x], x);
  }
  for (size_t y = 0; y < k.out.size(); ++y) {
    p.params += fmt::format("BUF({}, out{}), ", k.out[y], y);
    p.pointers += fmt::format("  AT({}, out{});\n", k.out[y], y);
    p.stores += fmt::format("  {0}_STORE(out{1}, i, y{1});\n", k.out[y], y);
  }
  p.pointers += k.begin;
  return p;
}

std::string load_of(const ElementKernel& k, size_t x, std::string_view at) {
  return fmt::format("  const {} x{} = {}_LOAD(in{}, {});\n",
                     computed_in(k.in[x]), x, k.in[x], x, at);
}

}  // namespace berth::gpu::element
