// Rows of ops that make, move and join arrays, of random ops and of products.

#include "bench/ops/rows.h"

namespace berth_bench {

using namespace berth;

namespace {

void add_moves(Rows& rows) {
  add(rows, "Transpose", "transpose", kAll, 1, {{"perm", Ints{1, 0}}});
  add(rows, "Transpose", "transpose_0213", kFloats, [](DType d, int64_t side) {
    return Call{{values(d, image(side))}, {{"perm", Ints{0, 2, 1, 3}}}};
  });
  for (const int64_t axis : {0, 1}) {
    const std::string at = "_" + std::to_string(axis);
    add(rows, "ReverseV2", "reverse" + at, kAll, 1, {{"axis", Ints{axis}}});
    add(rows, "Roll", "roll" + at, kAll, 1,
        {{"shift", Ints{7}}, {"axis", Ints{axis}}});
    add(rows, "Tile", "tile" + at, kAll, 1,
        {{"multiples", axis ? Ints{1, 2} : Ints{2, 1}}});
    add(rows, "ConcatV2", "concat" + at, kAll, 2, {{"axis", axis}});
    add(rows, "Pack", "stack" + at, kAll, 2, {{"axis", axis}});
    add(rows, "Split", "split" + at, kAll, 1,
        {{"num_split", int64_t{2}}, {"axis", axis}});
    add(rows, "SplitV", "split_sizes" + at, kAll,
        [axis](DType d, int64_t side) {
          return Call{{values(d, {side, side})},
                      {{"size_splits", Ints{8, side - 8}}, {"axis", axis}}};
        });
    add(rows, "Unpack", "unstack" + at, kAll, [axis](DType d, int64_t side) {
      const Shape shape =
          axis ? Shape{side * side / 4, 4} : Shape{4, side * side / 4};
      return Call{{values(d, shape)}, {{"axis", axis}, {"num", int64_t{4}}}};
    });
    add(rows, "ConcatGrad", "concat_grad" + at, kNumbers,
        [axis](DType d, int64_t side) {
          const Shape half =
              axis ? Shape{side, side / 2} : Shape{side / 2, side};
          const Tensor part = values(d, half);
          return Call{{values(d, {side, side}), part, part},
                      {{"axis", axis}, {"index", int64_t{1}}}};
        });
  }
  add(rows, "DeepCopy", "copy", kAll);
  add(rows, "Pad", "pad", kAll, 1, {{"paddings", Ints{1, 1, 2, 2}}});
  add(rows, "PadV2", "pad_value", kNumbers, 1,
      {{"paddings", Ints{1, 1, 2, 2}}, {"constant_values", 1.0}});
  const Pairs mirror = {{"paddings", Ints{3, 3, 3, 3}},
                        {"mode", std::string("REFLECT")}};
  add(rows, "MirrorPad", "mirror_pad", kNumbers, 1, mirror);
  add(rows, "MirrorPadGrad", "mirror_pad_grad", kFloats, 1, mirror);
  add(rows, "TileGrad", "tile_grad", kNumbers, [](DType d, int64_t side) {
    return Call{{values(d, {side, side})},
                {{"multiples", Ints{2, 1}}, {"shape", Shape{side / 2, side}}}};
  });
  add(rows, "TileGradLike", "tile_grad_like", kFloats,
      [](DType d, int64_t side) {
        return Call{{values(d, {side, side}), zeros({side / 2, side})},
                    {{"multiples", Ints{2, 1}}}};
      });
}

void add_slices(Rows& rows) {
  add(rows, "Slice", "slice", kAll, [](DType d, int64_t side) {
    return Call{{values(d, {side, side})},
                {{"begin", Ints{1, 2}}, {"size", Ints{side - 2, side - 4}}}};
  });
  const auto strided = [](int64_t side) {
    return Pairs{{"begin", Ints{0, 1}},
                 {"end", Ints{side, side}},
                 {"strides", Ints{2, 2}}};
  };
  const auto part = [](int64_t side) { return Shape{side / 2, side / 2}; };
  add(rows, "StridedSlice", "strided_slice", kAll, [=](DType d, int64_t side) {
    return Call{{values(d, {side, side})}, strided(side)};
  });
  add(rows, "StridedSliceGrad", "strided_slice_grad", kNumbers,
      [=](DType d, int64_t side) {
        Pairs attrs = strided(side);
        attrs.push_back({"shape", Shape{side, side}});
        return Call{{values(d, part(side))}, attrs};
      });
  add(rows, "StridedSliceGradLike", "strided_slice_grad_like", kFloats,
      [=](DType d, int64_t side) {
        return Call{{values(d, part(side)), zeros({side, side})},
                    strided(side)};
      });
  add(rows, "TensorStridedSliceUpdate", "strided_slice_update", kNumbers,
      [=](DType d, int64_t side) {
        return Call{{values(d, {side, side}), values(d, part(side))},
                    strided(side)};
      });
}

void add_broadcasts(Rows& rows) {
  for (const int64_t axis : {0, 1}) {
    const std::string at = "_" + std::to_string(axis);
    const auto thin = [axis](int64_t side) {
      return axis ? Shape{side, 1} : Shape{1, side};
    };
    add(rows, "BroadcastTo", "broadcast" + at, kAll,
        [thin](DType d, int64_t side) {
          return Call{{values(d, thin(side))}, {{"shape", Shape{side, side}}}};
        });
    add(rows, "BroadcastLike", "broadcast_like" + at, kFloats,
        [thin](DType d, int64_t side) {
          return Call{{values(d, thin(side)), zeros({side, side})}};
        });
    add(rows, "SumLike", "sum_like" + at, kNumbers,
        [thin](DType d, int64_t side) {
          return Call{{values(d, {side, side}), zeros(thin(side), d)}};
        });
  }
  add(rows, "BiasAdd", "bias_add", kNumbers, [](DType d, int64_t side) {
    return Call{{values(d, {side, side}), values(d, {side})}};
  });
  add(rows, "BiasAddGrad", "bias_add_grad", kNumbers);
}

void add_makers(Rows& rows) {
  for (const DType d : kAll) {
    const auto shaped = [d](Pairs more) {
      return [d, more](DType, int64_t side) {
        Call call{{}, more};
        call.attrs.push_back({"shape", Shape{side, side}});
        call.attrs.push_back({"dtype", d});
        return call;
      };
    };
    add(rows, "Fill", "fill", {d}, shaped({{"value", 1.0}}));
    if (d == float32) {
      add(rows, "RandomUniform", "random_uniform", {d}, shaped({}));
      add(rows, "RandomStandardNormal", "random_normal", {d}, shaped({}));
      add(rows, "TruncatedNormal", "random_truncated", {d}, shaped({}));
    } else if (d != bool_) {
      add(rows, "RandomUniformInt", "random_int", {d},
          shaped({{"maxval", int64_t{1000}}}));
    }
    if (d == bool_) continue;
    add(rows, "Range", "range", {d}, [d](DType, int64_t side) {
      return Call{{}, {{"limit", side * side}, {"dtype", d}}};
    });
  }
  add(rows, "FloatRange", "float_range", kFloats, [](DType, int64_t side) {
    return Call{
        {}, {{"limit", static_cast<double>(side * side) / 2}, {"delta", 0.5}}};
  });
  add(rows, "LinSpace", "linspace", kFloats, [](DType, int64_t side) {
    return Call{{}, {{"start", 0.0}, {"stop", 1.0}, {"num", side * side}}};
  });
  add(rows, "ZerosLike", "zeros_like", kAll);
  add(rows, "OnesLike", "ones_like", kAll);
  add(rows, "Dropout", "dropout", kFloats, 1, {{"rate", 0.5}});
  add(rows, "DropoutGrad", "dropout_grad", kFloats, [](DType d, int64_t side) {
    return Call{{values(d, {side, side}),
                 math::cast(values(bool_, {side, side}), uint8)},
                {{"rate", 0.5}}};
  });
  add(rows, "Multinomial", "categorical", kFloats, 1,
      {{"num_samples", int64_t{1}}});
  add(rows, "OneHot", "one_hot", kInts, [](DType d, int64_t side) {
    return Call{{places(d, {side}, side)}, {{"depth", side}}};
  });
}

Tensor definite(int64_t n) {
  const Tensor a = values(float32, {n, n}, -0.5, 0.5);
  return matmul(a, a, {.transpose_b = true}) + eye(n) * static_cast<double>(n);
}

void add_products(Rows& rows) {
  add(rows, "MatMul", "matmul", kNumbers, 2);
  add(rows, "MatMul", "matmul_tn", kFloats, 2, {{"transpose_a", true}});
  add(rows, "MatMul", "matmul_nt", kFloats, 2, {{"transpose_b", true}});
  add(rows, "MatMul", "matmul_batched", kFloats, [](DType d, int64_t side) {
    const Shape s{std::max<int64_t>(side * side / 4096, 1), 64, 64};
    return Call{{values(d, s), values(d, s)}};
  });
  add(rows, "MatMul", "einsum", kFloats, [](DType d, int64_t side) {
    const int64_t n = std::max<int64_t>(side / 32, 1);
    return Call{{values(d, {n, side, 32}), values(d, {n, 32, 32})},
                {},
                {},
                [](const Tensors& t) { return einsum("nij,njk->nik", t); }};
  });
  const auto square = [](DType, int64_t side) {
    return Call{{definite(side)}};
  };
  add(rows, "Cholesky", "cholesky", kFloats, square);
  add(rows, "MatrixInverse", "inverse", kFloats, square);
  add(rows, "MatrixDeterminant", "determinant", kFloats, square);
  add(rows, "LogMatrixDeterminant", "log_determinant", kFloats, square);
  add(rows, "Lu", "lu", kFloats, square);
  add(rows, "Qr", "qr", kFloats, square);
  add(rows, "Svd", "svd", kFloats, square);
  add(rows, "SelfAdjointEigV2", "eigh", kFloats, square);
  add(rows, "Eig", "eig", kFloats, square);
  const auto system = [](DType d, int64_t side) {
    return Call{{definite(side), values(d, {side, 8})}};
  };
  add(rows, "MatrixSolve", "solve", kFloats, system);
  add(rows, "MatrixTriangularSolve", "triangular_solve", kFloats, system);
  const auto many = [](DType, int64_t side) {
    const int64_t n = std::max<int64_t>(side * side / 256, 1);
    return Call{{math::add(zeros({n, 1, 1}), definite(16))}};
  };
  add(rows, "Cholesky", "cholesky_batched", kFloats, many);
  add(rows, "MatrixInverse", "inverse_batched", kFloats, many);
  add(rows, "MatrixDeterminant", "determinant_batched", kFloats, many);
}

}  // namespace

void add_arrays(Rows& rows) {
  add_moves(rows);
  add_slices(rows);
  add_broadcasts(rows);
  add_makers(rows);
  add_products(rows);
}

}  // namespace berth_bench
