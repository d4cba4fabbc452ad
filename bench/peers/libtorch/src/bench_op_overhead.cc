// Eager per-op overhead: time per op for tiny tensors, without and with
// autograd.
#include "common.h"

static void run(const anchor::Args& args, const char* shape_name,
                at::IntArrayRef shape) {
  auto a = torch::rand(shape), b = torch::rand(shape),
       out = torch::empty(shape);
  const int kChain = 100;
  auto name = [&](const char* op) {
    return std::string("op.") + op + "." + shape_name;
  };
  auto per_op = [&](const char* op, const std::function<void()>& f) {
    anchor::report(name(op).c_str(), args, anchor::measure(args, f),
                   1e9 / kChain, "ns");
  };
  per_op("add.inference_mode", [&] {
    c10::InferenceMode guard;
    for (int i = 0; i < kChain; ++i) torch::add(a, b);
  });
  per_op("add.no_grad", [&] {
    torch::NoGradGuard guard;
    for (int i = 0; i < kChain; ++i) torch::add(a, b);
  });
  per_op("add_out.no_grad", [&] {
    torch::NoGradGuard guard;
    for (int i = 0; i < kChain; ++i) torch::add_out(out, a, b);
  });
  per_op("relu.no_grad", [&] {
    torch::NoGradGuard guard;
    for (int i = 0; i < kChain; ++i) torch::relu(a);
  });
  auto w = a.clone().set_requires_grad(true);
  per_op("add.grad_forward_only", [&] {
    for (int i = 0; i < kChain; ++i) torch::add(w, b);
  });
  per_op("add.grad_chain_forward", [&] {
    auto h = w;
    for (int i = 0; i < kChain; ++i) h = torch::add(h, b);
  });
  auto seed = torch::ones(shape);
  per_op("add.grad_chain_forward_backward", [&] {
    auto h = w;
    for (int i = 0; i < kChain; ++i) h = torch::add(h, b);
    h.backward(seed);
    w.mutable_grad() = torch::Tensor();
  });
  per_op("mul.grad_chain_forward_backward", [&] {
    auto h = w;
    for (int i = 0; i < kChain; ++i) h = torch::mul(h, b);
    h.backward(seed);
    w.mutable_grad() = torch::Tensor();
  });
}

int main(int argc, char** argv) {
  auto args = anchor::parse(argc, argv);
  anchor::header();
  run(args, "1", {1});
  run(args, "4", {4});
  run(args, "64x128", {64, 128});
}
