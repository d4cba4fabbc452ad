// LSTM over a whole sequence, and its gradient.

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/recurrent.h"
#include "op/device_scope.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

namespace {

constexpr int8_t kWholeOperand = SplitSignature::kWhole;

int64_t times4(int64_t units) { return units < 0 ? kUnknownDim : 4 * units; }

// batch, time, units: what is known of them, from all inputs.
class LstmSizes {
 public:
  int64_t n = kUnknownDim, t = kUnknownDim, u = kUnknownDim;

  // Input `i` has these axes, `n`, `t`, `u`, and `g` of four gates.
  void add(const InferContext& c, int i, std::string_view axes) {
    const Shape& s = c.shape(i);
    bool fits = s.rank() == static_cast<int>(axes.size());
    for (int d = 0; fits && d < s.rank(); ++d) {
      const char axis = axes[static_cast<size_t>(d)];
      if (s[d] < 0) continue;
      const bool gates = axis == 'g';
      int64_t& size = axis == 'n' ? n : axis == 't' ? t : u;
      const int64_t have = gates ? s[d] / 4 : s[d];
      fits = (!gates || s[d] % 4 == 0) && (size < 0 || size == have);
      if (size < 0) size = have;
    }
    if (fits) return;
    std::string want;
    for (const char axis : axes) {
      const std::string name = axis == 'n'   ? known(n, "batch")
                               : axis == 't' ? known(t, "time")
                               : axis == 'u' ? known(u, "units")
                                             : known(times4(u), "4 units");
      want += (want.empty() ? "" : ", ") + name;
    }
    c.fail(fmt::format("{} is {}; expected [{}]", c.op().input(i).name, s.str(),
                       want));
  }

 private:
  static std::string known(int64_t size, const char* name) {
    return size < 0 ? name : std::to_string(size);
  }
};

void infer_lstm(InferContext& c) {
  LstmSizes s;
  s.add(c, 0, "ntg");
  s.add(c, 1, "ug");
  s.add(c, 2, "nu");
  s.add(c, 3, "nu");
  if (c.num_inputs() == 5) s.add(c, 4, "nt");
  c.set_output(0, c.dtype(0), {s.n, s.t, s.u});
  c.set_output(1, c.dtype(0), {s.n, s.u});
  c.set_output(2, c.dtype(0), {s.n, s.t, times4(s.u)});
  c.set_output(3, c.dtype(0), {s.n, s.t, s.u});
}

void infer_lstm_grad(InferContext& c) {
  LstmSizes s;
  s.add(c, 0, "ntu");
  s.add(c, 1, "nu");
  s.add(c, 2, "ug");
  s.add(c, 3, "nu");
  s.add(c, 4, "ntg");
  s.add(c, 5, "ntu");
  if (c.num_inputs() == 7) s.add(c, 6, "nt");
  c.set_output(0, c.dtype(0), {s.n, s.t, times4(s.u)});
  c.set_output(1, c.dtype(0), {s.n, s.u});
  c.set_output(2, c.dtype(0), {s.n, s.u});
}

// Examples are independent.
std::vector<SplitSignature> split_lstm(const InferContext& c) {
  SplitSignature rule;
  rule.inputs.assign(static_cast<size_t>(c.num_inputs()), 0);
  rule.inputs[c.op().name() == "LSTM" ? 1 : 2] = kWholeOperand;
  rule.outputs.assign(static_cast<size_t>(c.num_outputs()), 0);
  return {rule};
}

Cost cost_lstm(const InferContext& c) {
  const Shape& kernel = c.shape(c.op().name() == "LSTM" ? 1 : 2);
  const Shape& s = c.shape(0);
  const double steps = static_cast<double>(s[0]) * static_cast<double>(s[1]);
  const auto weights = static_cast<double>(kernel.num_elements());
  const auto units = static_cast<double>(kernel[0]);
  const auto size = static_cast<double>(size_of(c.dtype(0)));
  return {steps * (2 * weights + 40 * units),
          (weights + 10 * steps * units) * size};
}

// What each step began with: `first`, then the sequence without its last.
Tensor previous_states(const Tensor& first, const Tensor& sequence) {
  const auto all_but_last = [](const Tensor& x) {
    return strided_slice(x, {0, 0, 0}, {0, -1, 0},
                         {.begin_mask = 7, .end_mask = 5}, {});
  };
  const Tensor start = expand_dims(first, 1, {});
  const int64_t t = sequence.shape()[1];
  if (t == 0) return sequence;
  if (t == 1) return start;
  // There may be no step at all.
  if (t < 0) return all_but_last(concat({start, sequence}, 1, {}));
  return concat({start, all_but_last(sequence)}, 1, {});
}

// dparts of all steps come from one op; the kernel's gradient is one product.
Tensors grad_lstm(const GradCall& g) {
  const Tensor dy = g.dy(0), dc = g.dy(1);
  Tensors in{dy, dc, g.x(1), g.x(3), g.y(2), g.y(3)};
  if (g.num_inputs() == 5) in.push_back(g.x(4));
  const Tensors d = call_list(op_of<"LSTMGrad">(), in);
  Tensors all(static_cast<size_t>(g.num_inputs()));
  all[0] = d[0];
  all[2] = d[1];
  all[3] = d[2];
  if (g.needs(1)) {
    const int64_t u = g.x(1).shape()[0];
    const Tensor before = previous_states(g.x(2), g.y(0));
    const auto rows = [](const Tensor& x, int64_t width) {
      const int64_t n = x.shape()[0], t = x.shape()[1];
      return reshape(x, {n < 0 || t < 0 ? kUnknownDim : n * t, width}, {});
    };
    all[1] = matmul(rows(before, u), rows(d[0], times4(u)),
                    {.transpose_a = true}, {});
  }
  return all;
}

Tensors grad_lstm_grad(const GradCall&) {
  throw errors::Unimplemented(fmt::format(
      "LSTM has no second derivatives{}; expected one gradient: for a second, "
      "use keras::RNN(keras::LSTMCell(...))",
      where_text()));
}

Tensors steps_of(const Tensor& x, const char* op) {
  if (x.shape()[1] < 0) {
    throw errors::Unimplemented(fmt::format(
        "{}: the sequence is {}{}, and this device has no kernel for sequences "
        "of unknown length; give the time axis in Input()",
        op, x.shape().str(), where_text()));
  }
  if (x.shape()[1] == 0) return {};
  return unstack(x, 1, {});
}

// [batch, 1] per step; nothing without a mask.
Tensors mask_steps(std::span<const Tensor> in, size_t at, const char* op) {
  if (in.size() <= at) return {};
  return steps_of(expand_dims(in[at], -1, {}), op);
}

Tensor stacked(const Tensors& steps, const Tensor& like, int64_t width) {
  if (!steps.empty()) return stack(steps, 1, {});
  const int64_t n = like.shape()[0];
  return zeros({n < 0 ? 0 : n, 0, width}, like.dtype(), {});
}

Tensors decompose_lstm(std::span<const Tensor> in, const OpDef&, const Attrs*) {
  const Tensors xs = steps_of(in[0], "LSTM"), masks = mask_steps(in, 4, "LSTM");
  const int64_t u = in[1].shape()[0];
  Tensor h = in[2], c = in[3];
  Tensors outputs, gates, cells;
  for (size_t t = 0; t < xs.size(); ++t) {
    const Tensors z = split(xs[t] + matmul(h, in[1], {}, {}), 4, -1, {});
    const Tensor i = math::sigmoid(z[0], {}), f = math::sigmoid(z[1], {});
    const Tensor g = math::tanh(z[2], {}), o = math::sigmoid(z[3], {});
    Tensor next_c = f * c + i * g;
    Tensor next_h = o * math::tanh(next_c, {});
    if (!masks.empty()) {
      const Tensor on = masks[t] > 0.0;
      next_c = where(on, next_c, c, {});
      next_h = where(on, next_h, h, {});
    }
    c = next_c;
    h = next_h;
    outputs.push_back(h);
    cells.push_back(c);
    gates.push_back(concat({i, f, g, o}, -1, {}));
  }
  return {stacked(outputs, h, u), c, stacked(gates, h, 4 * u),
          stacked(cells, h, u)};
}

Tensors decompose_lstm_grad(std::span<const Tensor> in, const OpDef&,
                            const Attrs*) {
  const char* op = "LSTMGrad";
  const Tensors dys = steps_of(in[0], op), masks = mask_steps(in, 6, op);
  const Tensors gates = steps_of(in[4], op), cells = steps_of(in[5], op);
  const int64_t u = in[2].shape()[0];
  Tensor dc = in[1], dh = zeros_like(in[1], {});
  Tensors dparts(dys.size());
  for (size_t t = dys.size(); t-- > 0;) {
    const Tensors z = split(gates[t], 4, -1, {});
    const Tensor &i = z[0], &f = z[1], &g = z[2], &o = z[3];
    const Tensor& before = t == 0 ? in[3] : cells[t - 1];
    const Tensor all = dys[t] + dh, tc = math::tanh(cells[t], {});
    const Tensor inner = dc + all * o * (1.0 - tc * tc);
    Tensor dz =
        concat({inner * g * i * (1.0 - i), inner * before * f * (1.0 - f),
                inner * i * (1.0 - g * g), all * tc * o * (1.0 - o)},
               -1, {});
    Tensor next = inner * f;
    if (!masks.empty()) {
      const Tensor on = masks[t] > 0.0;
      dz = where(on, dz, zeros_like(dz, {}), {});
      next = where(on, next, dc, {});
    }
    dh = matmul(dz, in[2], {.transpose_b = true}, {});
    if (!masks.empty()) {
      dh = dh + where(masks[t] > 0.0, zeros_like(all, {}), all, {});
    }
    dc = next;
    dparts[t] = dz;
  }
  return {stacked(dparts, dc, 4 * u), dh, dc};
}

}  // namespace

namespace nn {

LstmResult lstm(const Tensor& parts, const Tensor& kernel, const Tensor& h,
                const Tensor& c, const Tensor& mask, Site site) {
  Tensors in{parts, kernel, h, c};
  if (mask.defined()) in.push_back(math::cast(mask, parts.dtype(), site));
  set_site(site);
  Tensors y = call_list(op_of<"LSTM">(), in);
  return {y[0], y[1]};
}

}  // namespace nn

void register_lstm_ops(OpRegistry& r) {
  r.op("LSTM")
      .input("parts", kRealFloats)
      .input("kernel", kRealFloats)
      .input("h", kRealFloats)
      .input("c", kRealFloats)
      .optional_input("mask", kRealFloats)
      .output("outputs")
      .output("last_cell")
      .output("gates")
      .output("cells")
      .infer(&infer_lstm)
      .split(&split_lstm)
      .cost(&cost_lstm)
      .gradient(&grad_lstm)
      .decompose(&decompose_lstm)
      .doc(
          "Steps of an LSTM from the inputs' parts [batch, time, 4 units] of "
          "the gates i, f, g, o; steps whose mask [batch, time] is 0 change "
          "nothing. gates and cells are for the gradient and pass none on.");
  r.op("LSTMGrad")
      .input("dy", kRealFloats)
      .input("dlast_cell", kRealFloats)
      .input("kernel", kRealFloats)
      .input("c", kRealFloats)
      .input("gates", kRealFloats)
      .input("cells", kRealFloats)
      .optional_input("mask", kRealFloats)
      .output("dparts")
      .output("dh")
      .output("dc")
      .infer(&infer_lstm_grad)
      .split(&split_lstm)
      .cost(&cost_lstm)
      .gradient(&grad_lstm_grad)
      .decompose(&decompose_lstm_grad)
      .doc("Gradients of LSTM by parts and the states before it.");
}

}  // namespace berth
