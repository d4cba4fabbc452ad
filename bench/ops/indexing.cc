// Rows of ops that sort, search, gather, scatter and add up by segment.

#include "bench/ops/rows.h"

namespace berth_bench {

using namespace berth;

namespace {

void add_sorts(Rows& rows) {
  const auto flat = [](DType d, int64_t side) {
    return Call{{values(d, {side * side})}};
  };
  add(rows, "Sort", "sort", kNumbers, flat);
  add(rows, "Sort", "sort_1", kNumbers);
  add(rows, "ArgSort", "argsort", kNumbers, flat);
  add(rows, "ArgSort", "argsort_1", kNumbers);
  add(rows, "TopKV2", "top_10", kNumbers, [](DType d, int64_t side) {
    return Call{{values(d, {side * side})}, {{"k", int64_t{10}}}};
  });
  add(rows, "TopKV2", "top_10_1", kNumbers, 1, {{"k", int64_t{10}}});
  add(rows, "InTopKV2", "in_top_10", kFloats, [](DType d, int64_t side) {
    return Call{{values(d, {side, side}), places(int32, {side}, side)},
                {{"k", int64_t{10}}}};
  });
  for (const Named& n : std::vector<Named>{{"LowerBound", "lower_bound"},
                                           {"UpperBound", "upper_bound"}}) {
    add(rows, n.op, n.name, kNumbers, [](DType d, int64_t side) {
      return Call{{sort(values(d, {1, side})), values(d, {1, side * side})}};
    });
  }
  add(rows, "InvertPermutation", "invert_permutation", kInts,
      [](DType d, int64_t side) {
        return Call{{math::cast(argsort(values(float32, {side * side})), d)}};
      });
  add(rows, "Unique", "unique", kNumbers, flat);
  add(rows, "UniqueWithCounts", "unique_with_counts", kNumbers, flat);
  add(rows, "Where", "where_indices", kAll, [](DType d, int64_t side) {
    return Call{{math::cast(values(bool_, {side, side}), d)}};
  });
}

void add_gathers(Rows& rows) {
  for (const int64_t axis : {0, 1}) {
    const std::string at = "_" + std::to_string(axis);
    add(rows, "GatherV2", "gather" + at, kAll, [axis](DType d, int64_t side) {
      return Call{{values(d, {side, side}), places(int64, {side}, side)},
                  {{"axis", axis}}};
    });
    add(rows, "GatherGrad", "gather_grad" + at, kNumbers,
        [axis](DType d, int64_t side) {
          return Call{{values(d, {side, side}), places(int64, {side}, side)},
                      {{"shape", Shape{side, side}}, {"axis", axis}}};
        });
  }
  add(rows, "GatherGradLike", "gather_grad_like", kFloats,
      [](DType d, int64_t side) {
        return Call{{values(d, {side, side}), places(int64, {side}, side),
                     zeros({side, side})}};
      });
  add(rows, "GatherNd", "gather_nd", kAll, [](DType d, int64_t side) {
    return Call{
        {values(d, {side, side}), places(int64, {side * side / 2, 2}, side)}};
  });
}

void add_scatters(Rows& rows) {
  // Rows of a matrix, each written about once.
  const auto row_places = [](int64_t side) {
    return places(int64, {side, 1}, side);
  };
  add(rows, "ScatterNd", "scatter_nd", kNumbers, [=](DType d, int64_t side) {
    return Call{{row_places(side), values(d, {side, side})},
                {{"shape", Shape{side, side}}}};
  });
  add(rows, "ScatterNdLike", "scatter_nd_like", kFloats,
      [=](DType d, int64_t side) {
        return Call{
            {row_places(side), values(d, {side, side}), zeros({side, side})}};
      });
  for (const Named& n :
       std::vector<Named>{{"TensorScatterUpdate", "scatter_update"},
                          {"TensorScatterAdd", "scatter_add"},
                          {"TensorScatterSub", "scatter_sub"},
                          {"TensorScatterMin", "scatter_min"},
                          {"TensorScatterMax", "scatter_max"}}) {
    add(rows, n.op, n.name, kNumbers, [=](DType d, int64_t side) {
      return Call{
          {values(d, {side, side}), row_places(side), values(d, {side, side})}};
    });
  }
  for (const Named& n :
       std::vector<Named>{{"ResourceScatterUpdate", "variable_scatter_update"},
                          {"ResourceScatterAdd", "variable_scatter_add"},
                          {"ResourceScatterSub", "variable_scatter_sub"},
                          {"ResourceScatterMul", "variable_scatter_mul"},
                          {"ResourceScatterDiv", "variable_scatter_div"},
                          {"ResourceScatterMin", "variable_scatter_min"},
                          {"ResourceScatterMax", "variable_scatter_max"}}) {
    add(rows, n.op, n.name, kFloats, [](DType d, int64_t side) {
      return Call{{places(int64, {side}, side), values(d, {side, side})},
                  {},
                  {Variable(values(d, {side, side}))}};
    });
  }
  for (const Named& n : std::vector<Named>{
           {"ResourceScatterNdUpdate", "variable_scatter_nd_update"},
           {"ResourceScatterNdAdd", "variable_scatter_nd_add"},
           {"ResourceScatterNdSub", "variable_scatter_nd_sub"}}) {
    add(rows, n.op, n.name, kFloats, [=](DType d, int64_t side) {
      return Call{{row_places(side), values(d, {side, side})},
                  {},
                  {Variable(values(d, {side, side}))}};
    });
  }
}

void add_segments(Rows& rows) {
  for (const Named& n :
       std::vector<Named>{{"UnsortedSegmentSum", "segment_sum"},
                          {"UnsortedSegmentProd", "segment_prod"},
                          {"UnsortedSegmentMin", "segment_min"},
                          {"UnsortedSegmentMax", "segment_max"}}) {
    add(rows, n.op, n.name, kNumbers, [](DType d, int64_t side) {
      return Call{{values(d, {side, side}), places(int64, {side}, side / 4)},
                  {{"num_segments", side / 4}}};
    });
  }
}

}  // namespace

void add_indexing(Rows& rows) {
  add_sorts(rows);
  add_gathers(rows);
  add_scatters(rows);
  add_segments(rows);
}

}  // namespace berth_bench
