// EinsumDense: a product along named axes.

#include "berth/keras/core_layers.h"
#include "berth/ops/contract.h"
#include "berth/ops/math.h"
#include "keras/layers/shared_fields.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

// The parts of "ab...,bc->ac...": letters without the dots.
struct Equation {
  std::string input, kernel, output;
  bool dots_in_front = false, dots_behind = false;
};

class EinsumDenseBase final : public LayerBase {
 public:
  EinsumDenseBase(std::string equation, const Shape& output,
                  EinsumDenseOptions o, Site site)
      : LayerBase("EinsumDense", o.name, site),
        equation_(std::move(equation)),
        output_(output),
        o_(std::move(o)) {
    check_activation(state(), o_.activation);
    set_activity_regularizer(o_.activity_regularizer);
    parse();
  }

  void build(const std::vector<Shape>& inputs) override {
    const Shape& x = inputs[0];
    const Shape all = whole_output(x);
    Shape kernel;
    for (char c : e_.kernel) {
      const int64_t n = length_of(c, x, all);
      if (n < 0) {
        fail_in(state(),
                "EinsumDense: \"{}\" of an input {}: axis '{}' is "
                "unknown; expected it in the input or output_shape",
                equation_, x.str(), c);
      }
      kernel.push_back(n);
    }
    kernel_ = add_weight("kernel", kernel, o_.kernel_initializer,
                         {.regularizer = o_.kernel_regularizer,
                          .constraint = o_.kernel_constraint});
    if (!o_.bias_axes.empty()) make_bias(x, all);
  }

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = one_input(state(), inputs);
    Tensor y = einsum(equation_, {x, kernel_.value(site())}, site());
    if (bias_.defined()) y = math::add(y, bias_.value(site()), site());
    return {apply_activation(o_.activation, y, site())};
  }

 private:
  void parse() {
    std::string s;
    for (char c : equation_) {
      if (c != ' ') s += c;
    }
    equation_ = s;
    const size_t comma = s.find(','), arrow = s.find("->");
    if (comma == std::string::npos || arrow == std::string::npos ||
        arrow < comma || s.find(',', comma + 1) != std::string::npos) {
      fail_equation("expected one comma and one \"->\" behind it");
    }
    e_.input = letters(s.substr(0, comma), true);
    e_.kernel = letters(s.substr(comma + 1, arrow - comma - 1), false);
    e_.output = letters(s.substr(arrow + 2), false);
    for (char c : o_.bias_axes) {
      if (e_.output.find(c) != std::string::npos) continue;
      fail_in(state(),
              "EinsumDense: bias_axes is \"{}\"; expected letters of "
              "the result \"{}\"",
              o_.bias_axes, e_.output);
    }
  }
  std::string letters(const std::string& term, bool input) {
    const size_t dots = term.find("...");
    if (dots == std::string::npos) return term;
    if (input) {
      e_.dots_in_front = dots == 0;
      e_.dots_behind = dots != 0;
      if (dots != 0 && dots + 3 != term.size()) {
        fail_equation("expected \"...\" at one end");
      }
    }
    return term.substr(0, dots) + term.substr(dots + 3);
  }
  [[noreturn]] void fail_equation(const char* expected) const {
    fail_in(state(), "EinsumDense: the equation is \"{}\"; {}", equation_,
            expected);
  }

  // The result's axes that have letters, the first included.
  Shape whole_output(const Shape& x) const {
    Shape all = output_;
    const int letters = static_cast<int>(e_.output.size());
    if (e_.dots_in_front || e_.dots_behind) {
      // Axes of "..." stand at their end; only those with letters matter.
      while (all.rank() > letters)
        all.erase(e_.dots_behind ? all.rank() - 1 : 0);
    }
    if (all.rank() == letters - 1) all.insert(0, kUnknownDim);
    if (all.rank() != letters) {
      fail_in(state(),
              "EinsumDense: output_shape is {}, the equation \"{}\", "
              "the input {}; expected a length for each letter of the "
              "result but the first",
              output_.str(), equation_, x.str());
    }
    return all;
  }

  int64_t length_of(char c, const Shape& x, const Shape& all) const {
    const size_t at = e_.input.find(c);
    if (at != std::string::npos) {
      const int extra = x.rank() - static_cast<int>(e_.input.size());
      const int i = static_cast<int>(at) + (e_.dots_in_front ? extra : 0);
      if (i < 0 || i >= x.rank() || extra < 0) {
        fail_in(state(),
                "EinsumDense: the input is {}; expected axes as in \"{}\"",
                x.str(), equation_);
      }
      return x[i];
    }
    const size_t out = e_.output.find(c);
    return out == std::string::npos ? kUnknownDim : all[static_cast<int>(out)];
  }

  // Axes that the bias lacks have length 1, from the first that it has.
  void make_bias(const Shape& x, const Shape& all) {
    Shape shape;
    for (char c : e_.output) {
      if (o_.bias_axes.find(c) != std::string::npos) {
        const int64_t n = length_of(c, x, all);
        const size_t out = e_.output.find(c);
        shape.push_back(n >= 0 ? n : all[static_cast<int>(out)]);
      } else if (shape.rank() > 0) {
        shape.push_back(1);
      }
    }
    if (e_.dots_behind) {
      for (int i = static_cast<int>(e_.input.size()); i < x.rank(); ++i) {
        shape.push_back(1);
      }
    }
    bias_ = add_weight(
        "bias", shape, o_.bias_initializer,
        {.regularizer = o_.bias_regularizer, .constraint = o_.bias_constraint});
  }

  std::string equation_;
  const Shape output_;
  const EinsumDenseOptions o_;
  Equation e_;
  Variable kernel_, bias_;
};

void einsum_dense_fields(Fields& f, std::string& equation, Shape& output_shape,
                         EinsumDenseOptions& o) {
  f.must("equation", equation);
  f.must("output_shape", output_shape);
  f.activation("activation", o.activation);
  if (f.reading() || !o.bias_axes.empty()) f("bias_axes", o.bias_axes);
  f("kernel_initializer", o.kernel_initializer);
  f("bias_initializer", o.bias_initializer);
  kernel_penalty_fields(f, o);
}

}  // namespace

EinsumDense::EinsumDense(std::string equation, Shape output_shape,
                         EinsumDenseOptions o, Site site)
    : Layer(described<EinsumDenseBase, einsum_dense_fields>(
          site, std::move(equation), output_shape, std::move(o))) {}

void add_einsum_dense_classes(Classes& c) {
  c.layers["EinsumDense"] = &layer_of<EinsumDense, einsum_dense_fields>;
}

}  // namespace berth::keras
