#include "rpc/succession.h"

#include <fmt/format.h>

#include <cinttypes>
#include <cstdio>
#include <thread>

namespace berth::rpc {

namespace {

// A task that was stopped takes connections, and says nothing.
constexpr double kAnswerSeconds = 1;
constexpr const char* kPrefix = "not yet: of the coordinator";

}  // namespace

std::string who_answer(const Membership& m) {
  return fmt::format("{} {} {} {}", kPrefix, m.coordinates() ? 1 : 0,
                     m.phase == Membership::Phase::kRunning ? 1 : 0,
                     m.generation);
}

WhoAnswer parse_who(const std::string& text) {
  WhoAnswer a;
  if (text.empty()) return a;
  a.there = true;  // another answer: it is there, and does not coordinate
  int coordinates = 0, running = 0;
  uint64_t generation = 0;
  if (text.starts_with(kPrefix) &&
      std::sscanf(text.c_str() + std::string(kPrefix).size(), "%d %d %" SCNu64,
                  &coordinates, &running, &generation) == 3) {
    a.coordinates = coordinates == 1;
    a.running = running == 1;
    a.generation = generation;
  }
  return a;
}

std::vector<WhoAnswer> ask_all(const Membership& m, Dialer& dialer) {
  std::vector<WhoAnswer> answers(m.places.size());
  std::vector<std::thread> threads;
  const double seconds = std::min(kAnswerSeconds, m.options.dead_after_seconds);
  for (size_t p = 0; p < m.places.size(); ++p) {
    if (m.places[p] == m.task) continue;
    threads.emplace_back([&, p] {
      try {
        answers[p] = parse_who(dialer.ask(m.places[p], after(seconds)));
      } catch (const errors::Error&) {
        // Not there, as far as this task can know.
      }
    });
  }
  for (std::thread& t : threads) t.join();
  return answers;
}

std::optional<size_t> choose_head(const std::vector<WhoAnswer>& answers,
                                  size_t own, bool coordinates) {
  std::optional<size_t> running, forming;
  bool one_before = false;
  for (size_t p = 0; p < answers.size(); ++p) {
    const WhoAnswer& a = answers[p];
    if (p == own || !a.there) continue;
    one_before = one_before || p < own;
    if (!a.coordinates) continue;
    if (!a.running) {
      if (!forming) forming = p;
    } else if (!running || answers[*running].generation < a.generation) {
      running = p;
    }
  }
  if (running) return running;
  if (coordinates && (!forming || own < *forming)) return own;
  if (forming) return forming;
  if (one_before) return std::nullopt;  // that one will
  return own;
}

}  // namespace berth::rpc
