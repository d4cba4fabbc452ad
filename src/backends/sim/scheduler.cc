#include "backends/sim/scheduler.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::sim {

namespace {

// Mixes 64 bits (the finaliser of SplitMix64).
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

void Scheduler::set_seed(uint64_t seed) {
  std::lock_guard lock(mutex_);
  seed_ = seed;
  picks_ = 0;
}

void Scheduler::pass_waits() {
  for (bool again = true; again;) {
    again = false;
    for (SimStream* s : streams_) {
      while (s->has_head() && !s->busy_) {
        const SimStream::Entry& e = s->head();
        if (e.kind == SimStream::Kind::kWork) break;
        // Wait entries only refer to streams of this scheduler.
        auto* from = static_cast<SimStream*>(e.event.stream);
        const uint64_t sequence = e.event.sequence;
        // A poisoned stream waits, too: work launched after its reset relies on
        // the order.
        if (e.kind == SimStream::Kind::kPoison) {
          s->complete(s->clock_us_, from->failures_.at(sequence));
        } else if (from->completed_ >= sequence) {
          s->complete(std::max(s->clock_us_, from->finished_us(sequence)),
                      e.kind == SimStream::Kind::kWait
                          ? from->failures_.at(sequence)
                          : nullptr);
        } else {
          break;
        }
        again = true;
      }
    }
  }
}

SimStream* Scheduler::pick() {
  SimStream* best = nullptr;
  uint64_t best_rank = 0;
  // How long a priority lasts. Some seeds shuffle finely, others starve a
  // stream for long, which exposes missing waits that are far apart.
  const uint64_t epoch = picks_ >> (2 * (seed_ & 3));
  for (SimStream* s : streams_) {
    if (!s->has_head() || s->busy_) continue;
    if (s->head().kind != SimStream::Kind::kWork) continue;
    if (s->head_hangs()) continue;
    const uint64_t rank =
        seed_ == 0 ? s->head().order : mix(mix(seed_ ^ mix(epoch)) + s->index_);
    if (best == nullptr || rank < best_rank) {
      best = s;
      best_rank = rank;
    }
  }
  if (best) ++picks_;
  return best;
}

bool Scheduler::nobody_works() const {
  int idle = 0;
  for (const Waiter* w = waiters_; w; w = w->next) {
    if (w->stream->completed_ < w->sequence) idle += w->executing;
  }
  return idle == executing_;
}

void Scheduler::run_until(Lock& lock, SimStream& stream, uint64_t sequence) {
  while (true) {
    pass_waits();
    if (stream.completed_ >= sequence) return;
    if (SimStream* s = pick()) {
      s->execute(lock);
      continue;
    }
    Waiter me{&stream, sequence, executing_here(), waiters_};
    waiters_ = &me;
    const bool stuck = nobody_works();
    if (!stuck) progress_.wait(lock);
    Waiter** at = &waiters_;
    while (*at != &me) at = &(*at)->next;
    *at = me.next;
    if (!stuck || break_wait(stream, false)) continue;
    throw errors::Internal(fmt::format(
        "waiting for point {} of the {} stream, which has reached {} of {}: "
        "{}; expected a wait for work that is launched already",
        sequence, stream.label(), stream.completed_, stream.pushed_,
        stream.has_head() ? "the work that runs there waits for itself"
                          : "nobody launched it"));
  }
}

bool Scheduler::break_wait(SimStream& target, bool polls) {
  // Find the hanging stream: follow the waits from `target`.
  const auto hangs = [](const SimStream& s) {
    return s.has_head() && !s.busy_;
  };
  if (!hangs(target)) return false;
  SimStream* s = &target;
  for (size_t i = 0; i < streams_.size(); ++i) {
    if (s->head().kind == SimStream::Kind::kWork) break;
    auto* from = static_cast<SimStream*>(s->head().event.stream);
    if (!hangs(*from)) break;
    s = from;
  }
  if (s->head().kind == SimStream::Kind::kWork) {
    if (!polls) s->faults_->let_go = true;
    return !polls;
  }
  const Event e = s->head().event;
  auto* from = static_cast<SimStream*>(e.stream);
  auto failure = std::make_shared<const Failure>(Failure{
      errors::Code::kInternal,
      fmt::format("the {} stream waits for point {} of the {} stream, which "
                  "has reached {} of {} and {}; expected a wait for work that "
                  "is launched before and does not wait for this",
                  s->label(), e.sequence, from->label(), from->completed_,
                  from->pushed_,
                  e.sequence > from->pushed_
                      ? "got no such work"
                      : "itself waits for something that cannot happen: the "
                        "waits form a cycle")});
  s->complete(s->clock_us_, std::move(failure));
  return true;
}

}  // namespace berth::sim
