#include "backends/gpu/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/replay_piece.h"
#include "backends/gpu/replay_pieces.h"

namespace berth::gpu {

namespace {

// Number of runs made step by step before recording.
constexpr int kFirstRuns = 2;

// State of a piece, shared by the instances of a plan.
struct PieceState {
  std::atomic<bool> gave_up{false};
  std::atomic<int> recorded{0};
  std::string why;  // guarded by the runner's mutex
};

class ReplayRunner final : public PlanRunner {
 public:
  ReplayRunner(std::vector<ReplayPiece> pieces,
               std::unique_ptr<PlanRunner> standard)
      : pieces_(std::move(pieces)),
        standard_(std::move(standard)),
        states_(pieces_.size()) {}

  std::unique_ptr<PreparedRun> prepare(ProgramRun& run) const override;
  std::string describe() const override;

  const std::vector<ReplayPiece>& pieces() const { return pieces_; }
  bool is_warm() const { return runs_ >= kFirstRuns; }
  void count_run() const { ++runs_; }
  PieceState& state(size_t piece) const { return states_[piece]; }
  void give_up(size_t piece, const std::string& why) const {
    std::lock_guard lock(mutex_);
    if (!states_[piece].gave_up) states_[piece].why = why;
    states_[piece].gave_up = true;
  }

 private:
  const std::vector<ReplayPiece> pieces_;
  const std::unique_ptr<PlanRunner> standard_;
  mutable std::deque<PieceState> states_;
  mutable std::atomic<int> runs_{0};
  mutable std::mutex mutex_;
};

class ReplayRun final : public PreparedRun {
 public:
  ReplayRun(const ReplayRunner& runner, ProgramRun& run,
            std::unique_ptr<SteppedRun> steps)
      : runner_(runner), run_(run), steps_(std::move(steps)) {
    for (const ReplayPiece& piece : runner.pieces()) {
      replays_.push_back(piece.recorded == nullptr
                             ? nullptr
                             : std::make_unique<PieceRun>(piece, run, *steps_));
    }
  }

  void launch() override {
    // Times and deadlines apply to single steps.
    if (!runner_.is_warm() || run_.sampled || run_.deadline.is_set()) {
      for (const auto& replay : replays_) {
        if (replay) replay->look();
      }
      steps_->launch();
      return runner_.count_run();
    }
    for (size_t i = 0; i < replays_.size(); ++i) {
      if (replays_[i] && replay(i)) continue;
      for (const int32_t s : runner_.pieces()[i].steps) {
        steps_->launch_step(static_cast<size_t>(s));
      }
    }
    steps_->end_launch();
  }

  bool ended() const override { return steps_->ended(); }
  void finish() override { steps_->finish(); }
  void reset() override { steps_->reset(); }

 private:
  bool replay(size_t i) {
    PieceState& state = runner_.state(i);
    if (state.gave_up) return false;
    PieceRun& piece = *replays_[i];
    const int before = piece.recorded();
    const bool launched = piece.launch();
    if (piece.recorded() != before) ++state.recorded;
    if (!piece.why().empty()) runner_.give_up(i, piece.why());
    return launched;
  }

  const ReplayRunner& runner_;
  ProgramRun& run_;
  const std::unique_ptr<SteppedRun> steps_;
  std::vector<std::unique_ptr<PieceRun>> replays_;  // by piece; null: none
};

std::unique_ptr<PreparedRun> ReplayRunner::prepare(ProgramRun& run) const {
  std::unique_ptr<PreparedRun> prepared = standard_->prepare(run);
  auto* stepped = dynamic_cast<SteppedRun*>(prepared.get());
  if (stepped == nullptr) return prepared;
  prepared.release();
  return std::make_unique<ReplayRun>(*this, run,
                                     std::unique_ptr<SteppedRun>(stepped));
}

std::string ReplayRunner::describe() const {
  std::string text;
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const ReplayPiece& piece = pieces_[i];
    const PieceState& state = states_[i];
    const std::string& why = state.gave_up ? state.why : piece.why;
    text += fmt::format("{} steps {} stream {}",
                        why.empty() ? "replay" : "no-replay",
                        step_ranges(piece.steps), piece.stream);
    if (state.recorded > 0)
      text += fmt::format(" recorded {}", +state.recorded);
    if (!why.empty()) text += fmt::format(" why \"{}\"", why);
    text += '\n';
  }
  return text;
}

// The plan is complete: its programs are compiled at once.
void compile_waiting(const Program& program) {
  for (Device* device : program.devices) {
    if (auto* gpu = dynamic_cast<GpuDevice*>(device)) {
      gpu->card().compile_waiting();
    }
  }
}

}  // namespace

std::unique_ptr<PlanRunner> replay_runner(
    const Program& program, std::unique_ptr<PlanRunner>& standard) {
  compile_waiting(program);
  std::vector<ReplayPiece> pieces = pieces_of(program);
  if (std::none_of(pieces.begin(), pieces.end(), [](const ReplayPiece& piece) {
        return piece.recorded != nullptr;
      })) {
    return nullptr;
  }
  return std::make_unique<ReplayRunner>(std::move(pieces), std::move(standard));
}

void register_replays() {
  static const bool registered = [] {
    register_runner(&replay_runner);
    return true;
  }();
  (void)registered;
}

}  // namespace berth::gpu
