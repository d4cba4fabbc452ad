#include "exec/control_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/interrupt.h"
#include "berth/errors.h"
#include "exec/plan_builder.h"
#include "exec/plan_impl.h"
#include "op/device_scope.h"

namespace berth {

namespace {

size_t bytes_of(DType dtype, const Shape& shape) {
  return static_cast<size_t>(shape.num_elements()) * size_of(dtype);
}

std::unique_ptr<Plan::Impl> nested_plan(Graph body,
                                        const PlanOptions& options) {
  PlanOptions own = options;
  // A body counts its own runs.
  own.steps = options.body_steps ? options.body_steps->take() : nullptr;
  auto plan = Plan::Impl::build(std::move(body), own, true);
  for (const PlanOutput& o : plan->program->outputs) {
    const PlanBuffer& b = plan->program->buffers[o.buffer];
    if (b.where != Where::kOutput || o.same_as >= 0 || o.offset != 0) {
      throw errors::Internal(fmt::format(
          "{}: a result has no memory of its own", plan->graph.name));
    }
  }
  return plan;
}

const Graph& body_of(const Callable& f, const Node& node) {
  if (f.body() == nullptr) {
    throw errors::FailedPrecondition(fmt::format(
        "{}: function '{}' is only declared by the text of its graph; "
        "expected one with a body",
        node.name, f.name()));
  }
  return *f.body();
}

// An instance of a nested plan for one run of a step.
class Use {
 public:
  explicit Use(Plan::Impl& plan) : plan_(plan), instance_(plan.checkout()) {}
  ~Use() { plan_.give_back(std::move(instance_)); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  void run(std::byte* const* in, std::byte* const* out) {
    plan_.run_nested(*instance_, in, out);
  }
  // Waits until the work of the last run is done. Throws its error.
  void join() {
    for (const Event& e : instance_->done) synchronize(e);
  }

 private:
  Plan::Impl& plan_;
  std::unique_ptr<Instance> instance_;
};

std::byte* address(const View& v) { return static_cast<std::byte*>(v.data); }

}  // namespace

ControlStep::ControlStep(const Node& node, const Graph& graph, Device& device,
                         const PlanOptions& options)
    : device_(device), by_(computes_for(device, options.host_threads)) {
  is_while_ = is_loop(*node.op);
  if (is_while_) {
    build_while(node, graph, options);
    return;
  }
  const IfLayout l(*node.op, node.attrs.get());
  first_ = nested_plan(body_of(*l.then_branch, node), options);
  second_ = nested_plan(body_of(*l.else_branch, node), options);
}

ControlStep::~ControlStep() = default;

void ControlStep::build_while(const Node& node, const Graph& graph,
                              const PlanOptions& options) {
  const WhileLayout l(*node.op, node.attrs.get());
  counted_ = l.counted();
  reverse_ = l.reverse;
  num_vars_ = l.num_vars;
  num_rows_ = l.num_rows;
  num_captures_ = l.num_captures;
  num_stacks_ = l.num_stacks;
  max_iterations_ = l.max_iterations;
  Graph body = body_of(*l.body, node);
  if (!counted_) first_ = nested_plan(body_of(*l.cond, node), options);
  scratch_bytes_ = kArenaAlignment;  // the predicate
  std::vector<ValueRef> results;
  for (int i = 0; i < num_vars_; ++i) {
    const ValueRef out = body.outputs[i];
    const OutSpec& s = graph.spec(node.inputs[l.first_var() + i]);
    fixed_.push_back(out == ValueRef{body.args[i], 0});
    var_bytes_.push_back(bytes_of(s.dtype, s.shape));
    var_offset_.push_back(scratch_bytes_);
    if (fixed_.back()) continue;
    results.push_back(out);
    scratch_bytes_ += (var_bytes_.back() + kArenaAlignment - 1) /
                      kArenaAlignment * kArenaAlignment;
  }
  for (int i = 0; i < num_rows_; ++i) {
    const OutSpec& s = body[body.args[num_vars_ + i]].outputs[0];
    row_bytes_.push_back(bytes_of(s.dtype, s.shape));
  }
  for (int i = 0; i < num_stacks_; ++i) {
    const OutSpec& s = body.spec(body.outputs[num_vars_ + i]);
    stack_row_bytes_.push_back(bytes_of(s.dtype, s.shape));
    results.push_back(body.outputs[num_vars_ + i]);
  }
  body.outputs = std::move(results);
  second_ = nested_plan(std::move(body), options);
}

bool ControlStep::inline_only() const {
  return (!first_ || first_->program->is_inline) &&
         second_->program->is_inline && by_.here;
}

namespace {

struct Move {
  void* to;
  const void* from;  // null: zeros
  size_t bytes;
};

// Within the memory of the stream's device.
void do_move(void* context, Stream& stream) {
  const Move& m = *static_cast<const Move*>(context);
  Device& device = stream.device();
  if (m.from == nullptr) {
    device.fill_async(stream, m.to, 0, m.bytes);
  } else {
    device.copy_async(
        stream, {m.to, &device.memory(), m.from, &device.memory(), m.bytes});
  }
}

}  // namespace

void ControlStep::move(void* to, const void* from, size_t bytes) const {
  if (bytes == 0) return;
  Move m{to, from, bytes};
  if (by_.here) return do_move(&m, *by_.stream);
  Work work;
  work.run = &do_move;
  work.context = &m;
  work.what = "While";
  work.moved_bytes = static_cast<double>(bytes) * 2;
  by_.stream->launch(work);
  by_.stream->synchronize(by_.stream->record());
}

void ControlStep::read(void* host, const void* from, size_t bytes) const {
  if (!by_.here) by_.stream->synchronize(by_.stream->record());
  device_.copy_to_host(host, from, bytes);
}

void ControlStep::write(void* to, const void* host, size_t bytes) const {
  if (!by_.here) by_.stream->synchronize(by_.stream->record());
  device_.copy_from_host(to, host, bytes);
}

class ControlStep::Lists {
 public:
  explicit Lists(const ControlStep& step) : step_(step) {
    {
      std::lock_guard lock(step.mutex_);
      if (!step.idle_.empty()) {
        lists_ = std::move(step.idle_.back());
        step.idle_.pop_back();
      }
    }
    if (!lists_) lists_ = std::make_unique<Addresses>();
    for (auto* list :
         {&lists_->now, &lists_->next, &lists_->in, &lists_->out}) {
      list->clear();
    }
  }
  ~Lists() {
    std::lock_guard lock(step_.mutex_);
    step_.idle_.push_back(std::move(lists_));
  }
  Lists(const Lists&) = delete;
  Lists& operator=(const Lists&) = delete;
  Addresses& operator*() { return *lists_; }

 private:
  const ControlStep& step_;
  std::unique_ptr<Addresses> lists_;
};

void ControlStep::run(const KernelCall& call) const {
  is_while_ ? run_while(call) : run_if(call);
}

void ControlStep::run_if(const KernelCall& call) const {
  bool taken = false;
  read(&taken, call.in[0].data, 1);
  Plan::Impl& plan = taken ? *first_ : *second_;
  Use branch(plan);
  Lists lists(*this);
  auto &in = (*lists).in, &out = (*lists).out;
  for (size_t i = 0; i < plan.graph.args.size(); ++i) {
    in.push_back(address(call.in[1 + i]));
  }
  for (int i = 0; i < call.num_out; ++i) out.push_back(address(call.out[i]));
  branch.run(in.data(), out.data());
}

// The captured values, which the condition and the body read last.
void ControlStep::add_captures(const KernelCall& call, Addresses& lists) const {
  const int first = (counted_ ? 1 : 0) + num_vars_ + num_rows_;
  for (int i = 0; i < num_captures_; ++i) {
    lists.in.push_back(address(call.in[first + i]));
  }
}

// What the body reads and writes in the turn that works on this row.
void ControlStep::list_turn(const KernelCall& call, size_t row,
                            Addresses& lists) const {
  const int first_row = (counted_ ? 1 : 0) + num_vars_;
  lists.in.assign(lists.now.begin(), lists.now.end());
  for (int i = 0; i < num_rows_; ++i) {
    lists.in.push_back(address(call.in[first_row + i]) + row * row_bytes_[i]);
  }
  add_captures(call, lists);
  lists.out.clear();
  for (int i = 0; i < num_vars_; ++i) {
    if (!fixed_[i]) lists.out.push_back(lists.next[i]);
  }
  for (int i = 0; i < num_stacks_; ++i) {
    lists.out.push_back(address(call.out[num_vars_ + 1 + i]) +
                        row * stack_row_bytes_[i]);
  }
}

// Writes the outputs that the last turn left elsewhere, the number of turns,
// and zeros to the rows of stacks that no turn wrote.
void ControlStep::finish_while(const KernelCall& call, int64_t turns,
                               const Addresses& lists) const {
  for (int i = 0; i < num_vars_; ++i) {
    if (lists.now[i] != address(call.out[i])) {
      move(call.out[i].data, lists.now[i], var_bytes_[i]);
    }
  }
  write(call.out[num_vars_].data, &turns, sizeof turns);
  for (int i = 0; i < num_stacks_; ++i) {
    const size_t done = static_cast<size_t>(turns) * stack_row_bytes_[i];
    const size_t all =
        static_cast<size_t>(max_iterations_) * stack_row_bytes_[i];
    if (done < all) {
      move(address(call.out[num_vars_ + 1 + i]) + done, nullptr, all - done);
    }
  }
}

// Loop variables alternate between two places: a turn reads one and writes
// the other.
void ControlStep::run_while(const KernelCall& call) const {
  auto* scratch = static_cast<std::byte*>(call.context->scratch);
  Lists held(*this);
  Addresses& lists = *held;
  for (int i = 0; i < num_vars_; ++i) {
    lists.now.push_back(address(call.out[i]));
    lists.next.push_back(scratch + var_offset_[i]);
    move(lists.now[i], call.in[(counted_ ? 1 : 0) + i].data, var_bytes_[i]);
  }
  int64_t limit = max_iterations_ < 0 ? INT64_MAX : max_iterations_;
  if (counted_) read(&limit, call.in[0].data, sizeof limit);
  std::optional<Use> cond;
  if (first_) cond.emplace(*first_);
  Use body(*second_);
  const bool waits = !inline_only();
  int64_t turns = 0;
  for (; turns < limit; ++turns) {
    check_interrupt();
    if (cond) {
      lists.in.assign(lists.now.begin(), lists.now.end());
      add_captures(call, lists);
      cond->run(lists.in.data(), &scratch);
      if (waits) cond->join();
      bool holds = false;
      read(&holds, scratch, 1);
      if (!holds) break;
    }
    const int64_t row = reverse_ ? limit - 1 - turns : turns;
    list_turn(call, static_cast<size_t>(row), lists);
    body.run(lists.in.data(), lists.out.data());
    // The next turn changes what this one's work still looks at.
    if (waits) body.join();
    for (int i = 0; i < num_vars_; ++i) {
      if (!fixed_[i]) std::swap(lists.now[i], lists.next[i]);
    }
  }
  finish_while(call, turns, lists);
}

void Plan::Impl::run_nested(Instance& run, std::byte* const* in,
                            std::byte* const* out) {
  run.guarded = 0;
  begin_run(run);
  run.patch([&](const PlanBuffer& b) {
    return b.where == Where::kArg ? in[b.index] : out[b.index];
  });
  count_step(run);
  // The plan around holds the locks.
  if (run.written) run.writer = run.written->marks[0]->writer;
  if (program->is_inline) return run.prepared->launch();
  join_before();
  try {
    run.prepared->launch();
  } catch (...) {
    join_after(run);
    for (const Event& e : run.done) berth::finish(e);
    throw;
  }
  join_after(run);
}

void PlanBuilder::add_control(PlanStep& step, PlanOp& op, int32_t at) {
  const Node& node = node_of(op);
  op.kind = StepKind::kControl;
  Device& device = *p_.devices[step.device];
  auto control =
      std::make_shared<const ControlStep>(node, graph_, device, options_);
  p_.is_inline = p_.is_inline && control->inline_only();
  if (control->scratch_bytes() > 0) {
    step.scratch =
        new_buffer(Where::kArena, step.device, control->scratch_bytes());
    p_.buffers[step.scratch].scratch = true;
    use(step.scratch, at);
  }
  // What the bodies do to the variables among the operands.
  for (const Plan::Impl* body : {control->first(), control->second()}) {
    if (body == nullptr) continue;
    for (const VariableUse& inner : body->variables.uses) {
      for (const ValueRef& v : node.inputs) {
        const PlanBuffer& b = p_.buffers[value(v).buffer];
        if (spec(v).dtype != resource) continue;
        VariableUse& outer = variables_.uses[b.index];
        if (outer.handle.impl()->variable != inner.handle.impl()->variable) {
          continue;
        }
        // Another branch, or no turn, leaves the old value.
        outer.read = outer.read || inner.read || inner.write;
        outer.write = outer.write || inner.write;
        outer.writes += inner.writes;
      }
    }
    auto& marks = built_.writes.marks;
    marks.insert(marks.end(), body->writes.marks.begin(),
                 body->writes.marks.end());
    built_.info.copied_bytes += body->info.copied_bytes;
    built_.info.transfers += body->info.transfers;
    built_.info.arena_bytes += body->info.arena_bytes;
    built_.info.bound_bytes += body->info.bound_bytes;
  }
  op.control = std::move(control);
}

}  // namespace berth
