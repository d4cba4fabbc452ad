#include "distribute/parameter_server/worker.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "device/device_manager.h"
#include "distribute/parameter_server/registered_datasets.h"
#include "distribute/parameter_server/row_copies.h"
#include "distribute/parameter_server/server.h"
#include "op/dispatcher.h"
#include "tensor/tensor_impl.h"

namespace berth::distribute {

// A pending call of a server.
struct StepRunner::Call {
  int server = 0;
  cluster::Message request, answer;
};

StepRunner::StepRunner(cluster::Member& member, StepProgram program)
    : member_(member), program_(std::move(program)) {
  for (const StepStage& s : program_.stages) {
    Part& part = parts_.emplace_back();
    if (s.worker.text.empty()) continue;
    Graph graph = parse_graph(s.worker.text);
    if (graph.args.size() != s.worker.args.size() ||
        graph.outputs.size() != s.worker.outs.size()) {
      throw errors::InvalidArgument(
          "a program whose graph does not fit what it takes and gives");
    }
    for (const Node& n : graph.nodes) {
      part.random = part.random || n.op->random();
    }
    const FunctionOptions options{.name = graph.name};
    part.graph = std::make_unique<GraphCallable>(std::move(graph), options);
  }
}

cluster::TaskId StepRunner::server(int number) const {
  const cluster::TaskId task{"ps", number};
  for (const cluster::TaskId& t : member_.tasks()) {
    if (t == task) return task;
  }
  throw errors::InvalidArgument(fmt::format(
      "a program names {}, which is not of the cluster", task.str()));
}

// Sends all requests, then waits for all answers.
void StepRunner::take(std::vector<Call>& calls) {
  std::vector<std::future<cluster::Message>> answers;
  for (Call& c : calls) {
    answers.push_back(begin_call(member_, server(c.server), kServerService,
                                 std::move(c.request)));
  }
  std::exception_ptr first;
  for (size_t i = 0; i < calls.size(); ++i) {
    try {
      calls[i].answer = answer_of(answers[i], server(calls[i].server));
    } catch (const errors::Error&) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

// A part that a pull asks a server for, and where its rows belong.
struct StepRunner::RequestedPart {
  size_t pull, part;
  std::vector<int64_t> places;
};

// The requests by server; `asked` is in the order of each server's answer.
std::vector<StepRunner::Call> StepRunner::requests(
    const StepStage& stage, const Tensors& values,
    std::map<int, std::vector<RequestedPart>>& asked) const {
  std::map<int, Call> calls;
  for (size_t p = 0; p < stage.pulls.size(); ++p) {
    const Pull& pull = stage.pulls[p];
    std::vector<int64_t> ids;
    if (pull.ids >= 0) {
      ids = ids_of(values[pull.ids]);
      check_ids(ids, pull.shape[0], "a gather of rows");
    }
    for (size_t k = 0; k < pull.parts.size(); ++k) {
      const Pull::Part& part = pull.parts[k];
      Call& call = calls[part.server];
      call.server = part.server;
      std::string& text = call.request.text;
      if (text.empty()) text = "read";
      RequestedPart a{p, k, {}};
      if (pull.ids < 0) {
        text += " " + part.key;
      } else {
        IdsWithin within = pull.parts.size() == 1
                               ? ids_within(ids, 0, pull.shape[0])
                               : ids_within(ids, part.begin, part.end);
        if (within.ids.empty() && pull.parts.size() > 1) continue;
        text += " @" + part.key;
        call.request.tensors.push_back(ids_tensor(within.ids));
        a.places = std::move(within.places);
      }
      asked[part.server].push_back(std::move(a));
    }
  }
  std::vector<Call> list;
  for (auto& [server, call] : calls) {
    if (asked.contains(server)) list.push_back(std::move(call));
  }
  return list;
}

void StepRunner::pull(const StepStage& stage, Tensors& values) {
  std::map<int, std::vector<RequestedPart>> asked;
  std::vector<Call> list = requests(stage, values, asked);
  take(list);
  std::vector<Tensors> got(stage.pulls.size());
  std::vector<std::vector<std::vector<int64_t>>> places(stage.pulls.size());
  std::vector<std::map<size_t, Tensor>> by_part(stage.pulls.size());
  for (Call& c : list) {
    auto& of_server = asked[c.server];
    if (c.answer.tensors.size() != of_server.size()) {
      throw errors::DataLoss("a parameter server gave fewer values than asked");
    }
    for (size_t i = 0; i < of_server.size(); ++i) {
      RequestedPart& a = of_server[i];
      if (stage.pulls[a.pull].ids < 0) {
        by_part[a.pull][a.part] = std::move(c.answer.tensors[i]);
      } else {
        got[a.pull].push_back(std::move(c.answer.tensors[i]));
        places[a.pull].push_back(std::move(a.places));
      }
    }
  }
  for (size_t p = 0; p < stage.pulls.size(); ++p) {
    const Pull& pull = stage.pulls[p];
    for (auto& [part, t] : by_part[p]) got[p].push_back(std::move(t));
    Tensor& value = values[pull.value];
    if (pull.ids < 0) {
      value = got[p].size() == 1 ? got[p][0] : joined_rows(got[p], pull.shape);
      continue;
    }
    Shape shape = values[pull.ids].shape();
    for (int i = 1; i < pull.shape.rank(); ++i) shape.push_back(pull.shape[i]);
    value = placed_rows(got[p], places[p], shape, pull.dtype);
  }
}

void StepRunner::push(const StepStage& stage, Tensors& values,
                      uint64_t number) {
  std::vector<Call> calls;
  for (const ServerPart& u : stage.updates) {
    Call call{.server = u.server, .request = {}, .answer = {}};
    call.request.text = fmt::format("run {} {}", u.hash, number);
    for (const Push& p : u.args) {
      const Tensor& t = values[p.value];
      if (p.cut == Push::Cut::kWhole) {
        call.request.tensors.push_back(t);
      } else if (p.cut == Push::Cut::kRows) {
        call.request.tensors.push_back(cut_rows(t, p.begin, p.end));
      } else {
        const bool rows = p.cut == Push::Cut::kSparseRows;
        const Tensor& from = rows ? values[p.ids] : t;
        const std::vector<int64_t> ids = ids_of(from);
        check_ids(ids, p.rows, "an update of rows");
        const IdsWithin within = ids_within(ids, p.begin, p.end);
        call.request.tensors.push_back(
            rows ? picked_rows(t, within.places, from.shape())
                 : ids_tensor(within.ids));
      }
    }
    calls.push_back(std::move(call));
  }
  take(calls);
  for (size_t i = 0; i < calls.size(); ++i) {
    const ServerPart& u = stage.updates[i];
    if (calls[i].answer.tensors.size() != u.outs.size()) {
      throw errors::DataLoss("a parameter server gave fewer values than asked");
    }
    for (size_t k = 0; k < u.outs.size(); ++k) {
      values[u.outs[k]] = calls[i].answer.tensors[k];
    }
  }
}

namespace {

// Where a graph starts to count its runs.
void count_from(GraphCallable& graph, const Tensors& args, uint64_t number) {
  constexpr size_t kBodies = 16;  // bodies with own random numbers
  std::string key;
  for (const Tensor& t : args) key += t.shape().str();
  graph.set_run_counts({{key, std::vector<uint64_t>(1 + kBodies, number)}});
}

}  // namespace

Tensors StepRunner::run(const Tensors& args, uint64_t number) {
  if (args.size() != static_cast<size_t>(program_.num_args)) {
    throw errors::InvalidArgument(
        fmt::format("a function takes {} tensors and got {}", program_.num_args,
                    args.size()));
  }
  Tensors values = args;
  values.resize(program_.num_values);
  for (size_t s = 0; s < program_.stages.size(); ++s) {
    const StepStage& stage = program_.stages[s];
    pull(stage, values);
    if (parts_[s].graph) {
      Tensors in;
      for (const int32_t v : stage.worker.args) in.push_back(values[v]);
      if (parts_[s].random) count_from(*parts_[s].graph, in, number);
      const Tensors out = run_part(*parts_[s].graph, in);
      for (size_t i = 0; i < out.size(); ++i) {
        values[stage.worker.outs[i]] = for_sending(out[i]);
      }
    }
    push(stage, values, number);
  }
  Tensors results;
  for (const int32_t v : program_.results) {
    results.push_back(for_sending(values[v]));
  }
  return results;
}

Tensors PsWorker::next_of(int64_t id) {
  std::shared_ptr<OpenIterator> open;
  {
    std::lock_guard lock(mutex_);
    const auto it = iterators_.find(id);
    if (it != iterators_.end()) open = it->second;
  }
  if (open == nullptr) {
    throw errors::NotFound("there is no such iterator on this worker");
  }
  std::lock_guard lock(open->mutex);
  std::optional<data::Element> element = open->iterator->next();
  if (element) return *element;
  throw errors::OutOfRange(
      "End of sequence: the dataset of this worker has no more elements; "
      "repeat() it, or make another iterator");
}

Tensors PsWorker::arguments(Request& request, const Tensors& tensors) {
  Tensors args;
  std::map<int64_t, Tensors> elements;
  size_t next = 0;
  for (std::string arg; request.operands >> arg;) {
    if (arg == "t") {
      if (next == tensors.size()) {
        throw errors::InvalidArgument("a function lacks arguments");
      }
      args.push_back(tensors[next++]);
      continue;
    }
    int64_t id = 0;
    size_t component = 0;
    char kind = 0, colon = 0;
    std::istringstream in(arg);
    if (!(in >> kind >> id >> colon >> component)) {
      throw errors::InvalidArgument("an argument that cannot be read: " + arg);
    }
    Tensors list;
    if (kind == 'd') {
      Tensors& drawn = elements[id];
      while (component >= drawn.size()) {
        const Tensors element = next_of(id);
        drawn.insert(drawn.end(), element.begin(), element.end());
        if (element.empty()) break;
      }
      list = drawn;
    } else {
      std::lock_guard lock(mutex_);
      const auto it = resources_.find(id);
      if (it != resources_.end()) list = it->second;
    }
    if (component >= list.size()) {
      throw errors::NotFound(
          fmt::format("this worker does not have argument {}", arg));
    }
    args.push_back(list[component]);
  }
  return args;
}

cluster::Message PsWorker::hello(Request&, Tensors&) {
  return {fmt::format("{}", incarnation_), {}};
}

cluster::Message PsWorker::begin(Request& request, Tensors& tensors) {
  {
    std::lock_guard lock(mutex_);
    programs_.clear();
    datasets_.clear();
    iterators_.clear();
    resources_.clear();
  }
  return hello(request, tensors);
}

cluster::Message PsWorker::add_program(Request& request, Tensors& tensors) {
  StepProgram program = decode_program({request.body, tensors});
  const std::string hash = program.hash;
  auto runner = std::make_shared<StepRunner>(*member_, std::move(program));
  std::lock_guard lock(mutex_);
  programs_[hash] = std::move(runner);
  return {"ok", {}};
}

cluster::Message PsWorker::add_dataset(Request& request, Tensors&) {
  const auto id = operand<int64_t>(request.operands);
  InputContext context;
  context.num_input_pipelines = operand<int>(request.operands);
  context.num_replicas_in_sync = 1;
  context.input_pipeline_id = operand<int>(request.operands);
  data::Dataset made = registered_dataset(request.body)(context);
  std::lock_guard lock(mutex_);
  datasets_.insert_or_assign(id, std::move(made));
  return {"ok", {}};
}

cluster::Message PsWorker::add_iterator(Request& request, Tensors&) {
  const auto id = operand<int64_t>(request.operands);
  const auto dataset = operand<int64_t>(request.operands);
  std::lock_guard lock(mutex_);
  const auto it = datasets_.find(dataset);
  if (it == datasets_.end()) {
    throw errors::NotFound("there is no such dataset on this worker");
  }
  auto open = std::make_shared<OpenIterator>();
  open->iterator.emplace(it->second.make_iterator());
  iterators_[id] = std::move(open);
  return {"ok", {}};
}

cluster::Message PsWorker::add_resource(Request& request, Tensors& tensors) {
  const auto id = operand<int64_t>(request.operands);
  std::lock_guard lock(mutex_);
  resources_[id] = tensors;
  return {"ok", {}};
}

cluster::Message PsWorker::run(Request& request, Tensors& tensors) {
  const auto hash = operand<std::string>(request.operands);
  const auto number = operand<uint64_t>(request.operands);
  std::shared_ptr<StepRunner> program;
  {
    std::lock_guard lock(mutex_);
    const auto it = programs_.find(hash);
    if (it != programs_.end()) program = it->second;
  }
  if (program == nullptr) {
    throw errors::NotFound("this worker does not know the function");
  }
  return {"ok", program->run(arguments(request, tensors), number)};
}

cluster::Message PsWorker::handle(Request& request, Tensors& tensors) {
  static constexpr std::pair<std::string_view, Answer> kAnswers[] = {
      {"hello", &PsWorker::hello},
      {"begin", &PsWorker::begin},
      {"program", &PsWorker::add_program},
      {"dataset", &PsWorker::add_dataset},
      {"iterator", &PsWorker::add_iterator},
      {"resource", &PsWorker::add_resource},
      {"run", &PsWorker::run}};
  for (const auto& [word, answer] : kAnswers) {
    if (word == request.word) return (this->*answer)(request, tensors);
  }
  throw errors::InvalidArgument(
      fmt::format("a worker is asked to \"{}\"", request.word));
}

}  // namespace berth::distribute
