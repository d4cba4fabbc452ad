#include "backends/gpu/replay_pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "backends/gpu/recipe.h"

namespace berth::gpu {

namespace {

// A recording of fewer steps does not pay for its launch.
constexpr size_t kFewestSteps = 2;

// Calls fn for each call of a step, including those that add its sums.
template <class Fn>
void for_each_call(const PlanStep& step, Fn&& fn) {
  const int end = step.first_call + step.parts * step.calls_per_part;
  for (int c = step.first_call; c < end; ++c) fn(c);
  const int added = step.first_add + (step.parts - 1) * step.num_sums;
  for (int c = step.first_add; c < added; ++c) fn(c);
}

struct Users {
  std::set<int> writers;  // pieces
  std::set<int> streams;
};

class Cutter {
 public:
  explicit Cutter(const Program& program)
      : p_(program),
        open_(program.streams.size()),
        piece_of_(program.steps.size(), -1) {}

  std::vector<ReplayPiece> cut() {
    for (size_t s = 0; s < p_.steps.size(); ++s) add(static_cast<int32_t>(s));
    close_all();
    note_users();
    for (ReplayPiece& piece : pieces_) {
      if (piece.recorded != nullptr) finish(piece);
    }
    return std::move(pieces_);
  }

 private:
  // Returns the stream that can record the step; null, with the reason: none.
  QueueStream* recorder(const PlanStep& step, std::string* why) const {
    const PlanStream& on = p_.streams[step.stream];
    auto* stream = dynamic_cast<QueueStream*>(on.stream);
    if (step.kind == StepKind::kControl) {
      *why = "it runs functions";
    } else if (step.kind == StepKind::kTransfer) {
      *why = "a copy between devices";
    } else if (stream == nullptr) {
      *why = fmt::format("{} computes it", on.device->short_name());
    } else if (!stream->queue().can_record()) {
      *why = "the driver of the device records nothing";
    } else if (!recipes_alone(step)) {
      *why = "its kernel is not one of the backend's own";
    } else {
      return stream;
    }
    return nullptr;
  }

  bool recipes_alone(const PlanStep& step) const {
    if (step.kind == StepKind::kNothing) return true;
    bool all = true;
    for_each_call(step, [&](int c) {
      const BoundKernel* kernel = p_.calls[c].kernel;
      all &= kernel != nullptr && is_recipe(*kernel);
    });
    return all;
  }

  void add(int32_t s) {
    const PlanStep& step = p_.steps[s];
    std::string why;
    QueueStream* stream = recorder(step, &why);
    ReplayPiece& open = open_[step.stream];
    bool waits_anew = false;
    for (const int32_t w : step.waits) {
      if (p_.steps[w].stream != step.stream) close(p_.steps[w].stream);
      waits_anew |= std::find(open.waits.begin(), open.waits.end(), w) ==
                    open.waits.end();
    }
    if (stream == nullptr) {
      // The launching thread does this work itself; other work must not wait.
      if (step.kind == StepKind::kControl ||
          (p_.streams[step.stream].here && step.kind != StepKind::kNothing)) {
        close_all();
      }
      close(step.stream);
      open.steps = {s};
      open.why = std::move(why);
      return close(step.stream);
    }
    if (waits_anew) close(step.stream);
    open.recorded = stream;
    open.steps.push_back(s);
    open.waits.insert(open.waits.end(), step.waits.begin(), step.waits.end());
    if (step.signals) open.signals.push_back(s);
  }

  void close_all() {
    for (size_t s = 0; s < open_.size(); ++s) close(static_cast<int>(s));
  }

  void close(int stream) {
    ReplayPiece& open = open_[stream];
    if (open.steps.empty()) return;
    open.stream = stream;
    const auto computing = std::count_if(
        open.steps.begin(), open.steps.end(),
        [&](int32_t s) { return p_.steps[s].kind != StepKind::kNothing; });
    if (open.recorded != nullptr &&
        static_cast<size_t>(computing) < kFewestSteps) {
      open.recorded = nullptr;
      open.why = "too few steps together";
    }
    for (const int32_t s : open.steps) {
      piece_of_[s] = static_cast<int>(pieces_.size());
    }
    pieces_.push_back(std::exchange(open, {}));
  }

  template <class Fn>
  void for_each_view(const PlanStep& step, Fn&& fn) const {
    for_each_call(step, [&](int c) {
      const PlanCall& call = p_.calls[c];
      for (int k = 0; k < call.num_in + call.num_out; ++k) {
        fn(call.first_view + k, k >= call.num_in);
      }
    });
  }

  bool moves(int view) const {
    const Where where = p_.buffers[p_.operands[view].buffer].where;
    return where == Where::kArg || where == Where::kOutput;
  }

  // Notes which pieces write moving buffers, and which streams use them.
  void note_users() {
    for (size_t s = 0; s < p_.steps.size(); ++s) {
      for_each_view(p_.steps[s], [&](int view, bool written) {
        if (!moves(view)) return;
        Users& users = users_[p_.operands[view].buffer];
        users.streams.insert(p_.steps[s].stream);
        if (written) users.writers.insert(piece_of_[s]);
      });
    }
  }

  void finish(ReplayPiece& piece) {
    std::map<int, MovingBuffer> moving;
    std::vector<const OpDef*> ops;
    for (const int32_t s : piece.steps) {
      const PlanStep& step = p_.steps[s];
      if (step.kind == StepKind::kNothing) continue;
      ops.push_back(p_.ops[step.first_op].op);
      for_each_call(step, [&](int c) {
        ++piece.calls;
        piece.kernels.push_back(p_.calls[c].kernel);
      });
      for_each_view(step, [&](int view, bool written) {
        if (!moves(view)) return;
        const int buffer = p_.operands[view].buffer;
        MovingBuffer& m = moving[buffer];
        m.buffer = buffer;
        m.view = view;
        m.views.push_back(view);
        m.goes_out |= written;
      });
    }
    for (auto& [buffer, m] : moving) {
      const bool is_arg = p_.buffers[buffer].where == Where::kArg;
      const Users& users = users_[buffer];
      const bool alone = users.writers.size() == 1;
      m.comes_in = !m.goes_out || !alone;
      m.shared = m.goes_out && (is_arg || (!alone && users.streams.size() > 1));
      piece.moving.push_back(std::move(m));
    }
    piece.what = fmt::format("a recording of {} ops, {} to {},", ops.size(),
                             ops.front()->name(), ops.back()->name());
  }

  const Program& p_;
  std::vector<ReplayPiece> open_;  // by stream
  std::vector<int> piece_of_;
  std::vector<ReplayPiece> pieces_;
  std::map<int, Users> users_;  // by buffer
};

}  // namespace

std::vector<ReplayPiece> pieces_of(const Program& program) {
  return Cutter(program).cut();
}

std::string step_ranges(const std::vector<int32_t>& steps) {
  std::string text;
  for (size_t i = 0; i < steps.size();) {
    size_t last = i;
    while (last + 1 < steps.size() && steps[last + 1] == steps[last] + 1) {
      ++last;
    }
    if (!text.empty()) text += ',';
    text += fmt::format("{}", steps[i]);
    if (last > i) text += fmt::format("-{}", steps[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace berth::gpu
