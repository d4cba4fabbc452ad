// Splits: the plan format of the authors of dnn-partitioning.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "berth/errors.h"
#include "cli/planner/formats.h"
#include "planner/json_field.h"

namespace berth {

namespace {

using Json = nlohmann::json;

class SplitReader {
 public:
  SplitReader(const PlanProblem& p, const Field& file)
      : p_(p), file_(file), device_(static_cast<size_t>(p.num_ops()), -1) {
    for (int32_t i = 0; i < p.num_ops(); ++i) {
      number_of_[p.ids[i]] = i;
    }
    for (int32_t d = 0; d < p.num_devices(); ++d) {
      (p.free_of_touch[d] ? cpus_ : accelerators_).push_back(d);
    }
  }

  std::vector<int32_t> read() {
    read_lists(file_["cpus"], cpus_);
    read_lists(file_["fpgas"], accelerators_);
    follow_groups();
    return device_;
  }

 private:
  // Reads the lists of one kind of device. Extra lists are accepted if empty.
  void read_lists(const Field& lists, const std::vector<int32_t>& devices) {
    const bool by_place = lists.size() <= devices.size();
    size_t used = 0;
    for (size_t k = 0; k < lists.size(); ++k) {
      const Field nodes = lists[k]["nodes"];
      if (nodes.size() == 0) continue;
      const size_t at = by_place ? k : used++;
      if (at >= devices.size()) {
        lists.fail(fmt::format("{} with nodes at most", devices.size()));
      }
      for (size_t i = 0; i < nodes.size(); ++i) assign(nodes[i], devices[at]);
    }
  }

  void assign(const Field& id, int32_t device) {
    const auto it = id.json().is_number_integer()
                        ? number_of_.find(id.json().get<int64_t>())
                        : number_of_.end();
    if (it == number_of_.end()) {
      id.fail(fmt::format("the id of a node of \"{}\"", p_.name));
    }
    int32_t& d = device_[it->second];
    if (d >= 0) {
      id.fail_with(fmt::format("found {} again, expected each node once",
                               show_json(id.json())));
    }
    d = device;
  }

  // Unlisted ops go to the device of their colour class.
  void follow_groups() {
    std::vector<int32_t> of_group(p_.num_groups, -1);
    for (size_t i = 0; i < device_.size(); ++i) {
      int32_t& d = of_group[p_.group[i]];
      if (d < 0) d = device_[i];
    }
    for (size_t i = 0; i < device_.size(); ++i) {
      if (device_[i] >= 0) continue;
      device_[i] = of_group[p_.group[i]];
      if (device_[i] < 0) {
        file_.fail_with(
            fmt::format("names neither node {} (\"{}\") nor one of its "
                        "colour class; expected each node once",
                        p_.ids[i], p_.names[i]));
      }
    }
  }

  const PlanProblem& p_;
  const Field file_;
  std::unordered_map<int64_t, int32_t> number_of_;
  std::vector<int32_t> cpus_, accelerators_, device_;
};

void expect_ids(const PlanProblem& p) {
  if (p.ids.size() == static_cast<size_t>(p.num_ops()) &&
      p.free_of_touch.size() == p.costs.devices.size()) {
    return;
  }
  throw errors::InvalidArgument(
      fmt::format("a split for \"{}\": its ops have no ids; expected a problem "
                  "of the format of dnn-partitioning",
                  p.name));
}

}  // namespace

PlacePlan read_split(const PlanProblem& p, const std::string& text,
                     const std::string& name) {
  expect_ids(p);
  const Json json = parse_json(text, name);
  return {SplitReader(p, Field(json, name)).read(), order_of_ops(p)};
}

}  // namespace berth
