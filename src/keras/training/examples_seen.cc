#include "keras/training/examples_seen.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "berth/errors.h"

namespace berth::keras {

train::ObjectState ExamplesSeen::state() const {
  nlohmann::json j = {
      {"counts", counts_},   {"rows", rows_},
      {"next", next_batch_}, {"size", batch_size_},
      {"stopped", stopped},  {"epochs", nlohmann::json::array()}};
  for (const TaskReport::Seen& e : epochs_) {
    j["epochs"].push_back({e.once, e.twice, e.never});
  }
  train::ObjectState out;
  out.text = j.dump();
  return out;
}

void ExamplesSeen::set_state(const train::ObjectState& state) {
  try {
    const auto j = nlohmann::json::parse(state.text);
    j.at("counts").get_to(counts_);
    j.at("rows").get_to(rows_);
    j.at("next").get_to(next_batch_);
    j.at("size").get_to(batch_size_);
    j.at("stopped").get_to(stopped);
    epochs_.clear();
    for (const auto& e : j.at("epochs")) {
      epochs_.push_back({e.at(0), e.at(1), e.at(2)});
    }
  } catch (const nlohmann::json::exception& e) {
    throw errors::DataLoss(fmt::format(
        "the count of examples that another task sent is damaged ({})",
        e.what()));
  }
}

void ExamplesSeen::add_step(int64_t batch,
                            const std::vector<int64_t>& by_task) {
  if (batch == 0) {
    rows_ = batch_size_ = 0;
    for (const int64_t n : by_task) batch_size_ += n;
  } else if (batch != next_batch_) {
    rows_ = batch * batch_size_;  // all but the last one are as large
  }
  for (const int64_t n : by_task) {
    add(rows_, rows_ + n);
    rows_ += n;
  }
  next_batch_ = batch + 1;
}

void ExamplesSeen::add(int64_t begin, int64_t end) {
  if (begin == end) return;
  const auto cut = [&](int64_t at) {
    auto next = counts_.upper_bound(at);
    const int64_t before =
        next == counts_.begin() ? 0 : std::prev(next)->second;
    return counts_.try_emplace(at, before).first;
  };
  cut(begin);
  cut(end);
  for (auto c = counts_.find(begin); c->first != end; ++c) ++c->second;
  // Neighbours with one count are one range.
  for (auto c = std::next(counts_.begin()); c != counts_.end();) {
    c = std::prev(c)->second == c->second ? counts_.erase(c) : std::next(c);
  }
}

TaskReport::Seen ExamplesSeen::counted() const {
  TaskReport::Seen seen;
  for (auto c = counts_.begin(); c != counts_.end(); ++c) {
    const auto next = std::next(c);
    if (c == counts_.begin()) seen.never += c->first;
    if (next == counts_.end()) break;  // after the last place
    const int64_t places = next->first - c->first;
    (c->second == 0   ? seen.never
     : c->second == 1 ? seen.once
                      : seen.twice) += places;
  }
  return seen;
}

void ExamplesSeen::end_epoch() {
  epochs_.push_back(counted());
  counts_.clear();
  rows_ = next_batch_ = 0;
}

}  // namespace berth::keras
