#include "keras/training/elastic_state.h"

#include <fmt/format.h>

#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/where.h"
#include "distribute/multi_worker/elastic_run.h"
#include "distribute/multi_worker/step_consensus.h"
#include "io/checkpoint_impl.h"
#include "tensor/tensor_impl.h"

namespace berth::keras {

namespace {

constexpr const char* kService = "berth/elastic";
constexpr size_t kPieceBytes = size_t{64} << 20;  // of one answer

}  // namespace

struct ElasticState::Kept final : distribute::KeptFit {
  std::mutex mutex;
  std::shared_ptr<train::CheckpointImage> image, spare;
  int64_t progress = -1;
  std::optional<History> result;  // the fit is over
};

ElasticState::ElasticState(std::shared_ptr<distribute::StrategyCore> core,
                           Site site)
    : core_(std::move(core)),
      run_(core_ && core_->elastic_run() && !core_->elastic_run()->over
               ? core_->elastic_run()
               : nullptr),
      site_(site) {}

ElasticState::~ElasticState() = default;

// Answers "FIT FIRST" with values from that one on, and what is said of them.
void ElasticState::serve() const {
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

void ElasticState::fetch(int from) {
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
void ElasticState::keep() {
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

ElasticState::Found ElasticState::begin(train::Objects objects) {
  number_ = run_->next_fit++;
  run_->restored = false;
  checkpoint_ =
      std::make_unique<train::Checkpoint::Impl>(std::move(objects), site_);
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
    return Found::kNothing;
  }
  if (!kept_ || kept_->progress < best) fetch(from);
  const bool over = number_ + 1 < fits;
  if (!over) {
    checkpoint_->restore(*kept_->image, "elastic()", site_).expect_partial();
    run_->restored = true;
  }
  // Nobody changes what others still read.
  link.member().exchange().barrier(
      {.channel = "agree", .what = "the state of a fit"});
  return over ? Found::kEnd : Found::kState;
}

const std::string& ElasticState::text(const std::string& object) const {
  return kept_->image->objects[object].text;
}

std::optional<History>& ElasticState::result() { return kept_->result; }

void ElasticState::copy(int64_t progress) {
  since_ = 0;
  if (!kept_) kept_ = std::make_shared<Kept>();
  auto image = std::move(kept_->spare);
  if (!image) image = std::make_shared<train::CheckpointImage>();
  checkpoint_->copy_to(image.get(), site_);
  {
    const std::lock_guard lock(kept_->mutex);
    kept_->spare = std::exchange(kept_->image, std::move(image));
    kept_->progress = progress;
  }
  keep();
}

bool ElasticState::step_ends() {
  told_ = run_->told_to_end && run_->told_to_end();
  return ++since_ >= run_->options.steps_per_copy || told_;
}

void ElasticState::hand_over() {
  if (!told_ || core_->link()->ranks() < 2) return;
  run_->leaving = true;
  core_->link()->member().announce_end();
  throw errors::Aborted(
      fmt::format("elastic(){}: this task was told to end, and hands over",
                  where_text(nullptr, site_)));
}

}  // namespace berth::keras
