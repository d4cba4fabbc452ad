#include "remote/task_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "berth/errors.h"
#include "device/device_manager.h"
#include "exec/run_locks.h"
#include "graph/body.h"
#include "program/program.h"
#include "remote/connection.h"
#include "remote/far_work.h"
#include "remote/op_text.h"
#include "remote/part_link.h"
#include "remote/session_part.h"
#include "remote/split.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth::remote {

namespace {

uint64_t next_part() {
  static std::atomic<uint64_t> n{0};
  return ++n;
}

uint64_t next_run() {
  static std::atomic<uint64_t> n{0};
  return ++n;
}

Device& device_of(const Node& n) {
  return DeviceManager::get().lookup(n.assigned.name());
}

bool draws(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) {
    bool is = n.op->random();
    visit_bodies(n, [&](const std::string&, const Graph& body) {
      is = is || draws(body);
    });
    return is;
  });
}

// The part of another task.
class FarPart {
 public:
  FarPart(TaskGraph part, const PlanOptions& options,
          const std::vector<cluster::TaskId>& tasks)
      : part_(std::move(part)), line_(*find_task(*part_.task)) {
    const Graph& g = part_.graph;
    text_ = print(g);
    head_.number(options.slices)
        .number(options.in_order ? 1 : 0)
        .number(static_cast<uint64_t>(options.timeout_seconds * 1e3))
        .number(uint64_t{tasks.size()});
    for (const cluster::TaskId& t : tasks) head_.text(t.job).number(t.index);
    const std::vector<Tensor> variables = variable_nodes(g);
    head_.number(uint64_t{variables.size()});
    for (const Tensor& t : variables) {
      head_.address(variable_state(t).storage->data);
    }
    blobs_ = blobs_of(g);
    head_.number(hash_of(text_)).text(text_).number(uint64_t{blobs_.size()});
    for (const int32_t a : g.args) arg_devices_.push_back(&device_of(g[a]));
    for (const ValueRef v : g.outputs) {
      out_devices_.push_back(&device_of(g[v.node]));
    }
  }
  ~FarPart() {
    if (session_ != line_.session()) return;
    try {
      line_.post(Writer()
                     .number(static_cast<uint64_t>(Command::kDropPart))
                     .number(id_));
    } catch (const std::exception&) {
      // The session ends with all parts compiled in it.
    }
  }
  FarPart(const FarPart&) = delete;
  FarPart& operator=(const FarPart&) = delete;

  const TaskGraph& part() const { return part_; }
  RemoteTask& line() const { return line_; }

  // Makes the task compile it, once per session.
  void prepare(const std::string& owner) {
    if (session_ == line_.session()) return;
    const uint64_t session = line_.session();
    id_ = next_part();
    const Tensor answer =
        line_.ask(Writer()
                      .number(static_cast<uint64_t>(Command::kCompile))
                      .number(id_)
                      .text(owner)
                      .raw(head_.bytes()),
                  blobs_, "a part of a step");
    Reader r(bytes_of(answer));
    info_.ops = static_cast<int>(r.number());
    info_.regions = static_cast<int>(r.number());
    info_.transfers = static_cast<int>(r.number());
    info_.waits = static_cast<int>(r.number());
    info_.copied_bytes = static_cast<size_t>(r.number());
    info_.arena_bytes = static_cast<size_t>(r.number());
    info_.bound_bytes = static_cast<size_t>(r.number());
    info_.output_bytes = static_cast<size_t>(r.number());
    plan_text_ = std::string(r.text());
    session_ = session;
  }

  // Sends the arguments there and allocates the results.
  void bind(std::span<const Tensor* const> in) {
    args_.clear();
    outs_.clear();
    for (size_t i = 0; i < arg_devices_.size(); ++i) {
      args_.push_back(own_copy(*in[part_.args[i]], *arg_devices_[i]));
    }
    for (size_t o = 0; o < out_devices_.size(); ++o) {
      const OutSpec& spec = part_.graph.spec(part_.graph.outputs[o]);
      outs_.push_back(make_tensor(*out_devices_[o], spec.dtype, spec.shape));
    }
  }

  void post(uint64_t run, uint64_t step) {
    Writer w;
    w.number(static_cast<uint64_t>(Command::kRunPart)).number(id_).number(run);
    w.number(step).number(uint64_t{args_.size()});
    for (const Tensor& t : args_) w.address(t.impl()->data());
    w.number(uint64_t{outs_.size()});
    for (const Tensor& t : outs_) w.address(t.impl()->data());
    struct Post {
      RemoteTask& line;
      const Writer& command;
    } post{line_, w};
    Work work;
    work.what = "a part of a step";
    work.context = &post;
    work.run = [](void* context, Stream&) {
      auto& p = *static_cast<Post*>(context);
      p.line.post(p.command);
    };
    any_device().compute_stream().launch(work);
    line_.flush();
  }

  // Moves the results out.
  void finish(std::span<Tensor> out) {
    for (size_t o = 0; o < outs_.size(); ++o) {
      outs_[o].impl()->block->ready =
          out_devices_[o]->compute_stream().record();
      out[static_cast<size_t>(part_.outputs[o])] = std::move(outs_[o]);
    }
    args_.clear();
    outs_.clear();
  }

  void add_to(PlanInfo& info) const {
    info.ops += info_.ops;
    info.regions += info_.regions;
    info.transfers += info_.transfers;
    info.waits += info_.waits;
    info.copied_bytes += info_.copied_bytes;
    info.arena_bytes += info_.arena_bytes;
    info.bound_bytes += info_.bound_bytes;
    info.output_bytes += info_.output_bytes;
  }
  // Adds the transfers of arguments that a call would make.
  void add_arguments(StepWork& work, std::span<const Tensor* const> in) const {
    for (size_t i = 0; i < arg_devices_.size() && !in.empty(); ++i) {
      const TensorImpl& t = *in[static_cast<size_t>(part_.args[i])]->impl();
      if (t.block->device == arg_devices_[i]) continue;
      placement::TransferRow row;
      row.value = part_.graph[part_.graph.args[i]].name + ":0";
      row.from = t.block->device->str();
      row.to = arg_devices_[i]->str();
      row.bytes = static_cast<int64_t>(t.size_bytes());
      row.runs_per_step = 1;
      row.cause = "an argument that is elsewhere";
      StepWork::Edge edge;
      edge.argument = true;
      work.report.transfers.push_back(std::move(row));
      work.edges.push_back(std::move(edge));
    }
  }
  std::string str() const {
    return fmt::format("\n# {}\n{}\n{}", part_.task->str(), text_, plan_text_);
  }

 private:
  Device& any_device() const {
    for (const Node& n : part_.graph.nodes) {
      if (!n.assigned.empty()) return device_of(n);
    }
    throw errors::Internal("a part of a step without nodes");
  }

  const TaskGraph part_;
  RemoteTask& line_;
  std::string text_, plan_text_;
  Writer head_;
  std::vector<Tensor> blobs_;
  std::vector<Device*> arg_devices_, out_devices_;
  uint64_t id_ = 0, session_ = 0;
  PlanInfo info_;
  std::vector<Tensor> args_, outs_;  // of the run
};

// The variables of the far parts, in the form that plans use.
PlanVariables variables_of_parts(const std::vector<TaskGraph>& parts) {
  PlanVariables all;
  std::map<const VariableState*, VariableUse> uses;
  const std::function<void(const Graph&)> visit = [&](const Graph& g) {
    for (const Node& n : g.nodes) {
      if (n.variable.defined()) {
        uses[&variable_state(n.variable)].handle = n.variable;
      }
      for (size_t k = 0; k < n.inputs.size(); ++k) {
        int32_t at = n.inputs[k].node;
        if (g.spec(n.inputs[k]).dtype != resource) continue;
        while (!g[at].variable.defined() && !g[at].inputs.empty()) {
          at = g[at].inputs[0].node;
        }
        if (!g[at].variable.defined()) continue;
        VariableUse& use = uses[&variable_state(g[at].variable)];
        use.handle = g[at].variable;
        const bool known = n.op->kind() != OpKind::kControl;
        const Access access =
            known ? n.op->input(static_cast<int>(k)).access : Access::kValue;
        if (!known || access != Access::kOverwritesVariable) {
          use.read = use.read || !use.overwrite_first;
        } else if (!use.read && !use.write) {
          use.overwrite_first = true;
        }
        const bool wrote = !known || writes(access);
        use.write = use.write || wrote;
        use.writes += wrote;
      }
      visit_bodies(n,
                   [&](const std::string&, const Graph& body) { visit(body); });
    }
  };
  for (const TaskGraph& p : parts) {
    if (p.task) visit(p.graph);
  }
  for (auto& [state, use] : uses) {
    all.lock_order.push_back(static_cast<int>(all.uses.size()));
    all.holds.emplace_back(use.handle);
    all.uses.push_back(std::move(use));
  }
  std::sort(all.lock_order.begin(), all.lock_order.end(), [&](int a, int b) {
    return variable_state(all.uses[a].handle).serial <
           variable_state(all.uses[b].handle).serial;
  });
  return all;
}

class SplitStep final : public TaskParts {
 public:
  SplitStep(std::vector<TaskGraph> parts, const PlanOptions& options,
            std::shared_ptr<cluster::Member> member)
      : member_(std::move(member)),
        steps_(options.steps),
        near_(std::move(parts[0])),
        variables_(variables_of_parts(parts)) {
    std::vector<cluster::TaskId> tasks = {member_->task()};
    for (const TaskGraph& p : parts) {
      if (p.task) tasks.push_back(*p.task);
    }
    tasks_ = tasks;
    for (TaskGraph& p : parts) {
      if (!p.task) continue;
      draws_ = draws_ || draws(p.graph);
      far_.push_back(std::make_unique<FarPart>(std::move(p), options, tasks));
    }
    link_ = std::make_shared<PartLink>(member_, owner_name(*member_), tasks_);
    link_number_ = rendezvous_table().add(link_);
    for (const auto& f : far_) f->prepare(owner_name(*member_));
    written_by_device();
  }

  // This task's part, to be compiled here.
  Graph take_near() {
    Graph g = std::move(near_.graph);
    for (Node& n : g.nodes) {
      if (n.op->name() != "_TaskSend" && n.op->name() != "_TaskRecv") continue;
      auto pairs = n.attrs.get()->pairs();
      for (auto& [name, value] : pairs) {
        if (name == "link") value = link_number_;
      }
      n.attrs = AttrsRef(std::move(pairs));
    }
    return g;
  }

  void run(Plan& local, std::span<const Tensor* const> in,
           std::span<Tensor> out) override {
    std::lock_guard one(split_runs());
    connect_again();
    for (const auto& f : far_) {
      f->line().check_open();
      f->prepare(owner_name(*member_));
      f->bind(in);
    }
    const std::vector<const Tensor*> args = near_args(in);
    std::vector<Tensor> results(near_.outputs.size());
    RunLocks locks(variables_);
    const uint64_t run = next_run(), step = *steps_;
    link_->begin(run);
    {
      std::lock_guard lock(posting());
      for (const auto& f : far_) f->post(run, step);
    }
    try {
      local.run(args, results);
    } catch (const std::exception& e) {
      fail(e);
      locks.tear(e.what());
      work_again(e);
      throw;
    }
    if (draws_ && local.program().random_calls.empty()) ++*steps_;
    locks.written();
    note_written();
    for (const auto& f : far_) f->finish(out);
    for (size_t o = 0; o < results.size(); ++o) {
      out[static_cast<size_t>(near_.outputs[o])] = std::move(results[o]);
    }
  }

  void add_to(PlanInfo& info) const override {
    for (const auto& f : far_) f->add_to(info);
  }
  std::vector<const Tensor*> near_args(
      std::span<const Tensor* const> in) const override {
    std::vector<const Tensor*> args;
    for (const int k : near_.args) args.push_back(in[static_cast<size_t>(k)]);
    return args;
  }
  void add_to(StepWork& work, const Plan& local,
              std::span<const Tensor* const> in) const override {
    std::vector<const TaskGraph*> parts;
    for (const auto& f : far_) parts.push_back(&f->part());
    add_far_work(work, local.graph(), parts);
    for (const auto& f : far_) f->add_arguments(work, in);
  }
  std::string str() const override {
    std::string all;
    for (const auto& f : far_) all += f->str();
    return all;
  }

 private:
  // After a new connect() the links use the new member.
  void connect_again() {
    const auto member = connected_member();
    if (!member || member == member_) return;
    member_ = member;
    link_->move_to(member_, owner_name(*member_));
  }

  void fail(const std::exception& e) {
    const auto* error = dynamic_cast<const errors::Error*>(&e);
    if (link_->failed()) return;
    link_->fail(error ? error->code() : errors::Code::kInternal,
                fmt::format("{}: {}", member_->task().str(), e.what()));
  }

  // The caller gets the failure, so the tasks need not report it again. A late
  // or lost task is not awaited.
  void work_again(const std::exception& e) {
    const auto* error = dynamic_cast<const errors::Error*>(&e);
    if (error && (error->code() == errors::Code::kUnavailable ||
                  error->code() == errors::Code::kDeadlineExceeded)) {
      return;
    }
    for (const auto& f : far_) {
      try {
        f->line().reset();
      } catch (const std::exception&) {
        // Its next use reports it.
      }
    }
  }

  void written_by_device() {
    std::map<Device*, std::vector<Tensor>> all;
    for (const VariableUse& use : variables_.uses) {
      if (use.write) {
        all[variable_state(use.handle).device].push_back(use.handle);
      }
    }
    for (auto& [device, handles] : all) {
      written_.emplace_back(device, std::make_shared<const std::vector<Tensor>>(
                                        std::move(handles)));
    }
  }

  void note_written() {
    for (const auto& [device, handles] : written_) {
      const Event done = device->compute_stream().record();
      for (const Tensor& t : *handles) variable_state(t).storage->ready = done;
      watch_writes(device->compute_stream(), handles, "a run");
    }
  }

  std::shared_ptr<cluster::Member> member_;
  const std::shared_ptr<std::atomic<uint64_t>> steps_;
  TaskGraph near_;
  PlanVariables variables_;
  std::vector<cluster::TaskId> tasks_;
  bool draws_ = false;
  std::vector<std::unique_ptr<FarPart>> far_;
  std::shared_ptr<PartLink> link_;
  int64_t link_number_ = 0;
  std::vector<std::pair<Device*, WrittenVariables>> written_;
};

}  // namespace

std::unique_ptr<TaskParts> split_over_tasks(Graph& graph,
                                            const PlanOptions& options) {
  const auto member = connected_member();
  if (!member) return nullptr;  // every use of the devices reports that
  auto parts = split_graph(graph, member->task().str());
  if (!parts) return nullptr;
  auto step = std::make_unique<SplitStep>(std::move(*parts), options, member);
  graph = step->take_near();
  return step;
}

}  // namespace berth::remote
