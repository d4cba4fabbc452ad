// NcclSums: sums between the cards of this process.
//
// One thread calls NCCL, so that no two threads share a communicator and all
// sums of the process begin in one order on every card. On each card they run
// on a separate stream. Communicators do not block; they are made once per list
// of cards and kept. A second thread watches. A sum fails when a card has
// reached it and it does not end in time, when NCCL reports an error of it, or
// when one of its cards is lost. Its communicators are then aborted, which ends
// it on the other cards, and made again for the next sum. Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_NCCL_SUMS_H_
#define BERTH_BACKENDS_CUDA_NCCL_SUMS_H_

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cuda/nccl_library.h"
#include "backends/cuda/nccl_round.h"

namespace berth::cuda {

class NcclSums {
 public:
  // Returns that of the process. Nccl::find() has found the library.
  static NcclSums& get();
  explicit NcclSums(const Nccl& nccl) : nccl_(nccl) {}  // called by get()

  // Issues a round all of whose members have arrived. Throws
  // errors::InvalidArgument when two of them are on one card.
  void issue(const std::shared_ptr<NcclRound>& round);
  // Waits until an issued round is on the streams of its cards. Throws the
  // error with which it failed.
  void await_issue(const NcclRound& round);

  // Returns the seconds that a sum may take: BERTH_NCCL_TIMEOUT, 600 if not
  // set. Throws errors::InvalidArgument if that is not a number of seconds.
  static double default_timeout_seconds();

  // Used by NcclEvent.
  CUevent take_event(CudaCard& card);
  void give_back(CudaCard& card, CUevent event) noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  using Cards = std::vector<CudaCard*>;  // by rank
  using Round = std::shared_ptr<NcclRound>;

  // Communicators and their lock: held by the issuing thread while it calls,
  // and by a thread that asks for errors, until they are aborted.
  struct Team {
    Cards cards;
    std::mutex mutex;
    std::vector<NcclComm> comms;
    bool aborted = false;
  };
  // A sum on the cards, for the watcher.
  struct Watched {
    Round round;
    std::shared_ptr<Team> team;
    bool begun = false;            // a card has reached it
    Clock::time_point since = {};  // when begun, or when failed
  };

  // The issuing thread, which calls NCCL (nccl_sums.cc).
  void run_issuer();
  void call_nccl(const Round& round);
  std::shared_ptr<Team> team_of(const NcclRound& round);
  void make_team(const NcclRound& round, Team& team);
  void append(const NcclRound& round, Team& team);
  // Polls until no communicator has a call in progress.
  void await_calls(const NcclRound& round, Team& team, const char* call);
  CUstream stream_of(CudaCard& card);
  void now_calling(const Round& round);

  // The watcher thread (nccl_watch.cc).
  void run_watcher();
  // Returns false when the round needs no more watching.
  bool look(Watched& w);
  // Returns why it failed; "": it has not.
  std::string trouble(Watched& w, errors::Code* code);
  std::string late_text(const NcclRound& round) const;
  void look_at_issuer();

  // Called by both.
  void fail(NcclRound& round, errors::Code code, const std::string& why);
  // Aborts the communicators, unless already done. Without `wait`, skips them
  // while another thread uses them.
  void abort(const std::shared_ptr<Team>& team, bool wait = true);
  void abort_one(CudaCard& card, NcclComm comm) noexcept;
  void wait_for_aborts(const NcclRound& round);

  const Nccl& nccl_;
  std::map<CudaCard*, CUstream> streams_;  // the issuing thread's
  std::mutex mutex_;                       // guards all below
  std::condition_variable changed_;
  bool started_ = false;
  std::deque<Round> queue_;  // to be issued
  Round calling_;            // being issued
  Clock::time_point calling_since_;
  bool stuck_ = false;           // its call does not return
  std::vector<Watched> issued_;  // not yet seen by the watcher
  std::map<Cards, std::shared_ptr<Team>> teams_;
  int aborting_ = 0;  // communicators
  std::map<CudaCard*, std::vector<CUevent>> spare_;
};

// Returns how long calls of NCCL may take: making communicators takes longer
// than a sum, whose deadline may be short.
double nccl_call_seconds(const NcclRound& round);
// Returns how long releasing an aborted communicator may take.
std::chrono::duration<double> nccl_grace(const NcclRound& round);

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_NCCL_SUMS_H_
