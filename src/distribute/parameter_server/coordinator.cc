// Scheduling: the queue, a thread per worker, errors and losses.

#include "distribute/parameter_server/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/where.h"
#include "berth/errors.h"
#include "distribute/parameter_server/registered_datasets.h"
#include "tensor/tensor_impl.h"

namespace berth::distribute {

namespace {

std::exception_ptr cancelled(const std::string& why) {
  return std::make_exception_ptr(errors::Cancelled(fmt::format(
      "cancelled, since another scheduled function failed: {}", why)));
}

// Registers one more worker to wait for.
struct Waiting {
  explicit Waiting(std::atomic<int>& count) : count(count) { ++count; }
  ~Waiting() { --count; }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  std::atomic<int>& count;
};

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

void Closure::finish(Tensors results) {
  std::lock_guard lock(mutex_);
  results_ = std::move(results);
  state_ = State::kDone;
  changed_.notify_all();
}

void Closure::fail(std::exception_ptr error) {
  std::lock_guard lock(mutex_);
  if (state_ != State::kWaiting) return;
  error_ = std::move(error);
  state_ = State::kFailed;
  changed_.notify_all();
}

bool Closure::done() const {
  std::lock_guard lock(mutex_);
  return state_ != State::kWaiting;
}

const Tensors& Closure::wait() const {
  std::unique_lock lock(mutex_);
  wait_unless_interrupted(changed_, lock,
                          [&] { return state_ != State::kWaiting; });
  if (error_) std::rethrow_exception(error_);
  return results_;
}

ParameterServers::ParameterServers(std::shared_ptr<cluster::Member> chief,
                                   ParameterServerOptions options, Site site)
    : member_(std::move(chief)), options_(std::move(options)) {
  if (member_->task().job != "chief") {
    throw errors::InvalidArgument(fmt::format(
        "ParameterServerStrategy: this task is {}{}; expected the chief, which "
        "coordinates; workers and servers call distribute::serve()",
        member_->task().str(), where_text(nullptr, site)));
  }
  if (options_.max_staleness.value_or(0) < 0 || options_.queue_length < 1) {
    throw errors::InvalidArgument(fmt::format(
        "ParameterServerStrategy: max_staleness is {}, queue_length {}{}; "
        "expected at least 0 and 1",
        options_.max_staleness.value_or(0), options_.queue_length,
        where_text(nullptr, site)));
  }
  for (const cluster::TaskId& t : member_->tasks()) {
    if (t.job == "worker") workers_.emplace_back().task = t;
    if (t.job == "ps") servers_.emplace_back().task = t;
  }
  for (size_t s = 0; s < servers_.size(); ++s) {
    auto answer = begin_call(*member_, servers_[s].task, kServerService,
                             {"begin", {}}, options_.join_timeout_seconds);
    servers_[s].incarnation =
        std::stoull(answer_of(answer, servers_[s].task).text);
  }
}

ParameterServers::~ParameterServers() { end(); }

void ParameterServers::end() {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(stopping_, true)) return;
    broken_ = std::make_exception_ptr(errors::FailedPrecondition(
        "the ParameterServerStrategy has ended: its workers and servers are "
        "gone"));
    for (const auto& c : queue_) {
      c->fail(cancelled("the ParameterServerStrategy has ended"));
    }
    queue_.clear();
    changed_.notify_all();
  }
  for (Worker& w : workers_) {
    if (w.thread.joinable()) w.thread.join();
  }
  constexpr double kEndSeconds = 10;
  std::vector<std::future<cluster::Message>> ends;
  for (const Worker& w : workers_) {
    ends.push_back(
        begin_call(*member_, w.task, kWorkerService, {"end", {}}, kEndSeconds));
  }
  for (const Server& s : servers_) {
    ends.push_back(
        begin_call(*member_, s.task, kServerService, {"end", {}}, kEndSeconds));
  }
  for (auto& e : ends) {
    try {
      e.get();
    } catch (const std::exception&) {  // it is gone already
    }
  }
  try {
    member_->leave();
  } catch (const errors::Error&) {  // the remaining tasks end by themselves
  }
}

void ParameterServers::start() {
  if (started_) return;
  started_ = true;
  for (int w = 0; w < num_workers(); ++w) {
    workers_[w].thread = std::thread([this, w] { serve_worker(w); });
  }
}

// After the first error nothing else starts; running functions are awaited.
void ParameterServers::raise_first_error(std::unique_lock<std::mutex>& lock) {
  if (broken_) std::rethrow_exception(broken_);
  if (!first_error_) return;
  changed_.wait(lock, [&] { return running_ == 0; });
  const std::exception_ptr error = std::exchange(first_error_, nullptr);
  if (error) std::rethrow_exception(error);
}

std::shared_ptr<Closure> ParameterServers::schedule(
    const ClosureCall& call, Site, std::optional<uint64_t> run) {
  auto closure = std::make_shared<Closure>();
  closure->leaves = call.leaves;
  closure->from = call.from;
  std::vector<TensorSpec> specs;
  for (size_t i = 0; i < call.leaves.size(); ++i) {
    const auto& source = call.from[i].source;
    if (source) {
      specs.push_back(
          source->specs[call.from[i].component % source->specs.size()]);
    } else {
      closure->leaves[i] = for_sending(call.leaves[i]);
      specs.push_back(call.leaves[i].spec());
      specs.back().name.clear();
    }
  }
  {
    std::unique_lock lock(mutex_);
    raise_first_error(lock);
  }
  {
    std::lock_guard placing(placing_);
    recover_servers();
    const Traced traced = trace(call, specs);
    closure->program = traced.program;
    closure->structure = traced.structure;
    closure->run = run ? *run : runs_[traced.program->hash]++;
    send_changed(false);
    for (const TensorImpl* impl : order_) {
      Placed& p = variables_.at(impl);
      p.stale = p.stale || traced.program->writes.contains(p.id);
    }
  }
  std::unique_lock lock(mutex_);
  start();
  wait_unless_interrupted(changed_, lock, [&] {
    return broken_ || first_error_ ||
           static_cast<int64_t>(unfinished_.size()) < options_.queue_length;
  });
  raise_first_error(lock);
  closure->number = next_number_++;
  unfinished_.insert(closure->number);
  queue_.push_back(closure);
  ++statistics_.scheduled;
  changed_.notify_all();
  return closure;
}

void ParameterServers::join(Site) {
  {
    std::unique_lock lock(mutex_);
    wait_unless_interrupted(changed_, lock, [&] {
      return broken_ || first_error_ || unfinished_.empty();
    });
    raise_first_error(lock);
  }
  std::lock_guard placing(placing_);
  fetch_changed();
}

bool ParameterServers::done(Site site) {
  {
    std::unique_lock lock(mutex_);
    raise_first_error(lock);
    if (!unfinished_.empty()) return false;
  }
  join(site);
  return true;
}

CoordinatorStatistics ParameterServers::statistics() const {
  std::lock_guard lock(mutex_);
  return statistics_;
}

// Returns the next closure that may start; null when the queue has ended.
std::shared_ptr<Closure> ParameterServers::take() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (stopping_) return nullptr;
    const std::shared_ptr<Closure> next = queue_.front();
    // How many earlier closures are unfinished: it will not see their writes.
    const int64_t unseen =
        std::distance(unfinished_.begin(), unfinished_.find(next->number));
    if (!options_.max_staleness || unseen <= *options_.max_staleness) {
      queue_.pop_front();
      ++running_;
      statistics_.max_staleness = std::max(statistics_.max_staleness, unseen);
      return next;
    }
    changed_.wait(lock);
  }
}

void ParameterServers::settle(const std::shared_ptr<Closure>& closure,
                              bool failed) {
  std::lock_guard lock(mutex_);
  --running_;
  unfinished_.erase(closure->number);
  ++(failed ? statistics_.failed : statistics_.done);
  changed_.notify_all();
}

void ParameterServers::put_back(const std::shared_ptr<Closure>& closure) {
  std::lock_guard lock(mutex_);
  --running_;
  ++statistics_.run_again;
  if (first_error_ || stopping_) {
    closure->fail(cancelled("it was lost with its worker"));
    unfinished_.erase(closure->number);
    ++statistics_.cancelled;
  } else {
    // Keep the order in which they were scheduled.
    const auto at = std::find_if(
        queue_.begin(), queue_.end(),
        [&](const auto& c) { return c->number > closure->number; });
    queue_.insert(at, closure);
  }
  changed_.notify_all();
}

void ParameterServers::fail_all(std::exception_ptr error) {
  std::lock_guard lock(mutex_);
  if (!first_error_) first_error_ = error;
  const std::string why = text_of(error);
  for (const auto& c : queue_) {
    c->fail(cancelled(why));
    unfinished_.erase(c->number);
    ++statistics_.cancelled;
  }
  queue_.clear();
  changed_.notify_all();
}

void ParameterServers::serve_worker(int w) {
  Worker& worker = workers_[w];
  while (const std::shared_ptr<Closure> closure = take()) {
    std::exception_ptr error;
    bool lost = false;
    try {
      closure->finish(run_on(worker, w, *closure));
    } catch (const TaskLost& e) {
      const auto failure = member_->failure();
      const bool server =
          e.task().job == "ps" || (failure && failure->task.job == "ps");
      if (e.task() == worker.task && !server && !stopping_now()) {
        lost = true;
      } else if (server) {
        std::lock_guard placing(placing_);
        error = loss_of(e);
      } else {
        error = std::current_exception();
      }
    } catch (const errors::NotFound&) {
      error = std::current_exception();
      if (was_restarted(worker)) {
        lost = true;
      } else if (const auto loss = restarted_server()) {
        error = loss;
      }
    } catch (const std::exception&) {
      error = std::current_exception();
    }
    if (lost) {
      put_back(closure);
      if (!wait_for_worker(worker)) return;
    } else if (error) {
      fail_all(error);
      closure->fail(error);
      settle(closure, true);
    } else {
      settle(closure, false);
    }
  }
}

bool ParameterServers::stopping_now() const {
  std::lock_guard lock(mutex_);
  return stopping_;
}

cluster::Message ParameterServers::ask_worker(const Worker& worker,
                                              cluster::Message request) const {
  auto answer =
      begin_call(*member_, worker.task, kWorkerService, std::move(request),
                 options_.closure_timeout_seconds);
  return answer_of(answer, worker.task);
}

// A worker that runs in a new process has no state.
bool ParameterServers::was_restarted(Worker& worker) {
  try {
    const uint64_t now = std::stoull(ask_worker(worker, {"hello", {}}).text);
    if (now == worker.incarnation) return false;
    worker.incarnation = now;
    worker.programs.clear();
    return true;
  } catch (const errors::Error&) {
    return true;
  }
}

std::exception_ptr ParameterServers::restarted_server() {
  std::lock_guard placing(placing_);
  for (Server& s : servers_) {
    try {
      auto answer = begin_call(*member_, s.task, kServerService, {"hello", {}});
      const uint64_t now = std::stoull(answer_of(answer, s.task).text);
      if (now != s.incarnation) {
        return loss_of(TaskLost(s.task, "it was started again"));
      }
    } catch (const TaskLost& e) {
      return loss_of(e);
    } catch (const errors::Error&) {
    }
  }
  return nullptr;
}

// Waits until the worker answers again; false if the queue has ended.
bool ParameterServers::wait_for_worker(Worker& worker) {
  using Clock = std::chrono::steady_clock;
  auto since = Clock::now();
  auto said = since;
  const Waiting waiting(lost_workers_);
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::milliseconds(100),
                        [&] { return stopping_; });
      if (stopping_) return false;
    }
    try {
      if (const auto failure = member_->failure()) {
        // The worker's call may end before the loss of a server is known.
        if (failure->task.job == "ps") {
          std::unique_lock placing(placing_);
          const auto error = loss_of(TaskLost(failure->task, failure->message));
          placing.unlock();
          fail_all(error);
          return true;
        }
        form_again();
      }
      auto hello =
          begin_call(*member_, worker.task, kWorkerService, {"hello", {}}, 5);
      const uint64_t now = std::stoull(answer_of(hello, worker.task).text);
      if (now != worker.incarnation) worker.programs.clear();
      worker.incarnation = now;
      return true;
    } catch (const TaskLost&) {
    } catch (const errors::Error&) {
      // The cluster cannot be formed again.
      fail_all(std::current_exception());
      std::lock_guard lock(mutex_);
      broken_ = std::current_exception();
      changed_.notify_all();
      return false;
    }
    const auto now = Clock::now();
    const double waited = std::chrono::duration<double>(now - since).count();
    if (now - said > std::chrono::seconds(10)) {
      said = now;
      std::fprintf(stderr, "ParameterServerStrategy: waiting for %s, %.0f s\n",
                   worker.task.str().c_str(), waited);
    }
    if (waited < options_.worker_timeout_seconds) continue;
    since = now;
    if (lost_workers_ < num_workers()) continue;  // the others go on
    fail_all(std::make_exception_ptr(errors::Unavailable(
        fmt::format("all workers were lost, and none came back within {} s",
                    options_.worker_timeout_seconds))));
  }
}

// One of the threads that see the failure forms it again; the others wait.
void ParameterServers::form_again() {
  std::lock_guard lock(forming_);
  if (!member_->failure()) return;
  member_->form_again(options_.worker_timeout_seconds);
}

void ParameterServers::ensure_program(Worker& worker,
                                      const StepProgram& program) {
  if (worker.programs.contains(program.hash)) return;
  cluster::Message m = encode_program(program);
  m.text = "program\n" + m.text;
  ask_worker(worker, std::move(m));
  worker.programs.insert(program.hash);
}

Tensors ParameterServers::run_on(Worker& worker, int w, Closure& closure) {
  if (worker.incarnation == 0) {
    worker.incarnation = std::stoull(ask_worker(worker, {"begin", {}}).text);
  }
  ensure_program(worker, *closure.program);
  std::string text =
      fmt::format("run {} {}", closure.program->hash, closure.run);
  Tensors args = gather_arguments(worker, w, closure, &text);
  return ask_worker(worker, {std::move(text), std::move(args)}).tensors;
}

Tensors ParameterServers::gather_arguments(Worker& worker, int w,
                                           Closure& closure,
                                           std::string* text) {
  Tensors args;
  for (size_t i = 0; i < closure.leaves.size(); ++i) {
    const ClosureCall::From& from = closure.from[i];
    if (!from.source) {
      *text += " t";
      args.push_back(closure.leaves[i]);
      continue;
    }
    PerWorker::State& state = *from.source;
    const bool chiefs = state.of && !state.of->chiefs.empty();
    if (!chiefs) {
      ensure_there(worker, w, state);
      const bool resource = state.kind == PerWorker::State::Kind::kResource;
      *text += fmt::format(" {}{}:{}", resource ? 'r' : 'd', state.id,
                           from.component);
      continue;
    }
    Tensors& drawn = closure.drawn[&state];
    const auto component = static_cast<size_t>(from.component);
    while (component >= drawn.size()) {
      const Tensors element = element_of(w, state);
      drawn.insert(drawn.end(), element.begin(), element.end());
    }
    *text += " t";
    args.push_back(drawn[component]);
  }
  return args;
}

// The next element of the worker's iterator over a dataset of the chief.
Tensors ParameterServers::element_of(int w, PerWorker::State& state) {
  std::lock_guard lock(state.mutex);
  auto it = state.passes.find(w);
  if (it == state.passes.end()) {
    it = state.passes.emplace(w, state.of->chiefs[w].make_iterator()).first;
  }
  std::optional<data::Element> element = it->second.next();
  if (!element) {
    throw errors::OutOfRange(fmt::format(
        "End of sequence: the dataset of worker {} has no more elements; "
        "repeat() it, or make another iterator",
        w));
  }
  Tensors list;
  for (const Tensor& t : *element) list.push_back(for_sending(t));
  return list;
}

void ParameterServers::ensure_there(Worker& worker, int w,
                                    PerWorker::State& state) {
  using Kind = PerWorker::State::Kind;
  {
    std::lock_guard lock(state.mutex);
    const auto it = state.there.find(w);
    if (it != state.there.end() && it->second == worker.incarnation) return;
  }
  if (state.kind == Kind::kIterator) {
    ensure_there(worker, w, *state.of);
    ask_worker(worker,
               {fmt::format("iterator {} {}", state.id, state.of->id), {}});
  } else if (state.kind == Kind::kDataset) {
    ask_worker(worker, {fmt::format("dataset {} {} {}\n{}", state.id,
                                    num_workers(), w, state.name),
                        {}});
  } else {
    ensure_program(worker, *state.makes);
    Tensors made =
        ask_worker(worker, {fmt::format("run {} 0", state.makes->hash), {}})
            .tensors;
    ask_worker(worker, {fmt::format("resource {}", state.id), std::move(made)});
  }
  std::lock_guard lock(state.mutex);
  state.there[w] = worker.incarnation;
}

PerWorkerDataset ParameterServers::make_dataset(const std::string& name, Site) {
  auto state = std::make_shared<PerWorker::State>();
  state->owner = weak_from_this();
  state->name = name;
  InputContext context;
  context.num_input_pipelines = num_workers();
  state->specs = registered_dataset(name)(context).element_spec();
  std::lock_guard lock(mutex_);
  state->id = next_source_++;
  return PerWorkerDataset(std::move(state));
}

PerWorkerDataset ParameterServers::make_dataset(
    std::vector<data::Dataset> by_worker) {
  auto state = std::make_shared<PerWorker::State>();
  state->owner = weak_from_this();
  state->specs = by_worker.at(0).element_spec();
  state->chiefs = std::move(by_worker);
  return PerWorkerDataset(std::move(state));
}

PerWorkerIterator ParameterServers::make_iterator(
    const std::shared_ptr<PerWorker::State>& of) {
  auto state = std::make_shared<PerWorker::State>();
  state->kind = PerWorker::State::Kind::kIterator;
  state->owner = weak_from_this();
  state->specs = of->specs;
  state->of = of;
  std::lock_guard lock(mutex_);
  state->id = next_source_++;
  return PerWorkerIterator(std::move(state));
}

PerWorkerResource ParameterServers::make_resource(
    const std::function<Tensors()>& fn, Site) {
  ClosureCall call;
  call.keep = std::make_shared<const std::function<Tensors()>>(fn);
  call.trace = [fn](const Tensors&, std::any* structure) {
    *structure = true;
    return fn();
  };
  auto state = std::make_shared<PerWorker::State>();
  state->kind = PerWorker::State::Kind::kResource;
  state->owner = weak_from_this();
  {
    std::lock_guard placing(placing_);
    recover_servers();
    const Traced traced = trace(call, {});
    state->makes = traced.program;
    state->specs = traced.results;
    send_changed(false);
  }
  std::lock_guard lock(mutex_);
  state->id = next_source_++;
  return PerWorkerResource(std::move(state));
}

}  // namespace berth::distribute
