#include "place/contracts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/bytes_text.h"
#include "base/compared_bytes.h"
#include "base/edit_distance.h"
#include "base/where.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "place/placer.h"

namespace berth {

namespace {

using placement::FallbackRow;
using placement::OpRow;
using placement::TransferRow;

std::string at(Site site) { return where_text(nullptr, site); }

bool is_named(const std::string& pattern, const OpRow& op) {
  return names_op(pattern, op.op) ||
         std::any_of(
             op.sources.begin(), op.sources.end(),
             [&](const std::string& s) { return names_op(pattern, s); });
}

class Check {
 public:
  Check(const ParsedContract& contract, Site made, const std::string& what,
        const StepWork& work, const std::vector<bool>& covered)
      : c_(contract), made_(made), what_(what), w_(work), covered_(covered) {}

  void run() const {
    if (!c_.contract.stays_on.empty()) stays_on();
    if (c_.contract.no_fallback) no_fallback();
    for (size_t i = 0; i < c_.transfers.size(); ++i) transfers(i);
    for (size_t i = 0; i < c_.memory.size(); ++i) memory(i);
    for (size_t i = 0; i < c_.ops.size(); ++i) op_place(i);
  }

 private:
  const placement::Report& report() const { return w_.report; }
  bool covers(int32_t op) const {
    return op >= 0 && (covered_.empty() || covered_[static_cast<size_t>(op)]);
  }
  bool covers_any(const std::vector<int32_t>& ops) const {
    return std::any_of(ops.begin(), ops.end(),
                       [&](int32_t op) { return covers(op); });
  }
  // Before the first run every part counts as run once, except branches.
  int64_t bytes(size_t i) const {
    const TransferRow& t = report().transfers[i];
    const double planned = w_.edges[i].maybe ? 0 : 1;
    const double runs = report().steps == 0 ? planned : t.runs_per_step;
    return std::llround(static_cast<double>(t.bytes) * runs);
  }

  [[noreturn]] void broken(const std::string& rule,
                           const std::vector<std::string>& lines) const {
    raise_broken(c_.contract, made_, fmt::format("{}; {}", rule, what_), lines);
  }
  static std::string line(const OpRow& op, const std::string& why) {
    return fmt::format("{} \"{}\"{} runs on {}{}", op.type, op.op, at(op.site),
                       short_device(op.device), why);
  }
  std::string line(size_t transfer) const {
    const TransferRow& t = report().transfers[transfer];
    return fmt::format("\"{}\"{}: {} {} -> {}, {}", t.value, at(t.site),
                       bytes_text(bytes(transfer)), short_device(t.from),
                       short_device(t.to), t.cause);
  }

  std::string reason_of(const OpRow& op) const {
    for (const auto* rows : {&report().fallbacks, &report().moved}) {
      for (const FallbackRow& f : *rows) {
        if (f.op == op.op || is_named(f.op, op)) return ": " + f.reason;
      }
    }
    return "";
  }

  void stays_on() const {
    std::vector<std::string> lines;
    const auto inside = [&](const std::string& device) {
      return c_.stays_on.matches(DeviceId(device).name());
    };
    for (size_t i = 0; i < w_.num_ops(); ++i) {
      const OpRow& op = w_.op(i);
      if (!covers(static_cast<int32_t>(i)) || inside(op.device)) continue;
      lines.push_back(line(op, reason_of(op)));
    }
    for (size_t i = 0; i < report().transfers.size(); ++i) {
      const TransferRow& t = report().transfers[i];
      const StepWork::Edge& e = w_.edges[i];
      if (e.argument || (inside(t.from) && inside(t.to))) continue;
      // In a block, input from outside also counts as an argument.
      const bool ours =
          covered_.empty() || (covers_any(e.readers) && covers(e.producer));
      if (ours) lines.push_back(line(i));
    }
    if (lines.empty()) return;
    const bool there =
        !DeviceManager::initialised() || DeviceManager::get().find(c_.stays_on);
    broken(fmt::format("everything must stay on \"{}\"{}", c_.contract.stays_on,
                       there ? ""
                             : ", which is not there: there are " +
                                   DeviceManager::get().list()),
           lines);
  }

  void no_fallback() const {
    std::vector<std::string> lines;
    for (const auto* rows : {&report().fallbacks, &report().moved}) {
      for (const FallbackRow& f : *rows) {
        // An op that follows its variable and moves nothing costs nothing.
        if (rows == &report().moved && f.bytes == 0) continue;
        if (!covers_fallback(f)) continue;
        lines.push_back(fmt::format(
            "\"{}\"{}: asked for on \"{}\", runs on {}: {}; {} per step "
            "move because of it",
            f.op, at(f.site), f.requested, short_device(f.device), f.reason,
            bytes_text(f.bytes)));
      }
    }
    if (!lines.empty()) broken("no op runs elsewhere than asked for", lines);
  }
  bool covers_fallback(const FallbackRow& f) const {
    if (covered_.empty()) return true;
    for (size_t i = 0; i < w_.num_ops(); ++i) {
      if (covered_[i] && is_named(f.op, w_.op(i))) return true;
    }
    return false;
  }

  void transfers(size_t i) const {
    const placement::TransferLimit& limit = c_.contract.transfers[i];
    const ParsedContract::Link& link = c_.transfers[i];
    int64_t sum = 0;
    std::vector<size_t> found;
    for (size_t k = 0; k < report().transfers.size(); ++k) {
      const TransferRow& t = report().transfers[k];
      if (!link.from.matches(DeviceId(t.from).name()) ||
          !link.to.matches(DeviceId(t.to).name()) || bytes(k) == 0) {
        continue;
      }
      if (!covered_.empty() && !covers_any(w_.edges[k].readers)) continue;
      sum += bytes(k);
      found.push_back(k);
    }
    if (sum <= limit.bytes) return;
    std::stable_sort(found.begin(), found.end(),
                     [&](size_t a, size_t b) { return bytes(a) > bytes(b); });
    std::vector<std::string> lines;
    for (const size_t t : found) lines.push_back(line(t));
    auto end = [](const std::string& device) {
      return device.empty() ? std::string("any device")
                            : fmt::format("\"{}\"", device);
    };
    const auto [most, is] = compared_bytes(limit.bytes, sum);
    broken(fmt::format("at most {} per step from {} to {}, not {}", most,
                       end(limit.from), end(limit.to), is),
           lines);
  }

  void memory(size_t i) const {
    const placement::MemoryLimit& limit = c_.contract.peak_memory[i];
    for (const placement::DeviceRow& d : report().devices) {
      if (d.peak_bytes <= limit.bytes ||
          !c_.memory[i].matches(DeviceId(d.device).name())) {
        continue;
      }
      std::vector<std::string> lines;
      for (const StepWork::Holder& h : w_.holders) {
        if (h.device != d.device) continue;
        lines.push_back(
            fmt::format("{}: {}{}", h.what, bytes_text(h.bytes), at(h.site)));
      }
      const auto [most, is] = compared_bytes(limit.bytes, d.peak_bytes);
      broken(fmt::format("at most {} at the peak on \"{}\", not {} on {}", most,
                         limit.device, is, short_device(d.device)),
             lines);
    }
  }

  void op_place(size_t i) const {
    const placement::OpPlace& place = c_.contract.ops[i];
    std::vector<std::string> lines;
    for (size_t k = 0; k < w_.num_ops(); ++k) {
      const OpRow& op = w_.op(k);
      if (!covers(static_cast<int32_t>(k)) || !is_named(place.op, op) ||
          c_.ops[i].matches(DeviceId(op.device).name())) {
        continue;
      }
      lines.push_back(line(op, reason_of(op)));
    }
    if (lines.empty()) return;
    broken(fmt::format("\"{}\" runs on \"{}\"", place.op, place.device), lines);
  }

  const ParsedContract& c_;
  const Site made_;
  const std::string& what_;
  const StepWork& w_;
  const std::vector<bool>& covered_;
};

}  // namespace

void check_contract(const ParsedContract& contract, Site made,
                    const std::string& what, const StepWork& work,
                    const std::vector<bool>& covered) {
  Check(contract, made, what, work, covered).run();
}

std::vector<std::string> nearest_names(const std::string& name,
                                       const std::vector<std::string>& names) {
  constexpr size_t kMostCompared = 20000, kShown = 3;
  std::multimap<size_t, std::string> by_distance;
  std::set<std::string> seen;
  for (const std::string& n : names) {
    if (seen.size() >= kMostCompared) break;
    if (!seen.insert(n).second) continue;
    by_distance.emplace(n.ends_with("/" + name) ? 0 : edit_distance(name, n),
                        n);
  }
  std::vector<std::string> nearest;
  for (const auto& [d, n] : by_distance) {
    if (nearest.size() == kShown) break;
    nearest.push_back(n);
  }
  return nearest;
}

void check_names(const ParsedContract& contract, Site made,
                 const std::string& what,
                 const std::vector<std::string>& names) {
  for (const placement::OpPlace& place : contract.contract.ops) {
    const bool met = std::any_of(
        names.begin(), names.end(),
        [&](const std::string& n) { return names_op(place.op, n); });
    if (met) continue;
    // Layers, too: "dense" of "dense/MatMul".
    std::vector<std::string> known = names;
    for (const std::string& n : names) {
      for (size_t at = n.find('/'); at != n.npos; at = n.find('/', at + 1)) {
        known.push_back(n.substr(0, at));
      }
    }
    std::string nearest;
    for (const std::string& n : nearest_names(place.op, known)) {
      nearest += (nearest.empty() ? "\"" : ", \"") + n + "\"";
    }
    throw errors::InvalidArgument(fmt::format(
        "contract \"{}\"{}: {} has no op \"{}\"; expected the name of an op or "
        "of a layer, such as {}",
        contract.contract.name, at(made), what, place.op,
        nearest.empty() ? "\"dense\"" : nearest));
  }
}

void check_scopes(const std::string& what, const StepWork& work) {
  std::map<std::shared_ptr<placement::ScopeState>, std::vector<bool>> covered;
  for (size_t i = 0; i < work.contracts.size(); ++i) {
    for (const ContractChainRef& chain : work.contracts[i]) {
      for (const auto* c = chain.get(); c != nullptr; c = c->outer.get()) {
        std::vector<bool>& ops = covered[c->scope];
        ops.resize(work.num_ops());
        ops[i] = true;
      }
    }
  }
  for (const auto& [scope, ops] : covered) {
    std::vector<std::string> names;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (!ops[i]) continue;
      names.push_back(work.op(i).op);
      const auto& sources = work.op(i).sources;
      names.insert(names.end(), sources.begin(), sources.end());
    }
    {
      std::lock_guard lock(scope->mutex);
      for (size_t k = 0; k < scope->met.size(); ++k) {
        const std::string& op = scope->parsed.contract.ops[k].op;
        for (const std::string& n : names) {
          if (names_op(op, n)) scope->met[k] = true;
        }
      }
    }
    check_contract(scope->parsed, scope->site, what, work, ops);
  }
}

}  // namespace berth
