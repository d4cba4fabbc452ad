// Rows of host tensors: the byte work of pulling and pushing parts of
// variables. Pure functions; tensors are settled, in host memory.

#ifndef BERTH_DISTRIBUTE_PARAMETER_SERVER_ROW_COPIES_H_
#define BERTH_DISTRIBUTE_PARAMETER_SERVER_ROW_COPIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "distribute/parameter_server/step_program.h"

namespace berth::distribute {

// The ids in `t`, of any integer dtype and shape.
std::vector<int64_t> ids_of(const Tensor& t);

// Those of `ids` that lie in [begin, end), and their positions.
struct IdsWithin {
  std::vector<int64_t> ids;  // counted from begin
  std::vector<int64_t> places;
};
IdsWithin ids_within(const std::vector<int64_t>& ids, int64_t begin,
                     int64_t end);

// Throws errors::InvalidArgument for an id outside [0, rows).
void check_ids(const std::vector<int64_t>& ids, int64_t rows,
               const std::string& what);

// [n] int64.
Tensor ids_tensor(const std::vector<int64_t>& ids);

// Concatenates the parts of a variable.
Tensor joined_rows(const Tensors& parts, const Shape& shape);

// A tensor of this shape whose row places[p][i] is row i of parts[p].
Tensor placed_rows(const Tensors& parts,
                   const std::vector<std::vector<int64_t>>& places,
                   const Shape& shape, DType dtype);

// Rows [begin, end) of `t`.
Tensor cut_rows(const Tensor& t, int64_t begin, int64_t end);

// Rows `places` of `t`, which is [ids..., row...], as [n, row...].
Tensor picked_rows(const Tensor& t, const std::vector<int64_t>& places,
                   const Shape& ids);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_PARAMETER_SERVER_ROW_COPIES_H_
