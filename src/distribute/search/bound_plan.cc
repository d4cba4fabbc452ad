// What no cut of a pipeline can beat.
//
// A stage runs its layers for each micro-batch. Before its first forward pass a
// micro-batch passes the stages before it. Before its first backward pass one
// goes down all stages and back to it, while the stage can only do the forward
// passes that its instructions have before that. After its last backward pass
// for inputs, gradients pass the stages before it. What is outside of a stage
// counts with the least time of any device, so that the terms of a stage depend
// on it and its layers alone, and the minimum over cuts is that of a chain. Of
// ZB-V, whose device d has the stages d and 2n - 1 - d, the minimum is over
// intervals that grow on both sides.

#include <algorithm>

#include "distribute/pipeline/schedule.h"
#include "distribute/search/chain_costs.h"
#include "distribute/search/search_plans.h"

namespace berth::distribute {

namespace {

// What a device's instructions do before and after some of them.
struct LaneOrder {
  double before_second = 0;      // forward passes of its first stage before the
                                 // first of its second
  double first = 0, second = 0;  // forward passes before any backward pass
  double weights_after = 0;      // passes W after the last I of its first stage
};

LaneOrder order_of_lane(const std::vector<PipelineAction>& list) {
  LaneOrder o;
  const int32_t first = list[0].stage;
  bool second = false, backward = false;
  double weights = 0;
  for (const PipelineAction& a : list) {
    if (a.pass == 'F' && a.stage == first) {
      o.before_second += second ? 0 : 1;
      o.first += backward ? 0 : 1;
    } else if (a.pass == 'F') {
      second = true;
      o.second += backward ? 0 : 1;
    } else {
      backward = true;
    }
    if (a.pass == 'W') ++weights;
    if (a.pass != 'F' && a.pass != 'W' && a.stage == first) weights = 0;
  }
  o.weights_after = weights;
  return o;
}

class PipelineBound {
 public:
  PipelineBound(const ModelChain& chain, const ParallelCandidate& c,
                double enough)
      : costs_(chain, c),
        shape_(costs_.shape()),
        layers_(chain.layers.size()),
        devices_(static_cast<size_t>(shape_.devices)),
        m_(c.micro_batches),
        enough_(enough),
        least_(costs_.least()),
        hop_(costs_.least_hop_us()),
        held_(costs_.held()) {
    for (const auto& list : actions_of(shape_)) {
      order_.push_back(order_of_lane(list));
    }
    const std::vector<double>& f = least_.forward;
    through_ = f[layers_] + least_.input[layers_] +
               2 * hop_ * static_cast<double>(devices_ - 1);
    for (size_t d = 0; d < devices_; ++d) {
      StageSum sum = costs_.start_stage(d);
      lanes_.push_back({sum});
      for (size_t k = 0; k < layers_; ++k) {
        costs_.extend(sum, k);
        lanes_.back().push_back(sum);
      }
    }
  }

  double of_chain() const {
    std::vector<double> best(layers_ + 1, kImpossible), next;
    best[0] = 0;
    for (size_t s = 0; s < devices_; ++s) {
      next.assign(layers_ + 1, kImpossible);
      for (size_t b = s; b + (devices_ - s) <= layers_; ++b) {
        if (best[b] == kImpossible) continue;
        const size_t least_end = s + 1 == devices_ ? layers_ : b + 1;
        for (size_t e = least_end; e + (devices_ - 1 - s) <= layers_; ++e) {
          const StageSum sum = piece(s, b, e);
          if (!costs_.fits(sum, s, held_[s])) break;
          const double us = of_lane(s, sum, {}, b, e, e);
          next[e] = std::min(next[e], std::max(best[b], us));
        }
      }
      best.swap(next);
    }
    return std::max(best[layers_], through_);
  }

  // ZB-V: device d has the layers [first, begin) and [end, last).
  double of_intervals() const {
    using Row = std::vector<double>;
    std::vector<Row> best(layers_ + 1, Row(layers_ + 1, kImpossible)), next;
    for (size_t k = 1; k < layers_; ++k) best[k][k] = 0;
    for (size_t d = devices_; d-- > 0;) {
      next.assign(layers_ + 1, Row(layers_ + 1, kImpossible));
      for (size_t begin = 1; begin < layers_; ++begin) {
        for (size_t end = begin; end < layers_; ++end) {
          if (best[begin][end] >= enough_) continue;
          grow(d, begin, end, best[begin][end], next);
        }
      }
      best.swap(next);
    }
    const double us = best[0][layers_];
    if (us == kImpossible) return enough_;
    return std::min(std::max(us, through_), enough_);
  }

 private:
  // The layers [b, e) on device d, without what of bytes only a maximum has.
  StageSum piece(size_t d, size_t b, size_t e) const {
    const StageSum &to = lanes_[d][e], &from = lanes_[d][b];
    StageSum s = to;
    s.forward_us -= from.forward_us;
    s.input_us -= from.input_us;
    s.weight_us -= from.weight_us;
    s.update_us -= from.update_us;
    s.kept -= from.kept;
    s.passing -= from.passing;
    s.largest = 0;
    return s;
  }

  void grow(size_t d, size_t begin, size_t end, double so_far,
            std::vector<std::vector<double>>& next) const {
    for (size_t first = d == 0 ? 0 : begin; first-- > 0 || d == 0;) {
      const size_t from = d == 0 ? 0 : first;
      if (from < d) return;
      const StageSum one = piece(d, from, begin);
      for (size_t last = d == 0 ? layers_ : end + 1; last + d <= layers_;
           ++last) {
        const StageSum two = piece(d, end, last);
        const double work = m_ * (work_of(one) + work_of(two));
        if (work >= enough_) break;
        StageSum all = one;
        all.kept += two.kept;
        all.passing = 0;
        if (!costs_.fits(all, d, 0)) break;
        const double us =
            std::max(so_far, of_lane(d, one, two, from, end, last));
        next[from][last] = std::min(next[from][last], us);
      }
      if (d == 0 || m_ * work_of(one) >= enough_) return;
    }
  }

  static double work_of(const StageSum& s) {
    return s.forward_us + s.input_us + s.weight_us;
  }

  // A device with the layers `one` from `first` on, and `two`, [end, last); of
  // one stage, `two` is nothing.
  double of_lane(size_t d, const StageSum& one, const StageSum& two,
                 size_t first, size_t end, size_t last) const {
    const LaneOrder& o = order_[d];
    const bool halves = shape_.schedule == PipelineSchedule::kZbH1 ||
                        shape_.schedule == PipelineSchedule::kZbV;
    const double hops = hop_ * static_cast<double>(d);
    const double turn = hop_ * static_cast<double>(devices_ - 1 - d);
    const double before = least_.forward[first] + hops;
    double back = least_.input[first] + hops;
    double after = least_.input[layers_] - least_.input[last];
    if (!halves) {
      back += least_.weight[first];
      after += least_.weight[layers_] - least_.weight[last];
    }
    const bool v = shape_.stages > shape_.devices;
    const double down =
        least_.forward[layers_] + after + (v ? 2 : 1) * hops + 2 * turn;
    double head = std::max(
        before, down - o.first * one.forward_us - o.second * two.forward_us);
    if (v) {
      head = std::max(head, least_.forward[end] + hops + 2 * turn -
                                o.before_second * one.forward_us);
    }
    const double work = m_ * (work_of(one) + work_of(two));
    const double late =
        o.weights_after * std::max(one.weight_us, two.weight_us);
    return std::max(head + work + one.update_us + two.update_us,
                    head + work - late + back);
  }

  const ChainCosts costs_;
  const ScheduleShape shape_;
  const size_t layers_, devices_;
  const double m_, enough_;
  const ChainCosts::Least least_;
  const double hop_;
  const std::vector<int> held_;
  double through_ = 0;
  std::vector<LaneOrder> order_;
  std::vector<std::vector<StageSum>> lanes_;  // by device: of the first layers
};

}  // namespace

double bound_of(const ModelChain& chain, const ParallelCandidate& c,
                double enough) {
  if (c.schedule == PipelineSchedule::kInterleaved1F1B) return 0;
  const ScheduleShape shape = ChainCosts(chain, c).shape();
  if (chain.layers.size() < static_cast<size_t>(shape.stages))
    return kImpossible;
  const double took = chain.took_over_predicted[static_cast<size_t>(c.kind)];
  const PipelineBound bound(chain, c, enough / took);
  return took * (shape.stages > shape.devices ? bound.of_intervals()
                                              : bound.of_chain());
}

}  // namespace berth::distribute
