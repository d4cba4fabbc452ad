// Explanations as text and as JSON.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/bytes_text.h"
#include "base/percent_text.h"
#include "base/where.h"
#include "berth/placement.h"
#include "device/virtual_clock.h"
#include "place/device_table.h"

namespace berth::placement {

namespace {

using Json = nlohmann::ordered_json;

const char* kind_name(Change::Kind kind) {
  switch (kind) {
    case Change::Kind::kRequest:
      return "request";
    case Change::Kind::kWithdrawRequest:
      return "withdraw_request";
    case Change::Kind::kWithdrawGroup:
      return "withdraw_group";
    case Change::Kind::kMoveVariable:
      return "move_variable";
    case Change::Kind::kAddKernel:
      return "add_kernel";
  }
  return "";
}

void add_site(Json& json, const Site& site) {
  if (site.file == nullptr) return;
  json["file"] = site.file;
  json["line"] = site.line;
}

std::string time_text(double us) {
  return std::abs(us) < 1000 ? fmt::format("{:.1f} us", us)
                             : fmt::format("{:.2f} ms", us / 1000);
}

// What rounds to zero has no minus sign.
std::string price_text(const Alternative& a) {
  if (a.step_us < 0) return "";
  return fmt::format(
      ", step {} ({}{}), {}{} sent", time_text(a.step_us),
      a.delta_us <= -0.05 ? "-" : "+", time_text(std::abs(a.delta_us)),
      a.delta_bytes < 0 ? "-" : "+", bytes_text(std::abs(a.delta_bytes)));
}

}  // namespace

std::string to_string(const Change& c) {
  const std::string at = where_text(nullptr, c.site);
  switch (c.kind) {
    case Change::Kind::kRequest:
      return fmt::format("ask for \"{}\" at \"{}\"{}", c.to, c.op, at);
    case Change::Kind::kWithdrawRequest:
      return fmt::format("ask for no device at \"{}\"{}", c.op, at);
    case Change::Kind::kWithdrawGroup:
      return fmt::format("take \"{}\" out of colocation group \"{}\"{}", c.op,
                         c.to, at);
    case Change::Kind::kMoveVariable:
      return fmt::format("create variable \"{}\" on \"{}\"{}", c.op, c.to, at);
    case Change::Kind::kAddKernel:
      return fmt::format("register a {} kernel for the op of \"{}\"{}", c.to,
                         c.op, at);
  }
  return "";
}

std::string Explanation::str() const {
  std::string s =
      fmt::format("\"{}\" is on {}: {}\n", op, short_device(device), rule);
  for (const Because& b : chain) {
    s += fmt::format("  because {}{}\n", b.text, where_text(nullptr, b.site));
  }
  for (const Alternative& a : alternatives) {
    const std::string at = short_device(a.device);
    const auto move =
        std::find_if(moves.begin(), moves.end(),
                     [&](const Move& m) { return m.device == a.device; });
    if (a.possible) {
      s += fmt::format("on {}: possible{}\n", at, price_text(a));
    } else {
      s += fmt::format("on {}: not possible: {}\n", at, a.why_not);
    }
    if (move == moves.end()) continue;
    for (const Change& c : move->changes) {
      s += fmt::format("  to move it there, {}\n", to_string(c));
    }
  }
  Clocks clocks;
  clocks.add(device);
  bool priced = false;
  for (const Alternative& a : alternatives) {
    clocks.add(a.device);
    priced |= a.step_us >= 0;
  }
  if (priced && clocks.virtual_time) {
    s += "steps are estimated, simulated devices by their simulated clock\n";
  }
  if (estimate_error >= 0) {
    s += fmt::format(
        "steps are estimated; such estimates were off by {} when measured\n",
        percent_text(estimate_error));
  }
  return s;
}

std::string Explanation::json() const {
  Json all = {{"op", op}, {"device", device}, {"rule", rule}};
  all["chain"] = Json::array();
  for (const Because& b : chain) {
    Json one = {{"text", b.text}};
    add_site(one, b.site);
    all["chain"].push_back(std::move(one));
  }
  all["alternatives"] = Json::array();
  for (const Alternative& a : alternatives) {
    Json one = {{"device", a.device}, {"possible", a.possible}};
    if (!a.possible) one["why_not"] = a.why_not;
    if (a.step_us >= 0) {
      one["step_us"] = a.step_us;
      one["delta_us"] = a.delta_us;
      one["delta_bytes"] = a.delta_bytes;
    }
    all["alternatives"].push_back(std::move(one));
  }
  all["moves"] = Json::array();
  for (const Move& m : moves) {
    Json changes = Json::array();
    for (const Change& c : m.changes) {
      Json one = {{"kind", kind_name(c.kind)},
                  {"op", c.op},
                  {"to", c.to},
                  {"text", to_string(c)}};
      add_site(one, c.site);
      changes.push_back(std::move(one));
    }
    all["moves"].push_back(
        {{"device", m.device}, {"changes", std::move(changes)}});
  }
  if (estimate_error >= 0) all["estimate_error"] = estimate_error;
  // Names may hold any bytes.
  return all.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace berth::placement
