// The analysis as JSON: docs/json.md.

#include "profiler/analysis.h"

namespace berth::profiler {

using Json = nlohmann::ordered_json;

namespace {

Json use_json(const DeviceTime& d) {
  Json idle = Json::object(), edges = Json::array();
  for (size_t k = 0; k < kIdleCauses; ++k) {
    idle[name_of(static_cast<IdleCause>(k))] = d.idle_us[k];
  }
  for (const auto& [edge, us] : d.idle_edges) {
    edges.push_back({{"edge", edge}, {"us", us}});
  }
  return {{"device", d.name},
          {"busy_us", d.busy_us},
          {"window_us", d.window_us},
          {"idle_us", idle},
          {"idle_edges", edges}};
}

Json overlap_json(const OverlapShare& o) {
  return {{"total_us", o.total_us},
          {"hidden_us", o.hidden_us},
          {"exposed_us", o.exposed_us()},
          {"bytes", o.bytes}};
}

Json op_json(const OpSummary& o) {
  return {{"name", o.name},
          {"kind", o.kind},
          {"device", o.device},
          {"line", o.line},
          {"detail", o.detail},
          {"count", o.count},
          {"total_us", o.total_us},
          {"median_us", o.median_us},
          {"predicted_us", o.predicted_us < 0 ? Json() : Json(o.predicted_us)},
          {"bytes", o.bytes},
          {"flops", o.flops},
          {"limit", name_of(o.limit)},
          {"roof_share", o.roof_share},
          {"critical_us", o.critical_us}};
}

template <class List, class Fn>
Json list_of(const List& list, Fn fn) {
  Json all = Json::array();
  for (const auto& item : list) all.push_back(fn(item));
  return all;
}

}  // namespace

Json to_json(const Analysis& a) {
  return {{"verdict", a.verdict},
          {"advice", list_of(a.advice,
                             [](const Advice& v) {
                               return Json{{"title", v.title},
                                           {"line", v.line},
                                           {"formula", v.formula},
                                           {"gain_us", v.gain_us},
                                           {"share", v.share}};
                             })},
          {"step_name", a.step_name},
          {"clock", a.clock},
          {"steps", a.steps},
          {"events", a.events},
          {"dropped", a.dropped},
          {"span_us", a.span_us},
          {"step_us", a.step_us},
          {"step_p90_us", a.step_p90_us},
          {"first_step_us", a.first_step_us},
          {"explained", a.explained},
          {"input_us", a.input_us},
          {"devices", list_of(a.devices, use_json)},
          {"transfers", overlap_json(a.transfers)},
          {"sums", overlap_json(a.sums)},
          {"ops", list_of(a.ops, op_json)},
          {"roofs", list_of(a.roofs,
                            [](const DeviceRoof& r) {
                              return Json{{"device", r.device},
                                          {"flops_per_us", r.flops_per_us},
                                          {"bytes_per_us", r.bytes_per_us},
                                          {"launch_us", r.launch_us}};
                            })},
          {"path", list_of(a.path,
                           [](const PathPart& p) {
                             return Json{{"what", p.what},
                                         {"where", p.where},
                                         {"begin_us", p.begin_us},
                                         {"end_us", p.end_us}};
                           })},
          {"path_by_device",
           list_of(a.path_by_device,
                   [](const auto& p) {
                     return Json{{"where", p.first}, {"us", p.second}};
                   })},
          {"stages", list_of(a.stages,
                             [](const InputStageUse& s) {
                               return Json{{"name", s.name},
                                           {"line", s.line},
                                           {"count", s.count},
                                           {"busy_us", s.busy_us},
                                           {"own_us", s.own_us}};
                             })},
          {"clocks", list_of(a.clocks,
                             [](const TaskClock& c) {
                               return Json{{"task", c.task},
                                           {"offset_us", c.offset_us},
                                           {"error_us", c.error_us},
                                           {"messages", c.messages}};
                             })},
          {"tasks", list_of(a.lags, [](const TaskLag& l) {
             return Json{{"task", l.task},
                         {"sums", l.sums},
                         {"last", l.last},
                         {"waited_us", l.waited_us},
                         {"median_lost_us", l.median_lost_us}};
           })}};
}

Json to_json(const std::vector<OpDifference>& all) {
  return list_of(all, [](const OpDifference& d) {
    return Json{{"name", d.name},
                {"kind", d.kind},
                {"device", d.device},
                {"line", d.line},
                {"count_a", d.count_a},
                {"count_b", d.count_b},
                {"median_a_us", d.median_a},
                {"median_b_us", d.median_b},
                {"per_step_us", d.per_step_us},
                {"change", d.count_a == 0   ? "new"
                           : d.count_b == 0 ? "gone"
                                            : ""}};
  });
}

}  // namespace berth::profiler
