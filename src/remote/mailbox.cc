#include "remote/mailbox.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/diagnostics.h"
#include "base/immortal.h"
#include "remote/protocol.h"

namespace berth::remote {

namespace {

constexpr size_t kMostFailedRuns = 1000;
constexpr auto kSayWhoIsMissing = std::chrono::seconds(10);

struct Mailboxes {
  std::mutex mutex;
  std::map<cluster::Member*,
           std::pair<std::weak_ptr<cluster::Member>, std::shared_ptr<Mailbox>>>
      all;
};

}  // namespace

std::shared_ptr<Mailbox> Mailbox::of(
    const std::shared_ptr<cluster::Member>& member) {
  static auto& boxes = immortal<Mailboxes>();
  std::lock_guard lock(boxes.mutex);
  std::erase_if(boxes.all,
                [](const auto& box) { return box.second.first.expired(); });
  auto& [owner, box] = boxes.all[member.get()];
  if (box) return box;
  owner = member;
  box = std::shared_ptr<Mailbox>(new Mailbox(*member));
  const std::weak_ptr<Mailbox> to = box;
  member->serve(kTensors,
                [to](const cluster::TaskId&,
                     cluster::Message message) -> cluster::Message {
                  const auto box = to.lock();
                  if (!box) return {};
                  if (!message.tensors.empty()) {
                    box->put(message.text, std::move(message.tensors[0]));
                    return {};
                  }
                  box->fail_as_told(message.text);
                  return {};
                });
  member->on_failure([to](const cluster::ClusterFailure& failure) {
    if (const auto box = to.lock()) box->lost(failure);
  });
  return box;
}

// "RUN\nCODE\nWHY".
void Mailbox::fail_as_told(const std::string& text) {
  const size_t run = text.find('\n');
  const size_t code = run == text.npos ? run : text.find('\n', run + 1);
  if (code == text.npos) {
    throw errors::InvalidArgument("neither a value nor a failure of a run");
  }
  const int number = std::atoi(text.c_str() + run + 1);
  fail(text.substr(0, run), static_cast<errors::Code>(number),
       text.substr(code + 1));
}

void Mailbox::put(const std::string& key, Tensor value) {
  std::lock_guard lock(mutex_);
  if (failed_.contains(run_of(key))) return;
  values_[key] = std::move(value);
  changed_.notify_all();
}

void Mailbox::fail(const std::string& run, errors::Code code,
                   const std::string& why) {
  std::lock_guard lock(mutex_);
  cluster::ClusterFailure failure;
  failure.code = code;
  failure.message = why;
  if (!failed_.try_emplace(run, std::move(failure)).second) return;
  failed_first_.push_back(run);
  std::erase_if(values_, [&](const auto& v) { return run_of(v.first) == run; });
  if (failed_first_.size() > kMostFailedRuns) {
    failed_.erase(failed_first_.front());
    failed_first_.pop_front();
  }
  changed_.notify_all();
}

void Mailbox::lost(const cluster::ClusterFailure& failure) {
  std::lock_guard lock(mutex_);
  lost_ = failure;
  changed_.notify_all();
}

void Mailbox::send(const cluster::TaskId& to, const std::string& key,
                   Tensor value) {
  if (to == member_.task()) return put(key, std::move(value));
  cluster::Message message;
  message.text = key;
  message.tensors.push_back(std::move(value));
  member_.call(to, kTensors, std::move(message));
}

void Mailbox::fail_run(const std::string& run, errors::Code code,
                       const std::string& why,
                       const std::vector<cluster::TaskId>& others) {
  fail(run, code, why);
  for (const cluster::TaskId& to : others) {
    if (to == member_.task()) continue;
    cluster::Message message;
    message.text = fmt::format("{}\n{}\n{}", run, static_cast<int>(code), why);
    try {
      member_.call(to, kTensors, std::move(message));
    } catch (const errors::Error&) {
      // A task that cannot be told has failed itself.
    }
  }
}

std::optional<cluster::ClusterFailure> Mailbox::failed(
    const std::string& run) const {
  std::lock_guard lock(mutex_);
  const auto at = failed_.find(run);
  if (at == failed_.end()) return std::nullopt;
  return at->second;
}

void Mailbox::check(const std::string& key) const {
  if (const auto at = failed_.find(run_of(key)); at != failed_.end()) {
    errors::raise(at->second.code, at->second.message);
  }
  if (lost_) errors::raise(lost_->code, lost_->message);
}

Tensor Mailbox::receive(const std::string& key, const std::string& from,
                        const std::string& what) {
  const auto begin = std::chrono::steady_clock::now();
  auto say = begin + kSayWhoIsMissing;
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto at = values_.find(key);
    if (at != values_.end()) {
      Tensor value = std::move(at->second);
      values_.erase(at);
      return value;
    }
    check(key);
    const double limit = timeout_seconds_;
    const auto end =
        begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                    std::chrono::duration<double>(limit));
    const auto now = std::chrono::steady_clock::now();
    if (now >= end) {
      throw errors::DeadlineExceeded(fmt::format(
          "{}: {} has not sent {} within {} s; expected it to run its part of "
          "the step: is it stopped, or much slower?",
          member_.task().str(), from, what, limit));
    }
    if (now >= say) {
      lock.unlock();
      berth::report({"waiting",
                     debugging::Severity::kInfo,
                     fmt::format("{} waits for {} to send {}",
                                 member_.task().str(), from, what),
                     {}});
      lock.lock();
      say = now + kSayWhoIsMissing;
      continue;
    }
    changed_.wait_until(lock, std::min(end, say));
  }
}

}  // namespace berth::remote
