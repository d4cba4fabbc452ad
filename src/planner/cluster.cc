#include "planner/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "berth/errors.h"
#include "planner/json_field.h"

namespace berth {

namespace {

constexpr int kMostDevices = kMaxPlaceDevices, kMostShared = 4095;
constexpr const char* kHere = "/job:localhost/replica:0/task:0/device:CPU:0";

// Rejects what the simulator could not compute with.
double positive(const Field& of, const char* name, Quantity kind,
                double otherwise) {
  const double x = of.quantity(name, kind).value_or(otherwise);
  if (!(x > 0)) of.fail_with(fmt::format("\"{}\" is 0; expected more", name));
  return x;
}

// Short names of devices other than CPU and GPU are valid here.
std::string full_grammar(const std::string& name) {
  return name.find('/') == std::string::npos ? "/device:" + name : name;
}

// The cluster of one document, built part by part.
class Reader {
 public:
  explicit Reader(const Field& file) : file_(file) {
    file_.only({"devices", "hosts", "network", "classes", "links",
                "default_link", "times"});
  }

  Cluster run() {
    add_devices();
    add_classes();
    add_links();
    add_times();
    return std::move(c_);
  }

 private:
  struct Pending {
    Field field;
    std::string name;
  };

  // Devices by name first: their types determine the classes.
  void add_devices() {
    if (!file_.find("hosts")) file_["devices"];
    for (const Field& f : file_.items("devices")) add_device(f);
    for (const Field& f : file_.items("hosts")) add_hosts(f);
    if (pending_.empty()) {
      file_[file_.find("devices") ? "devices" : "hosts"].fail(
          "at least one device");
    }
    std::vector<std::string> names;
    for (const Pending& p : pending_) names.push_back(p.name);
    c_.machine = assumed_machine(names);
    Machine& m = c_.machine;
    for (DeviceClass& c : m.classes) c.name = c.type;
    for (size_t d = 0; d < pending_.size(); ++d) {
      const Field& f = pending_[d].field;
      m.devices[d].memory_limit = static_cast<int64_t>(
          std::min(f.quantity("memory", Quantity::kBytes).value_or(0), 0x1p62));
      if (const auto rule = f.find("copies")) {
        m.devices[d].copies = read_copy_rule(*rule);
      }
    }
  }

  // Tasks of a job, numbered on where the job stands already.
  void add_hosts(const Field& f) {
    f.only({"job", "count", "devices"});
    const auto job_field = f.find("job");
    const std::string job = job_field ? job_field->text() : "worker";
    const auto count = f.find("count");
    const int64_t n = count ? count->integer(1, kMostDevices) : 1;
    const Field devices = f["devices"];
    if (devices.size() == 0) devices.fail("at least one device");
    for (int64_t i = 0; i < n; ++i) {
      const std::string task =
          fmt::format("/job:{}/replica:0/task:{}", job, num_tasks_[job]++);
      task_ = (job_field ? *job_field : f).parsed([&] {
        return DeviceName::parse(task);
      });
      for (const Field& device : devices.items()) add_device(device);
    }
    task_ = DeviceName();
  }

  void add_device(const Field& f) {
    f.only({"name", "count", "class", "memory", "memory_bytes", "copies"});
    const Field name = f["name"];
    const auto count = f.find("count");
    const int64_t n = count ? count->integer(1, kMostDevices) : 1;
    for (int64_t i = 0; i < n; ++i) {
      DeviceName device = name.parsed(
          [&] { return DeviceName::parse(full_grammar(name.text())); });
      if (!device.type) name.fail("a device such as \"GPU:0\"");
      if (task_.job) {
        if (device.job || device.task) {
          name.fail("a device of the host, such as \"GPU:0\"");
        }
        device.job = task_.job;
        device.replica = task_.replica;
        device.task = task_.task;
      }
      if (count) {
        if (device.id)
          count->fail_with(
              "counts one device; expected a name "
              "without a number beside it");
        device.id = static_cast<int>(i);
      }
      pending_.push_back({f, full(device, name)});
    }
  }

  std::string full(const DeviceName& device, const Field& field) const {
    const std::string name = canonicalise(device.str(), kHere);
    if (pending_.size() >= kMostDevices) {
      field.fail_with(
          fmt::format("is one too many; expected at most {}", kMostDevices));
    }
    if (std::ranges::count(pending_, name, &Pending::name) > 0) {
      field.fail_with(
          fmt::format("names \"{}\" twice; expected different devices", name));
    }
    return name;
  }

  // Classes of the devices' types exist already.
  void add_classes() {
    Machine& m = c_.machine;
    for (const Field& f : file_.items("classes")) add_class(f);
    c_.speed.resize(m.classes.size(), 1);
    for (size_t d = 0; d < pending_.size(); ++d) {
      const auto where = pending_[d].field.find("class");
      if (!where) continue;
      const int32_t c = find_class(where->text());
      if (c < 0) where->fail("the name of a class");
      const std::string& type = m.class_of(static_cast<int32_t>(d)).type;
      if (m.classes[c].type != type) where->fail("a class of type " + type);
      m.devices[d].device_class = c;
    }
  }

  void add_class(const Field& f) {
    f.only({"name", "type", "flops", "flops_per_us", "bandwidth",
            "bandwidth_bytes_per_us", "launch", "launch_us", "speed"});
    Machine& m = c_.machine;
    const std::string name = f["name"].text();
    const auto type_field = f.find("type");
    const std::string type = type_field ? type_field->text() : name;
    // In capitals, like the types of devices.
    std::string upper = type;
    for (char& c : upper) c -= c >= 'a' && c <= 'z' ? 'a' - 'A' : 0;
    int32_t number = find_class(name);
    if (!seen_.insert(name).second) {
      f["name"].fail_with(fmt::format("\"{}\" stands twice", name));
    }
    if (number < 0) {
      const int32_t like = find_class(upper);
      m.classes.push_back(like >= 0 ? m.classes[like]
                                    : DeviceClass{.name = "", .type = upper});
      number = static_cast<int32_t>(m.classes.size()) - 1;
    }
    DeviceClass& c = m.classes[number];
    c.name = name;
    const auto before = std::tuple(c.flops_per_us, c.bytes_per_us, c.launch_us);
    c.flops_per_us = positive(f, "flops", Quantity::kFlops, c.flops_per_us);
    c.bytes_per_us =
        positive(f, "bandwidth", Quantity::kBandwidth, c.bytes_per_us);
    c.launch_us = f.quantity("launch", Quantity::kTime).value_or(c.launch_us);
    if (before != std::tuple(c.flops_per_us, c.bytes_per_us, c.launch_us)) {
      c.origin = CostOrigin::kDeclared;
    }
    c_.speed.resize(m.classes.size(), 1);
    if (const auto speed = f.find("speed")) {
      c_.speed[number] = speed->number();
      if (!(speed->number() > 0)) speed->fail("more than 0");
    }
  }

  int32_t find_class(const std::string& name) const {
    const auto& all = c_.machine.classes;
    const auto at = std::ranges::find(all, name, &DeviceClass::name);
    return at == all.end() ? -1 : static_cast<int32_t>(at - all.begin());
  }

  // The number after those of "shared" in the file.
  int32_t first_free_number() const {
    int32_t next = 0;
    const auto see = [&next](const Field& f) {
      for (const int32_t n : shared_of(f, {})) next = std::max(next, n + 1);
    };
    for (const char* name : {"default_link", "network"}) {
      if (const auto f = file_.find(name)) see(*f);
    }
    for (const Field& f : file_.items("links")) see(f);
    return next;
  }

  // Numbers devices by host, and returns the names of the hosts.
  std::vector<std::string> find_hosts() {
    Machine& m = c_.machine;
    std::vector<std::string> names;
    std::map<std::string, int32_t> numbers;
    for (const DeviceCost& d : m.devices) {
      DeviceName host = DeviceName::parse(d.name);
      host.type.reset();
      host.id.reset();
      const auto [it, added] = numbers.emplace(host.str(), numbers.size());
      m.host.push_back(it->second);
      host.replica.reset();
      if (added) names.push_back(host.str());
    }
    m.num_hosts = static_cast<int32_t>(names.size());
    return names;
  }

  // Two shared links, one per direction, for each name.
  int32_t add_shared(const std::vector<std::string>& names, const char* out,
                     const char* in) {
    auto& all = c_.machine.shared_names;
    const size_t first = std::max<size_t>(all.size(), first_free_number());
    all.resize(first);
    for (const std::string& name : names) {
      all.push_back(fmt::format("{} of {}", out, name));
      all.push_back(fmt::format("{} of {}", in, name));
    }
    return static_cast<int32_t>(first);
  }

  // Links between hosts. Without "shared" a transfer occupies the network card
  // of its host on the way out, and that of the other on the way in; between
  // racks also what leads out of the one and into the other.
  void add_network(const Field& f) {
    f.only({"latency", "latency_us", "bandwidth", "bandwidth_bytes_per_us",
            "shared", "racks"});
    Machine& m = c_.machine;
    const std::vector<std::string> hosts = find_hosts();
    const int32_t count = m.num_hosts;
    if (count < 2) f.fail("two hosts or more");
    const LinkCost near = link_cost(f, {});
    LinkCost far = near;
    int32_t cards = -1, uplinks = -1, per_rack = count;
    if (near.shared.empty()) {
      cards =
          add_shared(hosts, "the network card, out", "the network card, in");
    }
    if (const auto racks = f.find("racks")) {
      racks->only({"hosts", "latency", "latency_us", "bandwidth",
                   "bandwidth_bytes_per_us"});
      per_rack = static_cast<int32_t>((*racks)["hosts"].integer(1, count));
      far = link_cost(*racks, near);
      std::vector<std::string> names;
      for (int32_t a = 0; a < count; a += per_rack) {
        const int32_t last = std::min(a + per_rack, count) - 1;
        names.push_back(
            fmt::format("the rack of {} to {}", hosts[a], hosts[last]));
      }
      uplinks = add_shared(names, "the uplink, out", "the uplink, in");
    }
    m.links.assign(static_cast<size_t>(count) * count, LinkCost(m.links[0]));
    for (int32_t a = 0; a < count; ++a) {
      for (int32_t b = 0; b < count; ++b) {
        if (a == b) continue;
        const int32_t from = a / per_rack, to = b / per_rack;
        LinkCost& link = m.links[static_cast<size_t>(a) * count + b];
        link = from == to ? near : far;
        bool all = cards < 0 || (link.shared.add(cards + 2 * a) &&
                                 link.shared.add(cards + 2 * b + 1));
        if (from != to) {
          all = all && link.shared.add(uplinks + 2 * from) &&
                link.shared.add(uplinks + 2 * to + 1);
        }
        if (!all) f["shared"].fail("at most 2 numbers beside \"racks\"");
      }
    }
  }

  void add_links() {
    Machine& m = c_.machine;
    if (const auto f = file_.find("default_link")) {
      f->only({"latency", "latency_us", "bandwidth", "bandwidth_bytes_per_us",
               "shared"});
      const LinkCost link = link_cost(*f, {});
      std::fill(m.links.begin(), m.links.end(), link);
    }
    if (const auto f = file_.find("network")) add_network(*f);
    for (const Field& f : file_.items("links")) {
      f.only({"from", "to", "one_way", "latency", "latency_us", "bandwidth",
              "bandwidth_bytes_per_us", "shared"});
      const int32_t from = end_of(f["from"]), to = end_of(f["to"]);
      if (from == to) f["to"].fail("another device than \"from\"");
      const LinkCost link = link_cost(f, m.link_of(from, to));
      m.link_of(from, to) = link;
      const auto one_way = f.find("one_way");
      if (!one_way || !one_way->flag()) m.link_of(to, from) = link;
    }
  }

  LinkCost link_cost(const Field& f, LinkCost link) {
    link.origin = CostOrigin::kDeclared;
    link.latency_us =
        f.quantity("latency", Quantity::kTime).value_or(link.latency_us);
    link.bytes_per_us =
        positive(f, "bandwidth", Quantity::kBandwidth, link.bytes_per_us);
    link.shared = shared_of(f, link.shared);
    return link;
  }

  // One number, or a list of them.
  static SharedLinks shared_of(const Field& of, SharedLinks otherwise) {
    const auto f = of.find("shared");
    if (!f) return otherwise;
    if (!f->json().is_array()) {
      return static_cast<int32_t>(f->integer(-1, kMostShared));
    }
    SharedLinks all;
    for (const Field& one : f->items()) {
      const auto n = static_cast<int32_t>(one.integer(0, kMostShared));
      if (all.has(n)) one.fail("each number once");
      if (!all.add(n)) {
        f->fail(fmt::format("at most {} numbers", SharedLinks::kMost));
      }
    }
    return all;
  }

  int32_t end_of(const Field& f) const {
    try {
      const int32_t d =
          c_.machine.find(canonicalise(full_grammar(f.text()), kHere));
      if (d >= 0) return d;
    } catch (const errors::InvalidArgument&) {
    }
    f.fail("the name of a device above");
  }

  void add_times() {
    if (!file_.find("times")) return;
    file_["times"].each([&](const std::string& op, const Field& per_class) {
      per_class.each([&](const std::string& name, const Field& f) {
        if (find_class(name) < 0) {
          f.fail_with(
              fmt::format("there is no class \"{}\"; expected one of "
                          "the devices' classes",
                          name));
        }
        double us = kNoKernel;
        if (f.json().is_number()) {
          us = f.number();
        } else if (f.text() != "inf") {
          us = f.parsed(
              [&] { return parse_quantity(f.text(), Quantity::kTime); });
        }
        if (us < 0) f.fail("0 or more");
        c_.times.push_back({op, name, us});
      });
    });
  }

  Field file_;
  Cluster c_;
  std::vector<Pending> pending_;
  std::set<std::string> seen_;  // classes
  DeviceName task_;             // that devices are of; empty: this one
  std::map<std::string, int64_t> num_tasks_;  // by job
};

}  // namespace

CopyRule read_copy_rule(const Field& f) {
  constexpr const char* kRules[] = {"overlap", "receiving", "both", "free"};
  const auto rule = std::ranges::find(kRules, f.text());
  if (rule != std::end(kRules)) return CopyRule(rule - kRules);
  f.fail("\"overlap\", \"receiving\", \"both\" or \"free\"");
}

Cluster read_cluster(const std::string& text, const std::string& file) {
  const nlohmann::json document = parse_json(text, file);
  return Reader(Field(document, file)).run();
}

void apply_times(const Cluster& cluster, const std::vector<std::string>& names,
                 CostTable& costs) {
  const size_t classes = costs.classes.size();
  for (size_t i = 0; i < costs.times.size(); ++i) {
    const size_t c = i % classes;
    if (c < cluster.speed.size()) costs.times[i].us /= cluster.speed[c];
  }
  if (cluster.times.empty()) return;
  std::map<std::string, size_t> number;
  for (size_t i = 0; i < names.size(); ++i) number.emplace(names[i], i);
  for (const Cluster::Time& t : cluster.times) {
    const auto op = number.find(t.op);
    if (op == number.end()) {
      throw errors::InvalidArgument(fmt::format(
          "cluster: times.{}: there is no such op; expected the name of one",
          t.op));
    }
    for (size_t c = 0; c < classes; ++c) {
      if (costs.classes[c].name != t.device_class) continue;
      costs.times[op->second * classes + c] = {t.us, 0, CostOrigin::kDeclared};
    }
  }
}

}  // namespace berth
