#include "keras/training/elastic_keeper.h"

#include <fmt/format.h>

#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <utility>

#include "base/where.h"
#include "distribute/multi_worker/elastic_run.h"
#include "distribute/multi_worker/step_consensus.h"
#include "io/checkpoint_impl.h"
#include "keras/callbacks/chief_only.h"
#include "keras/callbacks/fit_state.h"
#include "keras/optimizers/optimizer_base.h"
#include "keras/training/training.h"
#include "tensor/tensor_impl.h"

namespace berth::keras {

namespace {

constexpr const char* kService = "berth/elastic";
constexpr size_t kPieceBytes = size_t{64} << 20;  // of one answer

int64_t progress_of(const FitPosition& p) {
  return (int64_t{p.epoch} << 32) + p.batch;
}

}  // namespace

struct ElasticKeeper::Kept final : distribute::KeptFit {
  std::mutex mutex;
  std::shared_ptr<train::CheckpointImage> image, spare;
  int64_t progress = -1;
  std::optional<History> result;  // the fit is over
};

struct ElasticKeeper::Parts {
  Parts(Model& model, Site site)
      : fit(std::make_shared<FitState>()),
        seen(std::make_shared<ExamplesSeen>()),
        checkpoint(
            {{"model", model},
             {"fit", std::static_pointer_cast<train::Tracked>(fit)},
             {"examples", std::static_pointer_cast<train::Tracked>(seen)},
             {"random", train::random_state()}},
            site) {}
  std::shared_ptr<FitState> fit;
  std::shared_ptr<ExamplesSeen> seen;
  train::Checkpoint::Impl checkpoint;
};

ElasticKeeper::ElasticKeeper(Model& model, Model::Training& training,
                             FitLoop& loop, Site site)
    : core_(training.core),
      run_(core_ && core_->elastic_run() && !core_->elastic_run()->over
               ? core_->elastic_run()
               : nullptr),
      model_(model),
      training_(training),
      loop_(loop),
      site_(site) {}

ElasticKeeper::~ElasticKeeper() = default;

// Answers "FIT FIRST" with values from that one on, and what is said of them.
void ElasticKeeper::serve() const {
  core_->link()->member().serve(
      kService,
      [run = run_](const distribute::TaskId&, const cluster::Message& request) {
        size_t fit = 0, first = 0;
        std::istringstream(request.text) >> fit >> first;
        std::shared_ptr<Kept> kept;
        {
          const std::lock_guard lock(run->mutex);
          if (fit < run->fits.size()) {
            kept = std::static_pointer_cast<Kept>(run->fits[fit]);
          }
        }
        if (!kept) throw errors::NotFound("there is no such fit here");
        const std::lock_guard lock(kept->mutex);
        const train::CheckpointImage& image = *kept->image;
        if (first > image.tensors.size()) {
          throw errors::InvalidArgument(
              fmt::format("the fit has {} values here; {} were asked for",
                          image.tensors.size(), first));
        }
        nlohmann::json j = {{"progress", kept->progress},
                            {"names", nlohmann::json::array()}};
        if (first == 0) {
          for (const auto& [name, o] : image.objects) {
            j["objects"][name] = {o.kind, o.text};
          }
        }
        cluster::Message answer;
        size_t bytes = 0;
        for (size_t i = first; i < image.tensors.size() && bytes < kPieceBytes;
             ++i) {
          j["names"].push_back(image.tensors[i].name);
          answer.tensors.push_back(image.tensors[i].value);
          bytes += image.tensors[i].value.impl()->size_bytes();
        }
        j["left"] = image.tensors.size() - first - answer.tensors.size();
        answer.text = j.dump();
        return answer;
      });
}

void ElasticKeeper::fetch(int from) {
  cluster::Member& member = core_->link()->member();
  const distribute::TaskId peer = member.ranks()[static_cast<size_t>(from)];
  auto image = std::make_shared<train::CheckpointImage>();
  int64_t progress = 0;
  for (size_t left = 1; left > 0;) {
    const cluster::Message m =
        member
            .call(peer, kService,
                  {fmt::format("{} {}", number_, image->tensors.size()), {}})
            .get();
    try {
      const auto j = nlohmann::json::parse(m.text);
      progress = j.at("progress").get<int64_t>();
      left = j.at("left").get<size_t>();
      const auto objects = j.value("objects", nlohmann::json::object());
      for (const auto& [name, o] : objects.items()) {
        image->objects[name] = {o.at(0), o.at(1)};
      }
      if (left > 0 && m.tensors.empty()) {
        throw errors::DataLoss(fmt::format(
            "elastic(): {} says that {} values of its state are left, and "
            "sent none",
            peer.str(), left));
      }
      for (size_t i = 0; i < m.tensors.size(); ++i) {
        image->tensors.push_back({j.at("names").at(i), m.tensors[i]});
      }
    } catch (const nlohmann::json::exception& e) {
      throw errors::DataLoss(
          fmt::format("elastic(): what {} sent of its state is damaged ({})",
                      peer.str(), e.what()));
    }
  }
  kept_ = std::make_shared<Kept>();
  kept_->image = std::move(image);
  kept_->progress = progress;
  fetched_ = true;
  keep();
}

// The fits of `train` up to this one; what the last one held is here, too.
void ElasticKeeper::keep() {
  const std::lock_guard lock(run_->mutex);
  if (run_->fits.size() <= number_) run_->fits.resize(number_ + 1);
  if (run_->fits[number_] == kept_) return;
  run_->fits[number_] = kept_;
  for (size_t i = 0; i < number_; ++i) {  // only what they returned
    const auto earlier = std::static_pointer_cast<Kept>(run_->fits[i]);
    if (!earlier || !earlier->image) continue;
    const std::lock_guard its(earlier->mutex);
    auto slim = std::make_shared<train::CheckpointImage>();
    slim->objects = std::move(earlier->image->objects);
    earlier->image = std::move(slim);
    earlier->spare.reset();
  }
}

std::optional<History> ElasticKeeper::begin() {
  if (!run_) return std::nullopt;
  number_ = run_->next_fit++;
  run_->restored = false;
  parts_ = std::make_unique<Parts>(model_, site_);
  if (number_ < run_->fits.size()) {
    kept_ = std::static_pointer_cast<Kept>(run_->fits[number_]);
  }
  serve();
  distribute::CollectiveExecutor& link = *core_->link();
  size_t fits = 0;
  int64_t best = -1;
  int from = -1, rank = 0;
  for (const std::string& text : distribute::gather_texts(
           link,
           fmt::format("{} {}", run_->fits.size(),
                       kept_ ? kept_->progress : int64_t{-1}),
           "what each task keeps of a fit")) {
    size_t its = 0;
    int64_t progress = -1;
    std::istringstream(text) >> its >> progress;
    fits = std::max(fits, its);
    if (progress > best) {
      best = progress;
      from = rank;
    }
    ++rank;
  }
  if (from < 0) {
    kept_.reset();
    return std::nullopt;
  }
  if (!kept_ || kept_->progress < best) fetch(from);
  const bool over = number_ + 1 < fits;
  if (!over) {
    parts_->checkpoint.restore(*kept_->image, "elastic()", site_)
        .expect_partial();
    if (fetched_) parts_->fit->read_anew(loop_.data_part());
    restored_ = run_->restored = true;
  }
  // Nobody changes what others still read.
  link.member().exchange().barrier(
      {.channel = "agree", .what = "the state of a fit"});
  if (!over) return std::nullopt;
  if (!kept_->result) {
    parts_->fit->set_state({{}, kept_->image->objects["fit"].text});
    kept_->result = parts_->fit->history();
    parts_->seen->set_state({{}, kept_->image->objects["examples"].text});
    kept_->result->tasks.emplace().epochs = parts_->seen->epochs();
  }
  return kept_->result;
}

void ElasticKeeper::apply(bool moved) {
  if (!run_) return;
  if (restored_) {
    parts_->fit->apply(loop_, "elastic()" + where_text(nullptr, site_));
    if (parts_->seen->stopped) model_.stop_training();
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
  since_ = 0;
  settle(model_, site_);
  parts_->fit->read(loop_);
  if (!kept_) kept_ = std::make_shared<Kept>();
  auto image = std::move(kept_->spare);
  if (!image) image = std::make_shared<train::CheckpointImage>();
  parts_->checkpoint.copy_to(image.get(), site_);
  {
    const std::lock_guard lock(kept_->mutex);
    kept_->spare = std::exchange(kept_->image, std::move(image));
    kept_->progress = progress_of(loop_.position());
  }
  keep();
}

void ElasticKeeper::after_step(int64_t batch, int64_t examples) {
  if (!run_) return;
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
  parts_->seen->add_step(batch, by_task);
  const bool told = run_->told_to_end && run_->told_to_end();
  if (++since_ >= run_->options.steps_per_copy || told) copy();
  if (!told || core_->link()->ranks() < 2) return;
  run_->leaving = true;
  core_->link()->member().announce_end();
  throw errors::Aborted(
      fmt::format("elastic(){}: this task was told to end, and hands over",
                  where_text(nullptr, site_)));
}

void ElasticKeeper::after_epoch() {
  if (!run_) return;
  parts_->seen->end_epoch();
  parts_->seen->stopped = loop_.stopping();
  copy();
}

void ElasticKeeper::end(const History& history) {
  if (!run_) return;
  kept_->result = history;
}

std::vector<TaskReport::Seen> ElasticKeeper::seen() const {
  if (!run_) return {};
  return parts_->seen->epochs();
}

}  // namespace berth::keras
