// NcclSums: the thread that watches the sums on the cards.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

#include "backends/cuda/nccl_sums.h"
#include "device/engine_thread.h"

namespace berth::cuda {

namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(5);
constexpr char kAdvice[] =
    "BERTH_NCCL_TIMEOUT=<seconds> gives it more time, BERTH_COLLECTIVES=own "
    "adds by copies, without NCCL";

// Returns false for a lost card, too.
bool is_passed(const NcclMember& m, const NcclEvent& event) {
  try {
    return m.card->result(m.card->driver().cuEventQuery, event.get()) ==
           CUDA_SUCCESS;
  } catch (const errors::Error&) {
    return false;
  }
}

bool is_lost(const NcclMember& m, std::string* why) {
  try {
    m.card->enter();
    return false;
  } catch (const errors::Error& e) {
    *why = e.what();
    return true;
  }
}

// On the cards that still work.
bool has_ended(const NcclRound& round) {
  std::string ignored;
  return std::all_of(round.members.begin(), round.members.end(),
                     [&](const NcclMember& m) {
                       return is_passed(m, m.end) || is_lost(m, &ignored);
                     });
}

}  // namespace

void NcclSums::run_watcher() {
  enter_host_thread();
  std::vector<Watched> watched;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] {
        return !watched.empty() || !issued_.empty() || calling_ != nullptr;
      });
      std::move(issued_.begin(), issued_.end(), std::back_inserter(watched));
      issued_.clear();
    }
    std::erase_if(watched, [&](Watched& w) { return !look(w); });
    look_at_issuer();
    std::this_thread::sleep_for(kLookEvery);
  }
}

bool NcclSums::look(Watched& w) {
  NcclRound& round = *w.round;
  if (has_ended(round)) {
    std::string why;
    for (const NcclMember& m : round.members) {
      if (!round.failed() && is_lost(m, &why)) {
        fail(round, errors::Code::kAborted, why);
        abort(w.team, false);
      }
    }
    if (!round.failed()) round.set(NcclRound::State::kDone);
    return false;
  }
  if (round.failed()) {
    abort(w.team, false);
    if (Clock::now() - w.since < nccl_grace(round)) return true;
    round.set(NcclRound::State::kGivenUp);
    return false;
  }
  errors::Code code = errors::Code::kAborted;
  const std::string why = trouble(w, &code);
  if (why.empty()) return true;
  fail(round, code, why);
  w.since = Clock::now();
  abort(w.team, false);
  return true;
}

std::string NcclSums::trouble(Watched& w, errors::Code* code) {
  *code = errors::Code::kAborted;
  const NcclRound& round = *w.round;
  std::string why;
  for (const NcclMember& m : round.members) {
    if (is_lost(m, &why)) return why;
  }
  // If the issuing thread has the communicators, try again next time.
  if (const std::unique_lock lock(w.team->mutex, std::try_to_lock); lock) {
    if (w.team->aborted) return "an earlier sum of the same cards failed";
    for (const NcclComm comm : w.team->comms) {
      NcclResult is = kNcclSuccess;
      const NcclResult asked = nccl_.calls().ncclCommGetAsyncError(comm, &is);
      if (asked != kNcclSuccess) is = asked;
      if (is != kNcclSuccess && is != kNcclInProgress) {
        return nccl_.text_of("ncclAllReduce", is, comm);
      }
    }
  }
  // Its time starts when a card waits in it for the others.
  if (!std::exchange(w.begun, true)) w.since = Clock::now();
  w.begun =
      std::any_of(round.members.begin(), round.members.end(),
                  [](const NcclMember& m) { return is_passed(m, m.begin); });
  const std::chrono::duration<double> took = Clock::now() - w.since;
  if (!w.begun || took.count() < round.timeout_seconds) return "";
  *code = errors::Code::kDeadlineExceeded;
  return late_text(round);
}

std::string NcclSums::late_text(const NcclRound& round) const {
  std::vector<std::string> missing;
  for (const NcclMember& m : round.members) {
    if (!is_passed(m, m.begin)) missing.push_back(m.device);
  }
  std::string who = "all of them are in it";
  if (!missing.empty()) {
    who = fmt::format("not come to it: {}", fmt::join(missing, ", "));
  }
  return fmt::format("it has not ended within {:g} s; {}",
                     round.timeout_seconds, who);
}

// A call that does not return blocks all later sums.
void NcclSums::look_at_issuer() {
  std::vector<Round> held;
  {
    const std::lock_guard lock(mutex_);
    if (!calling_) return;
    const auto most =
        std::chrono::duration<double>(nccl_call_seconds(*calling_)) +
        2 * nccl_grace(*calling_);
    if (!stuck_ && Clock::now() - calling_since_ < most) return;
    stuck_ = true;
    held.assign(queue_.begin(), queue_.end());
    held.push_back(calling_);
  }
  for (const Round& r : held) {
    fail(*r, errors::Code::kDeadlineExceeded, "a call of NCCL does not return");
  }
}

void NcclSums::fail(NcclRound& round, errors::Code code,
                    const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (round.failed()) return;
  round.code_ = code;
  round.why_ = fmt::format("{} failed: {}; {}", round.text(), why, kAdvice);
  round.set(NcclRound::State::kFailed);
  changed_.notify_all();
}

// Each abort has its own thread, since one may wait for another, or forever.
void NcclSums::abort(const std::shared_ptr<Team>& team, bool wait) {
  {
    std::unique_lock lock(team->mutex, std::defer_lock);
    if (wait) {
      lock.lock();
    } else if (!lock.try_lock()) {
      return;
    }
    if (std::exchange(team->aborted, true)) return;
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(teams_, [&](const auto& t) { return t.second == team; });
  for (size_t r = 0; r < team->comms.size(); ++r) {
    const NcclComm comm = team->comms[r];
    if (comm == nullptr) continue;
    try {
      std::thread([this, team, r, comm] {
        abort_one(*team->cards[r], comm);
      }).detach();
      ++aborting_;
    } catch (const std::system_error&) {
      // Without a thread it stays as it is and times out later.
    }
  }
}

void NcclSums::abort_one(CudaCard& card, NcclComm comm) noexcept {
  try {
    card.enter();
  } catch (const errors::Error&) {
    // NCCL handles it as it can.
  }
  nccl_.calls().ncclCommAbort(comm);
  const std::lock_guard lock(mutex_);
  --aborting_;
  changed_.notify_all();
}

void NcclSums::wait_for_aborts(const NcclRound& round) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, nccl_grace(round),
                        [&] { return aborting_ == 0; })) {
    return;
  }
  throw errors::Aborted("NCCL has not let go of an earlier sum that failed");
}

}  // namespace berth::cuda
