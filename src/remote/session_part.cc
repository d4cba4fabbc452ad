#include "remote/session_part.h"

#include <fmt/format.h>

#include "berth/errors.h"
#include "device/device_manager.h"
#include "graph/blob_table.h"
#include "graph/body.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth::remote {

namespace {

// A block over memory of a session.
BlockRef block_over(std::byte* data, size_t bytes, Device& device) {
  auto block = std::make_unique<Block>();
  block->references = 1;
  block->data = data;
  block->bytes = bytes;
  block->device = &device;
  block->deleter = [](Block* b) { std::default_delete<Block>()(b); };
  return BlockRef::adopt(block.release());
}

Tensor tensor_over(std::byte* data, DType dtype, const Shape& shape,
                   Device& device) {
  const size_t bytes =
      static_cast<size_t>(shape.num_elements()) * size_of(dtype);
  TensorImpl* impl = new_tensor_impl();
  impl->dtype = dtype;
  impl->kind = TensorKind::kConcrete;
  impl->shape = shape;
  impl->block = block_over(data, bytes, device).detach();
  impl->byte_offset = 0;
  impl->device = &device;
  return Tensor::adopt(impl);
}

void set_attr(Node& node, std::string_view attr, AttrValue value) {
  auto pairs = node.attrs.get()->pairs();
  for (auto& [name, old] : pairs) {
    if (name == attr) old = std::move(value);
  }
  node.attrs = AttrsRef(std::move(pairs));
}

}  // namespace

uint64_t hash_of(std::string_view text) {
  uint64_t h = 14695981039346656037ull;
  for (const char c : text) {
    h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  }
  return h;
}

SessionPart::SessionPart(Session& session, Reader& r,
                         const std::function<Tensor()>& carried)
    : steps_(std::make_shared<std::atomic<uint64_t>>(0)) {
  std::string owner(r.text());
  PlanOptions options;
  options.slices = static_cast<int>(r.number());
  options.in_order = r.number() != 0;
  options.timeout_seconds = static_cast<double>(r.number()) * 1e-3;
  options.steps = steps_;
  std::vector<cluster::TaskId> tasks(r.count());
  for (cluster::TaskId& t : tasks) {
    t.job = std::string(r.text());
    t.index = static_cast<int>(r.number());
  }
  addresses_.resize(r.count());
  for (uint64_t& a : addresses_) a = r.number();
  const uint64_t hash = r.number();
  const std::string text(r.text());
  if (hash_of(text) != hash) {
    throw errors::InvalidArgument(
        "the text of this part of a step is not the one that was sent");
  }
  for (size_t n = r.number(); n > 0; --n) keep_blob(carried());
  Graph graph = parse_graph(text);
  link_ = std::make_shared<PartLink>(session.member(), std::move(owner),
                                     std::move(tasks));
  link_number_ = rendezvous_table().add(link_);
  make_local(session, graph);
  plan_ = Plan::build(std::move(graph), options);
  const PlanInfo& info = plan_->info();
  figures_ = Writer()
                 .number(info.ops)
                 .number(info.regions)
                 .number(info.transfers)
                 .number(info.waits)
                 .number(uint64_t{info.copied_bytes})
                 .number(uint64_t{info.arena_bytes})
                 .number(uint64_t{info.bound_bytes})
                 .number(uint64_t{info.output_bytes})
                 .text(plan_->str())
                 .bytes();
}

Device& SessionPart::local_device(const Session& session, DeviceId id) const {
  const DeviceName& name = id.name();
  const cluster::TaskId& here = session.member()->task();
  std::map<std::string, int> next;
  for (Device* d : session.devices()) {
    const int number = next[d->type()]++;
    if (name.job == here.job && name.task == here.index &&
        name.type == d->type() && name.id == number) {
      return *d;
    }
  }
  throw errors::InvalidArgument(fmt::format(
      "{} has no device {}; expected a part of a step for devices that it "
      "serves",
      here.str(), id.text()));
}

const Tensor& SessionPart::variable_at(Session& session, uint64_t address,
                                       Node& node) {
  Tensor& handle = variables_[address];
  if (handle.defined()) return handle;
  const OutSpec& spec = node.outputs[0];
  Device& device = local_device(session, node.assigned);
  handle = make_unbacked_variable(device, node.name, spec.variable, spec.shape);
  VariableState& state = variable_state(handle);
  const size_t bytes = state.size_bytes();
  state.storage =
      block_over(session.at(address, bytes, &device), bytes, device);
  return handle;
}

// Replaces devices, variables and links by those of this process.
void SessionPart::make_local(Session& session, Graph& graph) {
  for (Node& n : graph.nodes) {
    if (n.op->name() == "VarHandleOp") {
      if (next_address_ == addresses_.size()) {
        throw errors::InvalidArgument("a part of a step lacks a variable");
      }
      n.variable = variable_at(session, addresses_[next_address_++], n);
    }
    if (n.op->name() == "_TaskSend" || n.op->name() == "_TaskRecv") {
      set_attr(n, "link", link_number_);
    }
    if (!n.assigned.empty())
      n.assigned = local_device(session, n.assigned).id();
    n.requested.clear();
    n.colocated.clear();
    rewrite_bodies(n, [&](const std::string&, Graph& body) {
      make_local(session, body);
      return true;
    });
  }
}

void SessionPart::run(Session& session, Reader& r) {
  link_->begin(r.number());
  try {
    run_plan(session, r);
  } catch (const std::exception& e) {
    const auto* error = dynamic_cast<const errors::Error*>(&e);
    const errors::Code code = error ? error->code() : errors::Code::kInternal;
    if (!link_->failed()) {
      link_->fail(code, fmt::format("{}: {}", session.member()->task().str(),
                                    e.what()));
    }
    throw;
  }
}

void SessionPart::skip(Session& session, Reader& r, errors::Code code,
                       const std::string& why) {
  link_->begin(r.number());
  link_->fail(code, fmt::format("{}: {}", session.member()->task().str(), why));
}

void SessionPart::run_plan(Session& session, Reader& r) {
  *steps_ = r.number();
  const Graph& g = plan_->graph();
  std::vector<Tensor> in, out(g.outputs.size());
  std::vector<const Tensor*> pointers;
  if (r.count() != g.args.size()) {
    throw errors::InvalidArgument("a part of a step with other arguments");
  }
  for (const int32_t a : g.args) {
    const OutSpec& spec = g[a].outputs[0];
    const size_t bytes =
        static_cast<size_t>(spec.shape.num_elements()) * size_of(spec.dtype);
    Device& device = *DeviceManager::get().find(g[a].assigned.name());
    in.push_back(tensor_over(session.at(r.number(), bytes, &device), spec.dtype,
                             spec.shape, device));
  }
  for (const Tensor& t : in) pointers.push_back(&t);
  if (r.count() != out.size()) {
    throw errors::InvalidArgument("a part of a step with other results");
  }
  plan_->run(pointers, out);
  for (const Tensor& t : out) {
    const TensorImpl& from = *t.impl();
    Device& device = *from.block->device;
    const size_t bytes = from.size_bytes();
    std::byte* to = session.at(r.number(), bytes, &device);
    synchronize(from.block->ready);
    if (bytes == 0) continue;
    on_device(device, [&](Stream& stream) {
      device.copy_async(
          stream, {to, &device.memory(), from.data(), &device.memory(), bytes});
    });
  }
  for (Device* d : session.devices()) {
    if (!d->runs_inline()) synchronize(d->compute_stream().record());
  }
}

}  // namespace berth::remote
