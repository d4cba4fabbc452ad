// TF_CONFIG and CLUSTER_SPEC: a cluster and a task in JSON.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/immortal.h"
#include "cluster/checks.h"
#include "cluster/variables.h"

namespace berth::cluster {

namespace {

using Json = nlohmann::json;
using cluster_resolver::ResolverOptions;

constexpr size_t kMostBytes = size_t{16} << 20;
constexpr size_t kMostDepth = 64;

std::string json_text(const Json& value) {
  const std::string s =
      value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return s.size() > 80 ? s.substr(0, 80) + "..." : s;
}

// Reads one variable that holds JSON.
class JsonVariable {
 public:
  JsonVariable(std::string name, const std::string& text, Site site)
      : name_(std::move(name)), site_(site) {
    if (text.size() > kMostBytes) fail(" is longer than 16 MiB");
    try {
      json_ = Json::parse(text,
                          [this](int, Json::parse_event_t event, Json& value) {
                            watch(event, value);
                            return true;
                          });
    } catch (const Json::parse_error& e) {
      fail(fmt::format(" is not JSON: {} at byte {}: {}{}",
                       text.size() < e.byte ? "it ends early" : "an error",
                       e.byte, in_quotes(text),
                       text.find('\'') != std::string::npos
                           ? "; JSON has double quotes"
                           : ""));
    } catch (const Json::exception& e) {  // a number out of range
      fail(fmt::format(" is not JSON: {}", in_quotes(e.what())));
    }
    if (!json_.is_object())
      fail(" is " + json_text(json_) +
           "; expected an "
           "object {...}");
  }

  const std::string& name() const { return name_; }
  Site site() const { return site_; }
  [[noreturn]] void fail(const std::string& text) const {
    refuse(name_ + text, site_);
  }

  // The value of a key; null if it is missing.
  const Json& at(const char* key) const { return member(json_, key); }
  static const Json& member(const Json& of, const char* key) {
    static const Json& none = immortal<Json>();
    const auto found = of.find(key);
    return found == of.end() ? none : *found;
  }

  std::string text_at(const char* key) const {
    const Json& value = at(key);
    if (value.is_null()) return "";
    if (!value.is_string()) {
      fail(fmt::format(": {} is {}; expected a string", key, json_text(value)));
    }
    return value.get<std::string>();
  }

  // Top-level keys that resemble known ones are mistakes.
  void check_keys() const {
    for (const auto& [key, value] : json_.items()) {
      for (const char* known :
           {"cluster", "task", "sparseCluster", "rpc_layer", "environment"}) {
        if (key == known || !alike(key, known)) continue;
        fail(
            fmt::format(": {} is no key; write \"{}\"", in_quotes(key), known));
      }
    }
  }

 private:
  // Differs in case, or by a suffix "s", "spec" or "config".
  static bool alike(const std::string& key, const std::string& known) {
    const auto plain = [](const std::string& text) {
      std::string s;
      for (const char c : text) {
        if (c == '_' || c == '-') continue;
        s += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      }
      return s;
    };
    const std::string a = plain(key), b = plain(known);
    return a == b || a == b + "s" || a == b + "spec" || a == b + "config";
  }

  // Refuses duplicate keys and nesting that is too deep.
  void watch(Json::parse_event_t event, const Json& value) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      keys_.emplace_back();
      if (keys_.size() > kMostDepth) fail(" nests too deep");
    } else if (event == Event::object_end || event == Event::array_end) {
      keys_.pop_back();
    } else if (event == Event::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) {
        fail(": the key " + in_quotes(key) + " comes twice in one object");
      }
    }
  }

  std::string name_;
  Site site_;
  std::vector<std::set<std::string>> keys_;
  Json json_;
};

std::map<int, std::string> read_tasks(const JsonVariable& in,
                                      const std::string& key,
                                      const Json& value) {
  std::map<int, std::string> tasks;
  const auto add = [&](int index, const Json& address) {
    if (!address.is_string()) {
      in.fail(fmt::format(": {}[{}] is {}; expected \"host:port\"", key, index,
                          json_text(address)));
    }
    tasks[index] = address.get<std::string>();
  };
  if (value.is_array()) {
    if (value.size() > kMostTasks) in.fail(": " + key + " has too many tasks");
    int index = 0;
    for (const Json& address : value) add(index++, address);
  } else if (value.is_object()) {
    for (const auto& [text, address] : value.items()) {
      int index = 0;
      if (!whole_number(text, &index)) {
        in.fail(
            fmt::format(": {} has the key {}; expected the index of a "
                        "task, \"0\"",
                        key, in_quotes(text)));
      }
      add(index, address);
    }
  } else {
    in.fail(fmt::format(": {} is {}; expected a list [\"host:port\", ...]", key,
                        json_text(value)));
  }
  return tasks;
}

// `rename` maps a key to its job; "" omits it.
template <class Rename>
Jobs read_jobs(const JsonVariable& in, const char* key, const Json& cluster,
               const Rename& rename) {
  if (cluster.is_null()) return {};
  if (!cluster.is_object()) {
    in.fail(
        fmt::format(": {} is {}; expected an object {{\"worker\": "
                    "[\"host:port\", ...]}}",
                    key, json_text(cluster)));
  }
  Jobs jobs;
  for (const auto& [name, value] : cluster.items()) {
    const std::string job = rename(name);
    if (job.empty()) continue;
    jobs[job] = read_tasks(in, fmt::format("{}.{}", key, name), value);
  }
  return jobs;
}

// task.index, a number or a number in a string; -1: missing.
int read_index(const JsonVariable& in, const Json& index) {
  if (index.is_null()) return -1;
  int number = 0;
  if (index.is_number_unsigned() && index.get<uint64_t>() <= 1u << 30) {
    return static_cast<int>(index.get<uint64_t>());
  }
  if (index.is_string() &&
      whole_number(index.get_ref<const std::string&>(), &number)) {
    return number;
  }
  in.fail(": task.index is " + json_text(index) +
          "; expected a whole number from 0");
}

// The task as written, with overrides from the options.
TaskId read_task(const JsonVariable& in, const ResolverOptions& options,
                 const ClusterSpec& spec, Site site) {
  const Json& task = in.at("task");
  if (!task.is_null() && !task.is_object()) {
    in.fail(": task is " + json_text(task) +
            "; expected {\"type\": \"worker\", \"index\": 0}");
  }
  TaskId id{"", -1};
  if (task.is_object()) {
    const Json& type = JsonVariable::member(task, "type");
    if (!type.is_null() && !type.is_string()) {
      in.fail(": task.type is " + json_text(type) + "; expected a job");
    }
    if (type.is_string()) id.job = type.get<std::string>();
    id.index = read_index(in, JsonVariable::member(task, "index"));
  }
  if (!options.task_type.empty()) id.job = options.task_type;
  if (options.task_id) id.index = *options.task_id;
  const std::vector<TaskId> all = spec.tasks();
  if (id.job.empty() && all.size() > 1) {
    in.fail(" has no task.type; expected which of the " +
            std::to_string(all.size()) +
            " tasks this process is: \"task\": {\"type\": \"worker\", "
            "\"index\": 0}");
  }
  if (id.job.empty()) id.job = all.empty() ? "worker" : all[0].job;
  if (id.index >= 0 || options.task_id) return id;
  id.job = job_name(in.name() + ": task.type", id.job, site);
  if (spec.num_tasks(id.job) > 1) {
    in.fail(
        fmt::format(" has no task.index; expected which of the {} tasks "
                    "of \"{}\" this process is",
                    spec.num_tasks(id.job), id.job));
  }
  const std::vector<int> indices = spec.task_indices(id.job);
  id.index = indices.empty() ? 0 : indices[0];
  return id;
}

ClusterResolver settled(const JsonVariable& in, const std::string& cluster_key,
                        const Jobs& jobs, const ResolverOptions& options) {
  ClusterResolver r;
  const std::string what = in.name() + ": " + cluster_key;
  r.spec = ClusterSpec::sparse(checked_jobs(what, jobs, in.site()), in.site());
  r.task = read_task(in, options, r.spec, in.site());
  r.source = in.name();
  r.environment = options.environment.empty() ? in.text_at("environment")
                                              : options.environment;
  r.rpc_layer =
      options.rpc_layer.empty() ? in.text_at("rpc_layer") : options.rpc_layer;
  check_resolver(what, in.name() + ": task", &r, in.site());
  if (r.spec.empty()) {
    r.notes.push_back(in.name() + " has no cluster: this process is alone");
  }
  return r;
}

// Whether a pool of a Vertex job runs Google's reduction server.
bool reduces(const JsonVariable& in, size_t pool) {
  const Json& job = in.at("job");
  if (!job.is_object()) return false;
  const Json& pools = JsonVariable::member(job, job.contains("workerPoolSpecs")
                                                    ? "workerPoolSpecs"
                                                    : "worker_pool_specs");
  if (!pools.is_array() || pools.size() <= pool) return false;
  return pools[pool]
             .dump(-1, ' ', true, Json::error_handler_t::replace)
             .find("reductionserver") != std::string::npos;
}

constexpr const char* kPools[] = {"chief", "worker", "ps", "evaluator"};

}  // namespace

ClusterResolver read_tf_config(const Variables& variables,
                               const ResolverOptions& options, Site site) {
  const std::string text = variables.get("TF_CONFIG");
  if (text.empty()) return {.task = {"worker", 0}};
  const JsonVariable in("TF_CONFIG", text, site);
  in.check_keys();
  const char* key = "cluster";
  if (const Json& sparse = in.at("sparseCluster"); !sparse.is_null()) {
    if (!in.at("cluster").is_null() && !in.at("cluster").empty()) {
      in.fail(" has \"cluster\" and \"sparseCluster\"; expected one of them");
    }
    key = "sparseCluster";
  }
  const auto same = [](const std::string& job) { return job; };
  return settled(in, key, read_jobs(in, key, in.at(key), same), options);
}

ClusterResolver read_vertex(const Variables& variables,
                            const ResolverOptions& options, Site site) {
  const std::string text = variables.get("CLUSTER_SPEC");
  if (text.empty()) return {.task = {"worker", 0}};
  const JsonVariable in("CLUSTER_SPEC", text, site);
  std::vector<std::string> notes;
  const auto pool_job = [&](const std::string& key) -> std::string {
    int pool = -1;
    if (!key.starts_with("workerpool") ||
        !whole_number(std::string_view(key).substr(10), &pool) || pool > 3) {
      return "";
    }
    if (pool == 2 && reduces(in, 2)) {
      notes.push_back(
          "CLUSTER_SPEC: cluster.workerpool2 runs the reduction "
          "server, which is no task of the cluster");
      return "";
    }
    return kPools[pool];
  };
  const auto rename = [&](const std::string& key) -> std::string {
    if (!key.starts_with("workerpool")) {
      in.fail(
          fmt::format(": cluster has the key {}; expected workerpool0 to "
                      "workerpool3",
                      in_quotes(key)));
    }
    return pool_job(key);
  };
  const Jobs jobs = read_jobs(in, "cluster", in.at("cluster"), rename);
  ResolverOptions of_task = options;
  const Json& task = in.at("task");
  if (of_task.task_type.empty() && task.is_object()) {
    const Json& type = JsonVariable::member(task, "type");
    if (type.is_string()) {
      of_task.task_type = pool_job(type.get<std::string>());
      if (of_task.task_type.empty()) {
        in.fail(": task.type is " + json_text(type) +
                ", which is no pool that trains; expected workerpool0 to "
                "workerpool3");
      }
    }
  }
  ClusterResolver r = settled(in, "cluster", jobs, of_task);
  std::sort(notes.begin(), notes.end());
  notes.erase(std::unique(notes.begin(), notes.end()), notes.end());
  r.notes.insert(r.notes.end(), notes.begin(), notes.end());
  return r;
}

}  // namespace berth::cluster
