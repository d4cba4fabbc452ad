#include "planner/units.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <span>

#include "base/bytes_text.h"
#include "berth/errors.h"

namespace berth {

namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kBytes[] = {{"B", 1},        {"kB", 1e3},     {"KB", 1e3},
                           {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
                           {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
                           {"TiB", 0x1p40}};
constexpr Unit kTimes[] = {{"ns", 1e-3}, {"us", 1}, {"ms", 1e3}, {"s", 1e6}};
constexpr Unit kFlops[] = {
    {"MFLOPS", 1}, {"GFLOPS", 1e3}, {"TFLOPS", 1e6}, {"PFLOPS", 1e9}};

struct UnitKind {
  const char* what;
  const char* example;
  const char* suffix;
  std::span<const Unit> units;
};

const UnitKind& kind_of(Quantity kind) {
  static const UnitKind kKinds[] = {
      {"size", "\"16GiB\" or \"512MB\"", "_bytes", kBytes},
      {"time", "\"5us\" or \"1.5ms\"", "_us", kTimes},
      {"bandwidth", "\"64GB/s\"", "_bytes_per_us", kBytes},
      {"speed", "\"19.5TFLOPS\"", "_per_us", kFlops}};
  return kKinds[static_cast<size_t>(kind)];
}

}  // namespace

double parse_quantity(std::string_view text, Quantity kind) {
  const UnitKind& k = kind_of(kind);
  const auto fail = [&](const char* why) {
    throw errors::InvalidArgument(
        fmt::format("\"{}\" {}; expected a {}, for example {}", text, why,
                    k.what, k.example));
  };
  double number = 0;
  const auto [rest, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) {
    fail("is too large, or too small");
  }
  if (error != std::errc() || !(number >= 0) || !std::isfinite(number)) {
    fail("does not begin with a number of 0 or more");
  }
  std::string_view unit(rest, static_cast<size_t>(text.end() - rest));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (unit.empty()) fail("has no unit");
  double scale = 1;
  if (kind == Quantity::kBandwidth) {
    if (!unit.ends_with("/s")) fail("does not end in \"/s\"");
    unit.remove_suffix(2);
    scale = 1e-6;
  }
  for (const Unit& u : k.units) {
    if (u.name != unit) continue;
    const double result = number * u.factor * scale;
    if (!std::isfinite(result)) fail("is too large");
    return result;
  }
  fail("has an unknown unit");
  return 0;
}

const char* unit_suffix(Quantity kind) { return kind_of(kind).suffix; }

std::string time_text(double time, const std::string& unit) {
  if (unit != "us") {
    return fmt::format("{:.6g}{}{}", time, unit.empty() ? "" : " ", unit);
  }
  const double size = std::fabs(time);
  if (size >= 1e6) return fmt::format("{:.4g} s", time / 1e6);
  if (size >= 1e3) return fmt::format("{:.4g} ms", time / 1e3);
  return fmt::format("{:.4g} us", time);
}

std::string size_text(double bytes) {
  if (!(bytes < 0x1p62)) return fmt::format("{:.4g} B", bytes);
  return bytes_text(static_cast<int64_t>(bytes));
}

}  // namespace berth
