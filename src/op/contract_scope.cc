#include "op/contract_scope.h"

#include <fmt/format.h>

#include <utility>

#include "base/bytes_text.h"
#include "base/compared_bytes.h"
#include "base/immortal.h"
#include "base/where.h"
#include "berth/errors.h"
#include "device/device.h"
#include "op/device_scope.h"
#include "op/op_def.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth {

namespace {

struct OpenContracts {
  ContractChainRef chain;
};
ContractChainRef& open_chain() { return of_this_thread<OpenContracts>().chain; }

void set_open(ContractChainRef chain) {
  open_chain() = std::move(chain);
  if (open_chain()) {
    t_state.flags |= kContractsOpen;
  } else {
    t_state.flags &= ~kContractsOpen;
  }
}

std::string named(const std::string& device) {
  return device.empty() ? "any device" : fmt::format("\"{}\"", device);
}

// `chain` without `scope`.
ContractChainRef without(const ContractChainRef& chain,
                         const placement::ScopeState* scope) {
  if (!chain) return nullptr;
  if (chain->scope.get() == scope) return chain->outer;
  return std::make_shared<const ContractChain>(
      ContractChain{chain->scope, without(chain->outer, scope)});
}

}  // namespace

ParsedContract::ParsedContract(placement::Contract c) : contract(std::move(c)) {
  auto parse = [&](const char* field, const std::string& text) {
    try {
      return DeviceName::parse(text);
    } catch (const errors::InvalidArgument& e) {
      throw errors::InvalidArgument(fmt::format(
          "contract \"{}\", {}: {}", contract.name, field, e.what()));
    }
  };
  auto not_negative = [&](const char* field, int64_t bytes) {
    if (bytes >= 0) return;
    throw errors::InvalidArgument(
        fmt::format("contract \"{}\", {}: bytes is {}; expected at least 0",
                    contract.name, field, bytes));
  };
  stays_on = parse("stays_on", contract.stays_on);
  for (const auto& t : contract.transfers) {
    transfers.push_back({parse("transfers", t.from), parse("transfers", t.to)});
    not_negative("transfers", t.bytes);
  }
  for (const auto& m : contract.peak_memory) {
    memory.push_back(parse("peak_memory", m.device));
    not_negative("peak_memory", m.bytes);
  }
  for (const auto& o : contract.ops) {
    ops.push_back(parse("ops", o.device));
    if (!o.op.empty()) continue;
    throw errors::InvalidArgument(fmt::format(
        "contract \"{}\", ops: an entry has no op; expected the name of an op "
        "or layer, such as \"dense\"",
        contract.name));
  }
}

bool names_op(const std::string& pattern, const std::string& name) {
  return name.starts_with(pattern) &&
         (name.size() == pattern.size() || name[pattern.size()] == '/');
}

void raise_broken(const placement::Contract& contract, Site made,
                  const std::string& what,
                  const std::vector<std::string>& offenders) {
  constexpr size_t kMostListed = 10;
  std::string text =
      fmt::format("contract \"{}\"{} is broken: {}", contract.name,
                  where_text(nullptr, made), what);
  for (size_t i = 0; i < offenders.size() && i < kMostListed; ++i) {
    text += "\n  " + offenders[i];
  }
  if (offenders.size() > kMostListed) {
    text += fmt::format("\n  and {} more", offenders.size() - kMostListed);
  }
  throw errors::FailedPrecondition(text);
}

ContractChainRef open_contracts() {
  return contracts_open() ? open_chain() : nullptr;
}

ContractChainRef joined(const ContractChainRef& inner,
                        const ContractChainRef& outer) {
  if (!inner || inner == outer) return outer;
  return std::make_shared<const ContractChain>(
      ContractChain{inner->scope, joined(inner->outer, outer)});
}

ContractsSwap::ContractsSwap(ContractChainRef chain) : saved_(open_chain()) {
  set_open(std::move(chain));
}
ContractsSwap::~ContractsSwap() { set_open(std::move(saved_)); }

namespace {

// What an eager call is about to do.
struct EagerCall {
  const OpDef& op;
  const Device& device;
  Device& memory;
  std::span<const Tensor* const> in;
  std::span<const OutSpec> out;

  std::string name() const {
    return t_state.layer && *t_state.layer
               ? fmt::format("{}/{}", t_state.layer, op.name())
               : op.name();
  }
  std::string line(const std::string& rest) const {
    return fmt::format("{}{}: {}", op.name(), where_text(), rest);
  }
};

int64_t bytes_of(const Shape& shape, DType dtype) {
  return shape.num_elements() * static_cast<int64_t>(size_of(dtype));
}

void check_place(const placement::ScopeState& s, const EagerCall& call) {
  const ParsedContract& c = s.parsed;
  const std::string on = call.device.short_name();
  if (!c.stays_on.matches(call.device.name())) {
    raise_broken(
        c.contract, s.site,
        fmt::format("everything must stay on \"{}\"", c.contract.stays_on),
        {call.line("runs on " + on)});
  }
  const DeviceScope* asked = t_state.scope;
  if (c.contract.no_fallback && asked &&
      !asked->name.matches(call.device.name())) {
    raise_broken(c.contract, s.site, "no op runs elsewhere than asked for",
                 {call.line(fmt::format("asked for on \"{}\", runs on {}",
                                        asked->name.str(), on))});
  }
}

void check_memory(const placement::ScopeState& s, const EagerCall& call) {
  const ParsedContract& c = s.parsed;
  for (size_t i = 0; i < c.memory.size(); ++i) {
    if (!c.memory[i].matches(call.memory.name())) continue;
    const auto held =
        static_cast<int64_t>(call.memory.allocator().info().current_bytes);
    int64_t more = 0;
    for (const OutSpec& o : call.out) more += bytes_of(o.shape, o.dtype);
    const placement::MemoryLimit& limit = c.contract.peak_memory[i];
    if (held + more <= limit.bytes) continue;
    const auto [most, is] = compared_bytes(limit.bytes, held + more);
    raise_broken(
        c.contract, s.site,
        fmt::format("at most {} on \"{}\", not {}", most, limit.device, is),
        {call.line(fmt::format("needs {} on {}, where {} are in use",
                               bytes_text(more), call.memory.short_name(),
                               bytes_text(held)))});
  }
}

void check_ops(placement::ScopeState& s, const EagerCall& call) {
  const ParsedContract& c = s.parsed;
  for (size_t i = 0; i < c.ops.size(); ++i) {
    const placement::OpPlace& p = c.contract.ops[i];
    if (!names_op(p.op, call.name())) continue;
    s.met[i] = true;
    if (c.ops[i].matches(call.device.name())) continue;
    raise_broken(c.contract, s.site,
                 fmt::format("\"{}\" runs on \"{}\"", p.op, p.device),
                 {call.line("runs on " + call.device.short_name())});
  }
}

// Counts what moves to the call's device; false entries are not counted.
void count_moves(placement::ScopeState& s, const EagerCall& call) {
  const ParsedContract& c = s.parsed;
  std::vector<int64_t> more(c.transfers.size(), 0);
  std::vector<std::string> lines;
  int64_t all = 0;
  for (const Tensor* t : call.in) {
    const TensorImpl& i = *t->impl();
    if (i.kind != TensorKind::kConcrete) continue;
    if (i.block->device == &call.memory) continue;
    const int64_t bytes = bytes_of(i.shape, i.dtype);
    const DeviceName& from = i.block->device->name();
    all += bytes;
    lines.push_back(call.line(
        fmt::format("brings {} from {} to {}", bytes_text(bytes),
                    i.block->device->short_name(), call.memory.short_name())));
    for (size_t l = 0; l < more.size(); ++l) {
      const ParsedContract::Link& link = c.transfers[l];
      if (link.from.matches(from) && link.to.matches(call.memory.name())) {
        more[l] += bytes;
      }
    }
  }
  for (size_t l = 0; l < more.size(); ++l) {
    const placement::TransferLimit& limit = c.contract.transfers[l];
    if (more[l] == 0 || s.sent[l] + more[l] <= limit.bytes) continue;
    const auto [most, is] = compared_bytes(limit.bytes, s.sent[l] + more[l]);
    raise_broken(
        c.contract, s.site,
        fmt::format("at most {} from {} to {} in this block, not {}; {} moved "
                    "before this call",
                    most, named(limit.from), named(limit.to), is,
                    bytes_text(s.sent[l])),
        lines);
  }
  for (size_t l = 0; l < more.size(); ++l) s.sent[l] += more[l];
  s.moved_bytes += all;
}

}  // namespace

void check_eager_call(const OpDef& op, CallPlace place,
                      std::span<const Tensor* const> in,
                      std::span<const OutSpec> out) {
  const EagerCall call{op, place.device, place.memory, in, out};
  for (const ContractChain* at = open_chain().get(); at; at = at->outer.get()) {
    placement::ScopeState& s = *at->scope;
    std::lock_guard lock(s.mutex);
    check_place(s, call);
    check_ops(s, call);
    check_memory(s, call);
    count_moves(s, call);
  }
}

namespace placement {

ContractScope::ContractScope(Contract contract, Site site)
    : state_(std::make_shared<ScopeState>(std::move(contract), site)) {
  set_open(std::make_shared<const ContractChain>(
      ContractChain{state_, open_contracts()}));
}

ContractScope::~ContractScope() {
  set_open(without(open_chain(), state_.get()));
}

int64_t ContractScope::moved_bytes() const {
  std::lock_guard lock(state_->mutex);
  return state_->moved_bytes;
}

void ContractScope::check() const {
  std::lock_guard lock(state_->mutex);
  for (size_t i = 0; i < state_->met.size(); ++i) {
    if (state_->met[i]) continue;
    const Contract& c = state_->parsed.contract;
    throw errors::InvalidArgument(fmt::format(
        "contract \"{}\"{}: no op is called \"{}\" so far; expected the name "
        "of an op or layer that was called",
        c.name, where_text(nullptr, state_->site), c.ops[i].op));
  }
}

}  // namespace placement

}  // namespace berth
