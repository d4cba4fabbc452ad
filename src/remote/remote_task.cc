#include "remote/remote_task.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/diagnostics.h"
#include "base/immortal.h"
#include "base/where.h"
#include "device/device_manager.h"

namespace berth::remote {

namespace {

constexpr size_t kMostUnderWay = 2;
constexpr size_t kMostBytes = size_t{1} << 20;
constexpr auto kSayWhoIsLate = std::chrono::seconds(10);

}  // namespace

RemoteTask::RemoteTask(cluster::TaskId task)
    : task_(std::move(task)),
      name_(fmt::format("/job:{}/replica:0/task:{}", task_.job, task_.index)) {}

RemoteTask::What& RemoteTask::current() { return of_this_thread<What>(); }

void RemoteTask::connect(std::shared_ptr<cluster::Member> member) {
  Lock lock(mutex_);
  if (session_ > 0) lose(posted_ + 1, "it was connected anew");
  member_ = std::move(member);
  ++session_;
  lost_ = false;
  valid_from_ = posted_;
  failures_.reset(posted_);
  run_drops(lock);
}

void RemoteTask::lose(const std::string& why) {
  Lock lock(mutex_);
  lose(posted_ + 1, why);
  run_drops(lock);
}

std::shared_ptr<cluster::Member> RemoteTask::member() const {
  Lock lock(mutex_);
  return member_;
}

uint64_t RemoteTask::session() const {
  Lock lock(mutex_);
  return session_;
}

uint64_t RemoteTask::posted() const {
  Lock lock(mutex_);
  return posted_;
}

uint64_t RemoteTask::append(Lock&, const Writer& command,
                            std::vector<Tensor> carried) {
  ++posted_;
  batch_.what.push_back(current());
  batch_.numbers.push_back(posted_);
  bytes_.number(uint64_t{carried.size()}).text(command.bytes());
  for (Tensor& t : carried) carried_.push_back(std::move(t));
  return posted_;
}

uint64_t RemoteTask::post(const Writer& command, Tensor carried) {
  Lock lock(mutex_);
  std::vector<Tensor> all;
  if (carried.defined()) all.push_back(std::move(carried));
  const uint64_t number = append(lock, command, std::move(all));
  if (bytes_.bytes().size() > kMostBytes || carried_.size() > 64) {
    flush_locked(true);
  }
  return number;
}

Tensor RemoteTask::ask(const Writer& command, std::vector<Tensor> carried,
                       const char* what) {
  auto answer = std::make_shared<std::optional<Tensor>>();
  Lock lock(mutex_);
  const What before = current();
  if (*what != '\0') current() = {what, {}};
  const uint64_t number = append(lock, command, std::move(carried));
  current() = before;
  batch_.questions.push_back({batch_.what.size() - 1, answer});
  wait_for(lock, number);
  run_drops(lock);
  if (answer->has_value()) return **answer;
  lock.unlock();
  check(number);
  throw errors::Internal(fmt::format("{} gave no answer; expected one", name_));
}

void RemoteTask::launch(const Work& work, Stream& stream) {
  bool skipped;
  {
    Lock lock(mutex_);
    skipped = lost_ || failures_.poisoned();
    if (skipped) {  // a failed number of its own
      ++posted_;
      if (batch_.what.empty() && under_way_.empty()) done_ = posted_;
    }
  }
  if (work.time) *work.time = {host_clock_us(), host_clock_us()};
  if (!skipped && work.run) {
    const What before = std::exchange(current(), {work.what, work.site});
    try {
      work.run(work.context, stream);
    } catch (const errors::Error& e) {
      fail(e.code(), e.what());
    } catch (const std::exception& e) {
      fail(errors::Code::kInternal, e.what());
    }
    current() = before;
  }
  Lock lock(mutex_);
  take_answers();
  if (work.drop) {
    auto& to = batch_.what.empty() && under_way_.empty() ? drops_
               : batch_.what.empty() ? under_way_.back()->drops
                                     : batch_.drops;
    to.push_back({work.drop, work.context});
  }
  flush_locked(false);
  run_drops(lock);
}

void RemoteTask::flush() {
  Lock lock(mutex_);
  flush_locked(true);
}

void RemoteTask::flush_locked(bool force) {
  if (batch_.what.empty()) return;
  if (!force && under_way_.size() >= kMostUnderWay) return;
  auto batch = std::make_shared<Batch>(std::exchange(batch_, {}));
  batch->last = posted_;
  cluster::Message message;
  message.tensors = std::exchange(carried_, {});
  message.tensors.insert(message.tensors.begin(), tensor_of(bytes_.bytes()));
  bytes_.clear();
  under_way_.push_back(batch);
  if (lost_ || !member_) {
    return lose(batch->numbers[0], member_ ? lost_why_ : "it is not connected");
  }
  try {
    batch->reply = member_->call(task_, kDevices, std::move(message)).share();
  } catch (const std::exception& e) {
    lose(batch->numbers[0], e.what());
  }
}

void RemoteTask::lose(uint64_t from, const std::string& why) {
  if (!lost_) {
    lost_ = true;
    lost_why_ = why;
  }
  flush_locked(true);  // fails like the rest
  failures_.add(from,
                std::make_shared<const Failure>(Failure{
                    errors::Code::kUnavailable,
                    fmt::format("{} was lost: {}; what it had is gone: connect "
                                "anew with config::connect_to_cluster()",
                                name_, lost_why_)}));
  for (const auto& batch : under_way_) {
    drops_.insert(drops_.end(), batch->drops.begin(), batch->drops.end());
  }
  answered_.insert(answered_.end(), under_way_.begin(), under_way_.end());
  under_way_.clear();
  done_ = posted_;
}

void RemoteTask::take_answers() {
  while (!under_way_.empty()) {
    Batch& batch = *under_way_.front();
    if (batch.reply.wait_for(std::chrono::seconds(0)) !=
        std::future_status::ready) {
      return;
    }
    answered_.push_back(under_way_.front());
    try {
      take(batch);
    } catch (const std::exception& e) {
      return lose(batch.numbers[0], e.what());
    }
    under_way_.pop_front();
    done_ = batch.last;
    if (under_way_.empty() && batch_.what.empty()) done_ = posted_;
    drops_.insert(drops_.end(), batch.drops.begin(), batch.drops.end());
  }
}

void RemoteTask::take(Batch& batch) {
  const cluster::Message& reply = batch.reply.get();
  if (reply.tensors.empty()) {
    throw errors::Internal("an answer without its bytes");
  }
  Reader r(bytes_of(reply.tensors[0]));
  std::map<uint64_t, size_t> answered;  // command -> tensor
  const size_t answers = r.count();
  for (size_t i = 0; i < answers; ++i) answered[r.number()] = i + 1;
  for (const Question& q : batch.questions) {
    const auto at = answered.find(q.command);
    if (at != answered.end()) *q.answer = reply.tensors.at(at->second);
  }
  if (r.number() == 0) return;
  const uint64_t failed_at = r.number();
  const auto code = static_cast<errors::Code>(r.number());
  std::string why(r.text());
  const size_t at =
      std::min<size_t>(static_cast<size_t>(failed_at), batch.what.size() - 1);
  const What& what = batch.what[at];
  const std::string op = fmt::format("{}: ", what.op);
  if (why.starts_with(op)) why.erase(0, op.size());
  // The device's own hint; here the line skips what follows.
  if (why.find("reset_device_error(") != why.npos) {
    why.erase(std::min(why.rfind("; what "), why.size()));
  }
  why += fmt::format(
      "; what it was given after that is skipped, until "
      "config::reset_device_error() of a device of it");
  std::string text = fmt::format("{} failed on {}{}: {}", what.op, name_,
                                 where_text(nullptr, what.site), why);
  failures_.add(batch.numbers[at],
                std::make_shared<const Failure>(Failure{code, text}));
}

void RemoteTask::run_drops(Lock& lock) {
  while (!drops_.empty() || !answered_.empty()) {
    const std::vector<Drop> all = std::exchange(drops_, {});
    auto answered = std::exchange(answered_, {});
    lock.unlock();
    answered.clear();
    for (const Drop& d : all) d.fn(d.context);
    lock.lock();
  }
}

bool RemoteTask::done(uint64_t number) {
  Lock lock(mutex_);
  take_answers();
  flush_locked(false);
  const bool is = number <= done_;
  run_drops(lock);
  return is;
}

void RemoteTask::wait_for(Lock& lock, uint64_t number) {
  flush_locked(true);
  take_answers();
  const auto begin = std::chrono::steady_clock::now();
  while (done_ < number && !under_way_.empty()) {
    const std::shared_future<cluster::Message> reply =
        under_way_.front()->reply;
    lock.unlock();
    if (reply.wait_for(kSayWhoIsLate) != std::future_status::ready) {
      berth::report(
          {"waiting",
           debugging::Severity::kInfo,
           fmt::format("waiting for {} for {} s", name_,
                       std::chrono::duration_cast<std::chrono::seconds>(
                           std::chrono::steady_clock::now() - begin)
                           .count()),
           {}});
    }
    lock.lock();
    take_answers();
  }
}

void RemoteTask::wait(uint64_t number) {
  wait_quietly(number);
  check(number);
}

void RemoteTask::wait_quietly(uint64_t number) {
  Lock lock(mutex_);
  if (number > done_) wait_for(lock, number);
  run_drops(lock);
}

void RemoteTask::check(uint64_t number) const {
  check_session(number);
  Lock lock(mutex_);
  if (const FailureRef failure = failures_.at(number)) {
    errors::raise(failure->code, failure->message);
  }
}

void RemoteTask::check_open() const {
  Lock lock(mutex_);
  if (!failures_.poisoned()) return;
  const FailureRef failure = failures_.at(posted_);
  errors::raise(failure->code, failure->message);
}

void RemoteTask::check_session(uint64_t number) const {
  Lock lock(mutex_);
  if (number <= valid_from_ && valid_from_ > 0) {
    throw errors::Unavailable(fmt::format(
        "the value was on {}, which has been connected anew since: make or "
        "restore it again",
        name_));
  }
}

void RemoteTask::reset() {
  Lock lock(mutex_);
  wait_for(lock, posted_);
  if (!lost_ && failures_.poisoned()) {
    const uint64_t number =
        append(lock, Writer().number(uint64_t(Command::kReset)), {});
    wait_for(lock, number);
    if (!lost_) failures_.reset(posted_);
  }
  run_drops(lock);
}

void RemoteTask::fail(errors::Code code, const std::string& why) {
  Lock lock(mutex_);
  const What& what = current();
  ++posted_;
  if (batch_.what.empty() && under_way_.empty()) done_ = posted_;
  failures_.add(posted_,
                std::make_shared<const Failure>(Failure{
                    code, fmt::format("{} failed on {}{}: {}", what.op, name_,
                                      where_text(nullptr, what.site), why)}));
}

}  // namespace berth::remote
