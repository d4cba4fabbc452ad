#include "simulate/task_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/errors.h"

namespace berth {

namespace {

constexpr const char* kOrderNames[] = {"gpipe", "1f1b", "interleaved"};

// A lane: a device and its stages.
struct PipelineLane {
  int32_t device = -1;
  std::vector<int32_t> stages;
  std::vector<PipelineTask> tasks;
  size_t next = 0;
};

class TaskOrder {
 public:
  TaskOrder(const PipelineLanes& lanes, int32_t micro_batches,
            PipelineOrder order)
      : l_(lanes), micro_batches_(micro_batches), parts_(lanes.any.size()) {
    int32_t last = -1;
    for (int32_t p = 0; p < parts_; ++p) {
      before_.push_back(last);
      if (l_.any[p]) last = p;
    }
    for (size_t s = 0; s < l_.lane.size(); ++s) {
      const int32_t d = l_.lane[s];
      if (d < 0) continue;
      auto lane = std::ranges::find(lanes_, d, &PipelineLane::device);
      if (lane == lanes_.end()) lane = lanes_.insert(lane, {.device = d});
      lane->stages.push_back(s);
    }
    for (size_t k = 0; k < lanes_.size(); ++k) fill(k, order);
    std::ranges::sort(lanes_, {}, &PipelineLane::device);
  }

  std::vector<PipelineTask> run() {
    std::vector<PipelineTask> all;
    std::vector<int32_t> round(
        static_cast<size_t>(parts_) * static_cast<size_t>(micro_batches_), -1);
    std::vector<PipelineLane*> open;
    for (PipelineLane& lane : lanes_) open.push_back(&lane);
    for (int32_t now = 0; !open.empty(); ++now) {
      const size_t before = all.size();
      for (PipelineLane* lane : open) {
        if (lane->next == lane->tasks.size()) continue;
        const PipelineTask t = lane->tasks[lane->next];
        if (before_[t.part] >= 0) {
          const int32_t r = round[at({before_[t.part], t.micro_batch})];
          if (r < 0 || r == now) continue;
        }
        round[at(t)] = now;
        all.push_back(t);
        ++lane->next;
      }
      std::erase_if(open, [](const PipelineLane* lane) {
        return lane->next == lane->tasks.size();
      });
      if (all.size() == before && !open.empty()) return {};
    }
    return all;
  }

 private:
  size_t at(const PipelineTask& t) const {
    return static_cast<size_t>(t.part) * static_cast<size_t>(micro_batches_) +
           static_cast<size_t>(t.micro_batch);
  }

  // Adds the tasks of one direction, by groups of micro-batches.
  std::vector<PipelineTask> direction(const PipelineLane& lane, int32_t group,
                                      bool backward) const {
    std::vector<PipelineTask> tasks;
    const int32_t v = lane.stages.size();
    for (int32_t begin = 0; begin < micro_batches_; begin += group) {
      const int32_t end = std::min(begin + group, micro_batches_);
      for (int32_t k = 0; k < v; ++k) {
        const int32_t part =
            backward ? parts_ - 1 - lane.stages[v - 1 - k] : lane.stages[k];
        if (!l_.any[part]) continue;
        for (int32_t m = begin; m < end; ++m) tasks.push_back({part, m});
      }
    }
    return tasks;
  }

  void fill(size_t position, PipelineOrder order) {
    PipelineLane& lane = lanes_[position];
    const int32_t lanes = lanes_.size();
    const int32_t v = lane.stages.size();
    const int32_t group = v == 1 ? micro_batches_ : lanes;
    std::vector<PipelineTask> f = direction(lane, group, false);
    const std::vector<PipelineTask> b = direction(lane, group, true);
    const int32_t after = lanes - 1 - static_cast<int32_t>(position);
    size_t first = v == 1 ? after : 2 * after + (v - 1) * lanes;
    if (order == PipelineOrder::kGPipe) first = f.size();
    first = std::min(first, f.size());
    size_t done = 0;
    for (size_t k = 0; k < f.size(); ++k) {
      lane.tasks.push_back(f[k]);
      if (k >= first && done < b.size()) lane.tasks.push_back(b[done++]);
    }
    lane.tasks.insert(lane.tasks.end(), b.begin() + done, b.end());
  }

  const PipelineLanes& l_;
  const int32_t micro_batches_, parts_;
  std::vector<int32_t> before_;  // per part: the one before it with ops, or -1
  std::vector<PipelineLane> lanes_;
};

}  // namespace

std::vector<PipelineTask> task_order(const PipelineLanes& lanes,
                                     int32_t micro_batches,
                                     PipelineOrder order) {
  return TaskOrder(lanes, micro_batches, order).run();
}

std::vector<int32_t> most_in_flight(const std::vector<PipelineTask>& tasks,
                                    const PipelineLanes& lanes) {
  const size_t stages = lanes.lane.size();
  std::vector<int32_t> now(stages, 0), most(stages, 0);
  for (const PipelineTask& t : tasks) {
    const size_t part = t.part;
    const size_t s = part < stages ? part : 2 * stages - 1 - part;
    if (part >= stages) {
      --now[s];
    } else if (lanes.any[2 * stages - 1 - part]) {
      most[s] = std::max(most[s], ++now[s]);
    } else {
      most[s] = 1;
    }
  }
  return most;
}

const char* order_name(PipelineOrder order) {
  return kOrderNames[static_cast<size_t>(order)];
}

PipelineOrder order_of_name(const std::string& name) {
  for (size_t k = 0; k < std::size(kOrderNames); ++k) {
    if (name == kOrderNames[k]) return static_cast<PipelineOrder>(k);
  }
  throw errors::InvalidArgument(fmt::format(
      "schedule \"{}\"; expected gpipe, 1f1b or interleaved", name));
}

}  // namespace berth
