#include "keras/training/elastic_keeper.h"

#include <numeric>

#include "base/where.h"
#include "keras/callbacks/chief_only.h"
#include "keras/optimizers/optimizer_base.h"
#include "keras/training/training.h"

namespace berth::keras {

ElasticKeeper::ElasticKeeper(Model& model, Model::Training& training,
                             FitLoop& loop, Site site)
    : core_(training.core),
      state_(core_, site),
      model_(model),
      training_(training),
      loop_(loop),
      site_(site) {}

ElasticKeeper::~ElasticKeeper() = default;

std::optional<History> ElasticKeeper::begin() {
  if (!state_.on()) return std::nullopt;
  fit_ = std::make_shared<FitState>();
  seen_ = std::make_shared<ExamplesSeen>();
  const ElasticState::Found found = state_.begin(
      {{"model", model_},
       {"fit", std::static_pointer_cast<train::Tracked>(fit_)},
       {"examples", std::static_pointer_cast<train::Tracked>(seen_)},
       {"random", train::random_state()}});
  restored_ = found == ElasticState::Found::kState;
  if (restored_ && state_.fetched()) fit_->read_anew(loop_.data_part());
  if (found != ElasticState::Found::kEnd) return std::nullopt;
  std::optional<History>& result = state_.result();
  if (!result) {
    fit_->set_state({{}, state_.text("fit")});
    result = fit_->history();
    seen_->set_state({{}, state_.text("examples")});
    result->tasks.emplace().epochs = seen_->epochs();
  }
  return result;
}

void ElasticKeeper::apply(bool moved) {
  if (!state_.on()) return;
  if (restored_) {
    fit_->apply(loop_, "elastic()" + where_text(nullptr, site_));
    if (seen_->stopped) model_.stop_training();
  } else if (!moved) {
    // Slots that the first step makes would not go back to their beginnings.
    const auto weights = model_.trainable_variables();
    if (training_.options && !weights.empty()) {
      training_.options->optimizer.base()->make_slots(weights);
    }
    copy();
  }
}

void ElasticKeeper::copy() {
  settle(model_, site_);
  fit_->read(loop_);
  const FitPosition p = loop_.position();
  state_.copy((int64_t{p.epoch} << 32) + p.batch);
}

void ElasticKeeper::after_step(int64_t batch, int64_t examples) {
  if (!state_.on()) return;
  const distribute::TaskPart& tasks = core_->tasks();
  std::vector<int64_t> by_task = tasks.rows;
  if (by_task.empty()) {
    const std::vector<int64_t> all = core_->examples(examples);
    for (size_t r = 0; r + 1 < tasks.first.size(); ++r) {
      by_task.push_back(std::accumulate(all.begin() + tasks.first[r],
                                        all.begin() + tasks.first[r + 1],
                                        int64_t{0}));
    }
  }
  seen_->add_step(batch, by_task);
  if (state_.step_ends()) copy();
  state_.hand_over();
}

void ElasticKeeper::after_epoch() {
  if (!state_.on()) return;
  seen_->end_epoch();
  seen_->stopped = loop_.stopping();
  copy();
}

void ElasticKeeper::end(const History& history) {
  if (!state_.on()) return;
  state_.result() = history;
}

std::vector<TaskReport::Seen> ElasticKeeper::seen() const {
  if (!state_.on()) return {};
  return seen_->epochs();
}

}  // namespace berth::keras
