#include "distribute/multi_worker/gradient_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/immortal.h"
#include "berth/errors.h"

namespace berth::distribute {

namespace {

using TaskClock = std::chrono::steady_clock;

int64_t ns_since(TaskClock::time_point t) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(TaskClock::now() -
                                                              t)
      .count();
}

struct Executors {
  std::mutex mutex;
  std::vector<std::shared_ptr<CollectiveExecutor>> all;
};

Executors& executors() {
  static Executors& all = immortal<Executors>();
  return all;
}

uint64_t mix(uint64_t h, int64_t x) {
  return (h ^ static_cast<uint64_t>(x)) * 1099511628211ull;
}

}  // namespace

CollectiveExecutor::CollectiveExecutor(std::shared_ptr<cluster::Member> member)
    : member_(std::move(member)),
      rank_(member_->rank()),
      ranks_(member_->num_ranks()) {
  const char* names[kChannels] = {"sums", "gradients"};
  for (int c = 0; c < kChannels; ++c) channels_[c].name = names[c];
  for (Channel& c : channels_) {
    c.thread = std::thread([this, &c] { work(c); });
  }
}

CollectiveExecutor::~CollectiveExecutor() {
  for (Channel& c : channels_) {
    const std::lock_guard lock(c.mutex);
    c.stop = true;
    c.changed.notify_all();
  }
  for (Channel& c : channels_) c.thread.join();
}

std::shared_ptr<CollectiveExecutor> CollectiveExecutor::make(
    std::shared_ptr<cluster::Member> member) {
  auto made = std::make_shared<CollectiveExecutor>(std::move(member));
  auto& [mutex, all] = executors();
  const std::lock_guard lock(mutex);
  all.push_back(made);
  made->id_ = static_cast<int64_t>(all.size());
  return made;
}

CollectiveExecutor& CollectiveExecutor::find(int64_t id) {
  auto& [mutex, all] = executors();
  const std::lock_guard lock(mutex);
  if (id >= 1 && id <= static_cast<int64_t>(all.size())) {
    return *all[static_cast<size_t>(id - 1)];
  }
  throw errors::Internal(
      fmt::format("there is no executor {} of all-reduces between tasks", id));
}

std::shared_ptr<StepExchange> CollectiveExecutor::exchange(int64_t program,
                                                           int64_t number) {
  const std::lock_guard lock(mutex_);
  std::erase_if(exchanges_, [](const auto& e) { return e.second.expired(); });
  auto& slot = exchanges_[{program, number}];
  std::shared_ptr<StepExchange> x = slot.lock();
  if (!x) slot = x = std::make_shared<StepExchange>();
  return x;
}

bool CollectiveExecutor::is_new(uint64_t variable) {
  const std::lock_guard lock(mutex_);
  return agreed_.insert(variable).second;
}

void CollectiveExecutor::form_again(double timeout_seconds, bool shrink) {
  // Pending exchanges end with the failure.
  for (Channel& c : channels_) {
    std::unique_lock lock(c.mutex);
    c.changed.wait(lock, [&] { return !c.busy && c.queue.empty(); });
  }
  member_->form_again(timeout_seconds, shrink);
  rank_ = member_->rank();
  ranks_ = member_->num_ranks();
  const std::lock_guard lock(mutex_);
  agreed_.clear();
  ++generation_;
}

void CollectiveExecutor::prepare(StepExchange& x) {
  x.generation = generation_;
  const auto all = std::accumulate(x.sizes.begin(), x.sizes.end(), int64_t{0});
  const size_t bytes = static_cast<size_t>(all) * size_of(x.dtype);
  cluster::Exchange& exchange = member_->exchange();
  const auto buffer = [&](size_t n) {
    return exchange.shared_buffer(static_cast<int64_t>(std::max<size_t>(n, 1)));
  };
  x.result_bytes = bytes;
  uint64_t hash = mix(14695981039346656037ull, static_cast<int64_t>(x.method));
  hash = mix(hash, static_cast<int64_t>(x.dtype));
  hash = mix(hash, x.slices);
  for (const int64_t n : x.sizes) hash = mix(hash, n);
  for (const int64_t n : x.lengths) hash = mix(hash, n);
  x.tag.hash = hash;
  switch (x.method) {
    case StepExchange::Method::kSum:
      x.value_bytes = bytes;
      x.values = x.results = buffer(bytes);
      return;
    case StepExchange::Method::kOrdered:
      x.value_bytes = bytes * x.starts.size();
      break;
    case StepExchange::Method::kGather:
      x.value_bytes =
          static_cast<size_t>(x.lengths.at(static_cast<size_t>(rank()))) *
          size_of(x.dtype);
      break;
  }
  x.values = buffer(x.value_bytes);
  x.results = buffer(bytes);
}

void CollectiveExecutor::before_begin(StepExchange& x) {
  using State = StepExchange::State;
  Channel& c = channels_[x.channel];
  std::unique_lock lock(c.mutex);
  c.changed.wait(
      lock, [&] { return x.state == State::kIdle || x.state == State::kDone; });
  x.state = State::kIdle;
  x.error = nullptr;
  lock.unlock();
  if (x.generation != generation_) prepare(x);
}

void CollectiveExecutor::begin(const std::shared_ptr<StepExchange>& x) {
  Channel& c = channels_[x->channel];
  const std::lock_guard lock(c.mutex);
  x->tag.step = step();
  x->state = StepExchange::State::kBegun;
  c.queue.push_back(x);
  c.changed.notify_all();
}

void CollectiveExecutor::end(StepExchange& x) {
  const auto start = TaskClock::now();
  Channel& c = channels_[x.channel];
  std::unique_lock lock(c.mutex);
  while (x.state != StepExchange::State::kDone) {
    if (x.state == StepExchange::State::kIdle) {
      throw errors::Internal("an exchange between tasks that nobody began");
    }
    if (!c.busy && !c.queue.empty()) {
      do_first(c, lock);
    } else {
      c.changed.wait(lock);
    }
  }
  x.state = StepExchange::State::kIdle;
  waited_ns_ += ns_since(start);
  if (x.error) std::rethrow_exception(x.error);
}

void CollectiveExecutor::work(Channel& c) {
  std::unique_lock lock(c.mutex);
  for (;;) {
    c.changed.wait(lock,
                   [&] { return c.stop || (!c.busy && !c.queue.empty()); });
    if (c.stop) return;
    do_first(c, lock);
  }
}

void CollectiveExecutor::do_first(Channel& c,
                                  std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<StepExchange> x = std::move(c.queue.front());
  c.queue.pop_front();
  c.busy = true;
  x->state = StepExchange::State::kRunning;
  lock.unlock();
  std::exception_ptr error;
  const auto start = TaskClock::now();
  try {
    run(*x, c.name);
  } catch (...) {
    error = std::current_exception();
  }
  exchange_ns_ += ns_since(start);
  ++count_;
  bytes_ += static_cast<int64_t>(x->result_bytes);
  lock.lock();
  c.busy = false;
  x->error = error;
  x->state = StepExchange::State::kDone;
  c.changed.notify_all();
}

void CollectiveExecutor::run(StepExchange& x, const std::string& channel) {
  cluster::Exchange& exchange = member_->exchange();
  if (x.tag.channel != channel) x.tag.channel = channel;
  const size_t each = size_of(x.dtype);
  const auto count = static_cast<int64_t>(x.result_bytes / each);
  switch (x.method) {
    case StepExchange::Method::kSum:
      exchange.all_reduce(x.values.get(), count, x.dtype,
                          cluster::Reduction::kSum, x.tag);
      return;
    case StepExchange::Method::kOrdered: {
      std::vector<cluster::SlicePart> parts;
      for (size_t p = 0; p < x.starts.size(); ++p) {
        parts.push_back({static_cast<int32_t>(x.starts[p]),
                         static_cast<int32_t>(x.counts[p]),
                         static_cast<const std::byte*>(x.values.get()) +
                             p * x.result_bytes});
      }
      exchange.ordered_sum(parts, x.slices, x.results.get(), count, x.dtype,
                           x.tag);
      return;
    }
    case StepExchange::Method::kGather: {
      std::vector<int64_t> bytes;
      for (const int64_t n : x.lengths) {
        bytes.push_back(n * static_cast<int64_t>(each));
      }
      exchange.all_gather(x.values.get(), bytes, x.results.get(), x.tag);
      return;
    }
  }
}

TaskTimes CollectiveExecutor::take_times() {
  TaskTimes t;
  t.exchanges = count_.exchange(0);
  t.bytes = bytes_.exchange(0);
  t.exchange_us = static_cast<double>(exchange_ns_.exchange(0)) / 1e3;
  t.waited_us = static_cast<double>(waited_ns_.exchange(0)) / 1e3;
  return t;
}

}  // namespace berth::distribute
