#include "backends/cuda/nccl_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <system_error>
#include <thread>

#include "base/environment.h"
#include "base/immortal.h"
#include "berth/errors.h"
#include "device/engine_thread.h"

namespace berth::cuda {

namespace {

constexpr double kTimeoutSeconds = 600;
constexpr double kMostGraceSeconds = 10;
constexpr double kCallSeconds = 60;
constexpr auto kPollCalls = std::chrono::microseconds(5);

double read_timeout() {
  const std::string text = environment("BERTH_NCCL_TIMEOUT");
  if (text.empty()) return kTimeoutSeconds;
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !(seconds > 0) || !std::isfinite(seconds)) {
    throw errors::InvalidArgument(fmt::format(
        "BERTH_NCCL_TIMEOUT is '{}'; expected a number of seconds above 0, "
        "such as {}",
        text, kTimeoutSeconds));
  }
  return seconds;
}

// Throws the error of a call, unless it is merely in progress.
void check_call(const Nccl& nccl, NcclResult result, const char* call,
                NcclComm comm) {
  if (result == kNcclSuccess || result == kNcclInProgress) return;
  throw errors::Aborted(nccl.text_of(call, result, comm));
}

// Wraps fn in ncclGroupStart and ncclGroupEnd, which is always called.
template <class Fn>
void in_a_group(const Nccl& nccl, const Fn& fn) {
  check_call(nccl, nccl.calls().ncclGroupStart(), "ncclGroupStart", nullptr);
  try {
    fn();
  } catch (const errors::Error&) {
    nccl.calls().ncclGroupEnd();
    throw;
  }
  check_call(nccl, nccl.calls().ncclGroupEnd(), "ncclGroupEnd", nullptr);
}

void refuse_parts_of_a_card(const NcclRound& round) {
  std::set<const CudaCard*> cards;
  for (const NcclMember& m : round.members) {
    if (cards.insert(m.card).second) continue;
    throw errors::InvalidArgument(fmt::format(
        "{}: {} is a part of a card that another member is a part of; NCCL "
        "adds between distinct cards",
        round.text(), m.device));
  }
}

}  // namespace

double nccl_call_seconds(const NcclRound& round) {
  return std::max(round.timeout_seconds,
                  std::min(NcclSums::default_timeout_seconds(), kCallSeconds));
}

std::chrono::duration<double> nccl_grace(const NcclRound& round) {
  return std::chrono::duration<double>(
      std::min(nccl_call_seconds(round), kMostGraceSeconds));
}

NcclSums& NcclSums::get() {
  static auto& sums = [&]() -> NcclSums& {
    std::string why;
    const Nccl* nccl = Nccl::find(&why);
    if (nccl == nullptr) throw errors::Internal(why);
    return immortal<NcclSums>(*nccl);
  }();
  return sums;
}

double NcclSums::default_timeout_seconds() {
  static const double seconds = read_timeout();
  return seconds;
}

CUevent NcclSums::take_event(CudaCard& card) {
  {
    const std::lock_guard lock(mutex_);
    auto& spare = spare_[&card];
    if (!spare.empty()) {
      CUevent event = spare.back();
      spare.pop_back();
      return event;
    }
  }
  CUevent event = nullptr;
  card.call(card.driver().cuEventCreate, &event,
            unsigned{CU_EVENT_DISABLE_TIMING});
  return event;
}

void NcclSums::give_back(CudaCard& card, CUevent event) noexcept {
  const std::lock_guard lock(mutex_);
  spare_[&card].push_back(event);
}

void NcclSums::issue(const Round& round) {
  refuse_parts_of_a_card(*round);
  const std::lock_guard lock(mutex_);
  if (!started_) {
    try {
      std::thread([this] { run_issuer(); }).detach();
      std::thread([this] { run_watcher(); }).detach();
    } catch (const std::system_error& e) {
      throw errors::ResourceExhausted(
          fmt::format("{}: no thread: {}", round->text(), e.what()));
    }
    started_ = true;
  }
  queue_.push_back(round);
  changed_.notify_all();
}

void NcclSums::await_issue(const NcclRound& round) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock,
                [&] { return round.state() != NcclRound::State::kQueued; });
  lock.unlock();
  if (round.failed()) round.raise();
}

void NcclSums::run_issuer() {
  enter_host_thread();
  for (;;) {
    Round round;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !queue_.empty(); });
      round = std::move(queue_.front());
      queue_.pop_front();
      if (round->failed()) continue;
    }
    now_calling(round);
    call_nccl(round);
    const std::lock_guard lock(mutex_);
    calling_.reset();
    stuck_ = false;
  }
}

void NcclSums::now_calling(const Round& round) {
  const std::lock_guard lock(mutex_);
  calling_ = round;
  calling_since_ = Clock::now();
  changed_.notify_all();
}

void NcclSums::call_nccl(const Round& round) {
  std::shared_ptr<Team> team;
  try {
    wait_for_aborts(*round);
    team = team_of(*round);
    now_calling(round);
    append(*round, *team);
  } catch (const errors::Error& e) {
    fail(*round, e.code(), e.what());
    if (team) abort(team);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (!round->failed()) {
      round->set(NcclRound::State::kIssued);
      issued_.push_back({round, team});
      changed_.notify_all();
      return;
    }
  }
  abort(team);  // the watcher gave it up
}

std::shared_ptr<NcclSums::Team> NcclSums::team_of(const NcclRound& round) {
  Cards cards;
  for (const NcclMember& m : round.members) cards.push_back(m.card);
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = teams_.find(cards); it != teams_.end()) {
      return it->second;
    }
  }
  const auto team = std::make_shared<Team>();
  team->cards = cards;
  team->comms.assign(cards.size(), nullptr);
  try {
    make_team(round, *team);
  } catch (const errors::Error&) {
    abort(team);
    throw;
  }
  const std::lock_guard lock(mutex_);
  return teams_[cards] = team;
}

void NcclSums::make_team(const NcclRound& round, Team& team) {
  const NcclCalls& calls = nccl_.calls();
  {
    const std::lock_guard lock(team.mutex);
    NcclId id;
    check_call(nccl_, calls.ncclGetUniqueId(&id), "ncclGetUniqueId", nullptr);
    const int ranks = static_cast<int>(team.cards.size());
    in_a_group(nccl_, [&] {
      for (int r = 0; r < ranks; ++r) {
        const auto i = static_cast<size_t>(r);
        team.cards[i]->enter();
        NcclConfig config;
        check_call(
            nccl_,
            calls.ncclCommInitRankConfig(&team.comms[i], ranks, id, r, &config),
            "ncclCommInitRankConfig", nullptr);
      }
    });
  }
  await_calls(round, team, "ncclCommInitRankConfig");
}

void NcclSums::append(const NcclRound& round, Team& team) {
  std::vector<CUstream> streams;
  for (const NcclMember& m : round.members) {
    streams.push_back(stream_of(*m.card));
    m.card->call(m.card->driver().cuStreamWaitEvent, streams.back(),
                 m.begin.get(), 0u);
  }
  {
    const std::lock_guard lock(team.mutex);
    if (team.aborted) {
      throw errors::Aborted("an earlier sum of the same cards failed");
    }
    in_a_group(nccl_, [&] {
      for (size_t r = 0; r < streams.size(); ++r) {
        void* data = round.members[r].data;
        check_call(
            nccl_,
            nccl_.calls().ncclAllReduce(data, data, round.count, round.type,
                                        kNcclSum, team.comms[r], streams[r]),
            "ncclAllReduce", team.comms[r]);
      }
    });
  }
  await_calls(round, team, "ncclAllReduce");
  for (size_t r = 0; r < streams.size(); ++r) {
    const NcclMember& m = round.members[r];
    m.card->call(m.card->driver().cuEventRecord, m.end.get(), streams[r]);
  }
}

void NcclSums::await_calls(const NcclRound& round, Team& team,
                           const char* call) {
  const double seconds = nccl_call_seconds(round);
  const auto last = Clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    bool busy = false;
    {
      const std::lock_guard lock(team.mutex);
      if (team.aborted) {
        throw errors::Aborted("an earlier sum of the same cards failed");
      }
      for (const NcclComm comm : team.comms) {
        NcclResult is = kNcclSuccess;
        check_call(nccl_, nccl_.calls().ncclCommGetAsyncError(comm, &is),
                   "ncclCommGetAsyncError", comm);
        check_call(nccl_, is, call, comm);
        busy = busy || is == kNcclInProgress;
      }
    }
    if (!busy) return;
    if (Clock::now() > last) {
      throw errors::DeadlineExceeded(
          fmt::format("{} has not ended within {:g} s", call, seconds));
    }
    std::this_thread::sleep_for(kPollCalls);
  }
}

CUstream NcclSums::stream_of(CudaCard& card) {
  CUstream& stream = streams_[&card];
  if (stream == nullptr) {
    card.call(card.driver().cuStreamCreate, &stream,
              unsigned{CU_STREAM_NON_BLOCKING});
  }
  return stream;
}

}  // namespace berth::cuda
