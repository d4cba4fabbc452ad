// AxesLast: some axes of a tensor after the others, and back. Nothing where
// they are there already.

#ifndef BERTH_KERAS_LAYERS_AXES_LAST_H_
#define BERTH_KERAS_LAYERS_AXES_LAST_H_

#include <algorithm>
#include <vector>

#include "berth/ops/array.h"
#include "keras/models/layer_state.h"

namespace berth::keras {

class AxesLast {
 public:
  // For tensors of that rank. Throws errors::InvalidArgument for an axis that
  // does not exist, or twice, or the batch.
  AxesLast(const LayerState& s, const std::vector<int64_t>& axes, int rank)
      : site_(s.site) {
    std::vector<int64_t> last;
    const int least = rank > 1 ? 1 : 0;
    for (const int64_t a : axes) {
      const int64_t i = a < 0 ? a + rank : a;
      if (i < least || i >= rank ||
          std::count(last.begin(), last.end(), i) > 0) {
        fail_in(s,
                "{}: axis {} of an input of {} axes; expected "
                "each of some from 1 to {} once",
                s.type, a, rank, rank - 1);
      }
      last.push_back(i);
    }
    std::sort(last.begin(), last.end());
    for (int64_t i = 0; i < rank; ++i) {
      if (std::count(last.begin(), last.end(), i) == 0) order_.push_back(i);
    }
    order_.insert(order_.end(), last.begin(), last.end());
    num_last_ = static_cast<int>(last.size());
    back_.resize(order_.size());
    for (size_t i = 0; i < order_.size(); ++i) {
      back_[static_cast<size_t>(order_[i])] = static_cast<int64_t>(i);
    }
    moves_ = !std::is_sorted(order_.begin(), order_.end());
  }

  // The lengths of the axes, ascending.
  Shape lengths(const Shape& x) const {
    Shape s;
    for (size_t i = order_.size() - static_cast<size_t>(num_last_);
         i < order_.size(); ++i) {
      s.push_back(x[static_cast<int>(order_[i])]);
    }
    return s;
  }
  Shape moved(const Shape& x) const {
    Shape s;
    for (const int64_t i : order_) s.push_back(x[static_cast<int>(i)]);
    return s;
  }
  Tensor to(const Tensor& x) const {
    return moves_ ? transpose(x, order_, site_) : x;
  }
  Tensor from(const Tensor& y) const {
    return moves_ ? transpose(y, back_, site_) : y;
  }

 private:
  const Site site_;
  std::vector<int64_t> order_, back_;
  int num_last_ = 0;
  bool moves_ = false;
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_LAYERS_AXES_LAST_H_
