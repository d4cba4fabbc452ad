// Elementwise and fusion headroom: libtorch against hand-fused single-pass
// loops against copy bandwidth, all in one process so the ratios come from one
// run. "bytes" is the minimum traffic of the fused form, so GB/s are
// comparable.
#include "common.h"
#include "fused_loops.h"

static void report(const char* name, const anchor::Args& a, anchor::Result r,
                   double bytes) {
  anchor::report(name, a, r, 1e6, "us");
  std::printf("%s.bandwidth\t%d\t%.4g\t%.4g\tGB/s\n", name, a.threads,
              bytes / r.best / 1e9, bytes / r.median / 1e9);
  std::fflush(stdout);
}

static void bias_relu(const anchor::Args& a, int64_t rows, int64_t cols) {
  torch::NoGradGuard no_grad;
  auto x = torch::randn({rows, cols}), b = torch::randn({cols}),
       y = torch::empty({rows, cols});
  const double bytes = 8.0 * rows * cols;
  const std::string s = std::to_string(rows) + "x" + std::to_string(cols);
  report(("bias_relu." + s + ".torch").c_str(), a,
         anchor::measure(a, [&] { torch::relu(x + b); }), bytes);
  report(("bias_relu." + s + ".torch_inplace").c_str(), a,
         anchor::measure(a,
                         [&] {
                           torch::add_out(y, x, b);
                           y.relu_();
                         }),
         bytes);
  report(("bias_relu." + s + ".fused").c_str(), a,
         anchor::measure(a,
                         [&] {
                           fused::bias_relu(
                               y.data_ptr<float>(), x.data_ptr<float>(),
                               b.data_ptr<float>(), rows, cols, a.threads);
                         }),
         bytes);
  if (!torch::allclose(y, torch::relu(x + b))) std::puts("MISMATCH bias_relu");
}

static void softmax_xent(const anchor::Args& a, int64_t rows, int64_t cols) {
  auto x = torch::randn({rows, cols}).set_requires_grad(true);
  auto y = torch::randint(0, cols, {rows}, torch::kLong);
  const double bytes =
      8.0 * rows * cols;  // read logits once, write dlogits once
  const std::string s = std::to_string(rows) + "x" + std::to_string(cols);
  report(
      ("softmax_xent_fwd_bwd." + s + ".torch").c_str(), a,
      anchor::measure(a,
                      [&] {
                        x.mutable_grad() = torch::Tensor();
                        torch::nn::functional::cross_entropy(x, y).backward();
                      }),
      bytes);
  auto d = torch::empty({rows, cols});
  report(("softmax_xent_fwd_bwd." + s + ".fused").c_str(), a,
         anchor::measure(a,
                         [&] {
                           fused::softmax_xent(
                               d.data_ptr<float>(), x.data_ptr<float>(),
                               y.data_ptr<int64_t>(), rows, cols, a.threads);
                         }),
         bytes);
  if (!torch::allclose(d, x.grad(), 1e-3, 1e-7))
    std::puts("MISMATCH softmax_xent");
}

static void adam(const anchor::Args& a, int64_t n, int64_t tensors) {
  const double bytes = 28.0 * n;  // read p g m v, write p m v
  std::vector<torch::Tensor> params;
  for (int64_t i = 0; i < tensors; ++i) {
    auto p = torch::randn({n / tensors}).set_requires_grad(true);
    p.mutable_grad() = torch::randn({n / tensors});
    params.push_back(p);
  }
  torch::optim::Adam opt(params, torch::optim::AdamOptions(1e-3));
  const std::string s = std::to_string(n) + "_in_" + std::to_string(tensors);
  report(("adam." + s + ".torch").c_str(), a,
         anchor::measure(a, [&] { opt.step(); }), bytes);
  std::vector<torch::Tensor> m, v;
  for (auto& p : params) {
    m.push_back(torch::zeros_like(p).detach());
    v.push_back(torch::zeros_like(p).detach());
  }
  int64_t t = 0;
  report(("adam." + s + ".fused").c_str(), a,
         anchor::measure(a,
                         [&] {
                           ++t;
                           for (size_t i = 0; i < params.size(); ++i)
                             fused::adam(params[i].data_ptr<float>(),
                                         params[i].grad().data_ptr<float>(),
                                         m[i].data_ptr<float>(),
                                         v[i].data_ptr<float>(),
                                         params[i].numel(), 1e-3f, 0.9f, 0.999f,
                                         1e-8f, t, a.threads);
                         }),
         bytes);
}

static void copy(const anchor::Args& a, int64_t n) {
  auto x = torch::randn({n}), y = torch::empty({n});
  const double bytes = 8.0 * n;
  report("copy.torch", a, anchor::measure(a, [&] { y.copy_(x); }), bytes);
  report("copy.plain_stores", a,
         anchor::measure(a,
                         [&] {
                           fused::copy(y.data_ptr<float>(), x.data_ptr<float>(),
                                       n, a.threads);
                         }),
         bytes);
  report("copy.nontemporal_stores", a,
         anchor::measure(a,
                         [&] {
                           fused::copy_nt(y.data_ptr<float>(),
                                          x.data_ptr<float>(), n, a.threads);
                         }),
         bytes);
}

int main(int argc, char** argv) {
  auto args = anchor::parse(argc, argv);
  anchor::header();
  copy(args, 32 << 20);
  bias_relu(args, 64, 128);
  bias_relu(args, 8192, 4096);
  softmax_xent(args, 64, 10);
  softmax_xent(args, 8192, 4096);
  adam(args, 101770, 4);
  adam(args, 10000000, 1);
  adam(args, 10000000, 100);
}
