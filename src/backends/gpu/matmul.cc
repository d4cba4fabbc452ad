// MatMul and _FusedMatMul: by the card's library, else by own kernels.

#include "backends/gpu/kernels.h"
#include "backends/gpu/product.h"
#include "backends/gpu/rows.h"

namespace berth::gpu {

namespace matmul {

// `Problem` of kernels/product_matmul.cl.
struct Problem {
  ProductFields fields;
  int64_t a_row = 0, a_inner = 0, b_inner = 0;
  Strided batch_a, batch_b;
};

Shape batch_of(const Shape& s) {
  Shape batch = s;
  batch.erase(batch.rank() - 1);
  batch.erase(batch.rank() - 1);
  return batch;
}

// Returns the walk over `batches` of matrices of `size` elements.
Strided batch_walk(const Shape& of, const Shape& batches, int64_t size) {
  Strided s = broadcast(of, batches);
  for (int i = 0; i < s.rank; ++i) s.stride[i] *= size;
  return s;
}

Problem problem_of(const Recipe& r) {
  const bool ta = r.args().attr<bool>("transpose_a");
  const bool tb = r.args().attr<bool>("transpose_b");
  const Shape &a = r.in_shape(0), &b = r.in_shape(1), &o = r.out_shape(0);
  Problem p;
  ProductFields& f = p.fields;
  f.m = o[o.rank() - 2];
  f.n = o[o.rank() - 1];
  f.k = a[ta ? a.rank() - 2 : a.rank() - 1];
  const Shape batches = batch_of(o);
  f.batches = batches.num_elements();
  p.batch_a = batch_walk(batch_of(a), batches, f.m * f.k);
  p.batch_b = batch_walk(batch_of(b), batches, f.k * f.n);
  if (!ta && batch_of(b).num_elements() == 1 && batch_of(a) == batches) {
    f.m *= f.batches;  // as one product
    f.batches = 1;
    p.batch_a = p.batch_b = {};
  }
  f.c_row = f.n;
  f.c_batch = f.m * f.n;
  f.rows_fast = ta;
  p.a_row = ta ? 1 : f.k;
  p.a_inner = ta ? f.m : 1;
  p.b_inner = tb ? 1 : f.n;
  f.b_col = tb ? f.k : 1;
  return p;
}

// All leading dimensions belong to the inner one: [..., k, m] and [..., k, n].
Problem flat_problem_of(const Recipe& r) {
  const Shape &a = r.in_shape(0), &b = r.in_shape(1);
  Problem p;
  ProductFields& f = p.fields;
  f.m = a[a.rank() - 1];
  f.n = b[b.rank() - 1];
  f.k = f.m == 0 ? 0 : a.num_elements() / f.m;
  f.c_row = f.n;
  f.c_batch = f.m * f.n;
  f.rows_fast = 1;
  p.a_row = 1;
  p.a_inner = f.m;
  p.b_inner = f.n;
  f.b_col = 1;
  return p;
}

// Returns whether a library may compute it.
bool has_product(const Problem& p) {
  const ProductFields& f = p.fields;
  return f.batches * f.m * f.n * f.k > 0 && p.batch_a.rank <= 1 &&
         p.batch_b.rank <= 1;
}

MatrixProduct product_of(const Recipe& r, const Problem& p) {
  const ProductFields& f = p.fields;
  MatrixProduct product;
  product.dtype = r.out_type(0);
  product.m = f.m;
  product.n = f.n;
  product.k = f.k;
  product.transpose_a = f.rows_fast != 0;
  product.transpose_b = r.args().attr<bool>("transpose_b");
  product.batches = f.batches;
  product.stride_a = p.batch_a.rank == 1 ? p.batch_a.stride[0] : 0;
  product.stride_b = p.batch_b.rank == 1 ? p.batch_b.stride[0] : 0;
  product.stride_c = f.m * f.n;
  return product;
}

ProductCall call_of(const Recipe& r, const Problem& p) {
  ProductCall call{p.fields, value(p), "product_matmul.cl"};
  call.dtype = r.out_type(0);
  call.a = in(0);
  call.b = in(1);
  call.c = out(0);
  return call;
}

// Uses the card's library if it can, else own kernels.
void append_plain(Recipe& r, const Problem& p) {
  const auto own = [&] { append_product(r, call_of(r, p)); };
  const bool done = has_product(p) &&
                    r.product(product_of(r, p), {in(0), in(1), out(0)}, own);
  if (!done) own();
}

bool matmul(Recipe& r) {
  append_plain(r, problem_of(r));
  return true;
}

// The parts of _FusedMatMul besides its product.
struct Fused {
  ProductEnd end;
  bool sums_b = false;
  Arg sums;
};

Fused fused_of(const Recipe& r) {
  const std::string& name = r.args().attr<std::string>("activation");
  Fused f;
  f.end.has_bias = r.args().attr<bool>("bias");
  f.end.keeps = r.args().attr<bool>("keep");
  f.end.activation = name == "relu"        ? ProductActivation::kRelu
                     : name == "gelu"      ? ProductActivation::kGeluTanh
                     : name == "gelu_grad" ? ProductActivation::kGeluTanhSlope
                                           : ProductActivation::kNone;
  if (f.end.has_bias) f.end.bias = in(2);
  if (f.end.keeps) f.end.aux = out(1);
  if (f.end.activation == ProductActivation::kGeluTanhSlope) f.end.aux = in(2);
  f.sums_b = r.args().attr<bool>("bias_grad");
  f.sums = out(f.end.keeps ? 2 : 1);
  return f;
}

// Sums over all axes of b but the last.
void append_sums(Recipe& r, const Fused& fused) {
  if (!fused.sums_b) return;
  bool reduced[kMaxRank] = {};
  for (int d = 0; d + 1 < r.in_shape(1).rank(); ++d) reduced[d] = true;
  reduce_axes(r, "sum", reduced, 1, 1, fused.sums.index);
}

bool fused_matmul(Recipe& r) {
  const Problem p =
      r.args().attr<bool>("flat") ? flat_problem_of(r) : problem_of(r);
  const ProductFields& f = p.fields;
  // The op's decomposition handles empty operands.
  if (f.batches * f.m * f.n * f.k == 0) return false;
  const Fused fused = fused_of(r);
  ProductCall call = call_of(r, p);
  call.end = fused.end;
  MatrixProduct product = product_of(r, p);
  product.bias = fused.end.has_bias;
  product.activation = fused.end.activation;
  product.keeps = fused.end.keeps;
  product.sums_b = fused.sums_b;
  const auto own = [&] {
    append_product(r, call);
    append_sums(r, fused);
  };
  if (!has_product(p)) {
    own();
    return true;
  }
  const Recipe::Operands all = {in(0),          in(1),         out(0),
                                fused.end.bias, fused.end.aux, fused.sums};
  if (r.product(product, all, own)) return true;
  // The library computes the product alone, or nothing.
  const auto alone = [&] { append_product(r, call_of(r, p)); };
  if (r.product(product_of(r, p), {in(0), in(1), out(0)}, alone)) {
    append_product_end(r, call);
    append_sums(r, fused);
  } else {
    own();
  }
  return true;
}

}  // namespace matmul

void add_matmul(Kernels& k) {
  k.add("MatMul", kEveryNumber, &matmul::matmul);
  if (k.features().fuses_products) {
    k.add("_FusedMatMul", kRealFloats, &matmul::fused_matmul);
  }
}

}  // namespace berth::gpu
