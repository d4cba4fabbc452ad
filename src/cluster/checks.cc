#include "cluster/checks.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/edit_distance.h"
#include "base/where.h"
#include "berth/errors.h"

namespace berth::cluster {

namespace {

constexpr std::array<const char*, 4> kJobs = {"chief", "worker", "ps",
                                              "evaluator"};

std::string lower_case(std::string_view text) {
  std::string s(text);
  for (char& c : s) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return s;
}

// Guesses the job that `job` was meant to be; "" if none is similar.
std::string nearest_job(const std::string& job) {
  const std::string name = lower_case(job).substr(0, 40);
  const std::vector<std::pair<const char*, const char*>> means = {
      {"parameter", "ps"},  {"ps_", "ps"},         {"server", "ps"},
      {"worker", "worker"}, {"eval", "evaluator"}, {"chief", "chief"},
      {"master", "chief"},  {"coord", "chief"}};
  for (const auto& [part, meant] : means) {
    if (name.find(part) != std::string::npos) return meant;
  }
  std::string best;
  size_t fewest = 3;
  for (const char* known : {"chief", "worker", "ps", "evaluator", "master"}) {
    const size_t n = edit_distance(name, known);
    if (n >= fewest || n >= std::string_view(known).size()) continue;
    fewest = n;
    best = std::string_view(known) == "master" ? "chief" : known;
  }
  return best;
}

bool all_of(std::string_view text, std::string_view allowed) {
  return text.find_first_not_of(allowed) == std::string_view::npos;
}

// The shortest spelling of an IPv6 address, or the IPv4 address in it.
std::string shortest(const std::string& host) {
  const size_t zone = std::min(host.find('%'), host.size());
  in6_addr six;
  if (inet_pton(AF_INET6, host.substr(0, zone).c_str(), &six) != 1) return host;
  char text[INET6_ADDRSTRLEN] = {};
  if (IN6_IS_ADDR_V4MAPPED(&six)) {
    inet_ntop(AF_INET, &six.s6_addr[12], text, sizeof text);
    return text;
  }
  inet_ntop(AF_INET6, &six, text, sizeof text);
  return text + host.substr(zone);
}

// Why `host` is not a valid name or address; "" if it is.
std::string host_error(const std::string& host, bool bracketed) {
  if (host.empty()) return "has no host";
  if (bracketed) {
    in6_addr six;
    const std::string bare = host.substr(0, host.find('%'));
    if (inet_pton(AF_INET6, bare.c_str(), &six) != 1) {
      return "has no IPv6 address between its brackets";
    }
    if (bare.find_first_not_of("0:") != std::string::npos) return "";
    return "stands for every interface, which nobody can dial";
  }
  if (host.find(':') != std::string::npos) {
    return "has more than one colon; an IPv6 address stands in brackets, "
           "\"[::1]:2222\"";
  }
  if (host.size() > 253 ||
      !all_of(lower_case(host), "abcdefghijklmnopqrstuvwxyz0123456789-_.")) {
    return "has a host name of characters that none can have";
  }
  if (all_of(host, "0123456789.")) {
    in_addr four;
    if (inet_pton(AF_INET, host.c_str(), &four) != 1) {
      return "has no IPv4 address before its port";
    }
    if (four.s_addr == 0) {
      return "stands for every interface, which nobody can dial";
    }
  }
  return "";
}

}  // namespace

void refuse(const std::string& text, Site site) {
  throw errors::InvalidArgument(text + where_text(nullptr, site));
}

std::string in_quotes(std::string_view text) {
  std::string s = "\"";
  for (const char c : text.substr(0, 80)) {
    const auto byte = static_cast<unsigned char>(c);
    s += byte < 0x20 || byte >= 0x7f ? '?' : c;
  }
  return s + (text.size() > 80 ? "...\"" : "\"");
}

bool whole_number(std::string_view text, int* number) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  if (text.size() > 1 && text[0] == '0') return false;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

std::string job_name(const std::string& what, const std::string& job,
                     Site site) {
  if (job == "master" || job == "coordinator") return "chief";
  if (std::find(kJobs.begin(), kJobs.end(), job) != kJobs.end()) return job;
  const std::string nearest = nearest_job(job);
  refuse(fmt::format("{}: {} is no job; expected chief, worker, ps or "
                     "evaluator{}",
                     what, in_quotes(job),
                     nearest.empty() ? "" : ": write \"" + nearest + "\""),
         site);
}

bool Address::loopback() const {
  return host == "localhost" || host.starts_with("127.") || host == "::1";
}

Address parse_address(const std::string& what, const std::string& text,
                      Site site) {
  const auto fail = [&](const std::string& why) {
    refuse(fmt::format("{} is {}, which {}; expected \"host:port\"", what,
                       in_quotes(text), why),
           site);
  };
  if (text.find("://") != std::string::npos) {
    fail("names a protocol; leave out what stands before the host");
  }
  const size_t colon = text.rfind(':');
  const bool bracketed = text.starts_with('[');
  if (colon == std::string::npos || (bracketed && text[colon - 1] != ']')) {
    fail("has no port");
  }
  Address a;
  a.host = lower_case(std::string_view(text).substr(0, colon));
  if (bracketed) a.host = a.host.substr(1, a.host.size() - 2);
  if (const std::string why = host_error(a.host, bracketed); !why.empty()) {
    fail(why);
  }
  if (!whole_number(std::string_view(text).substr(colon + 1), &a.port) ||
      a.port < 1 || a.port > 65535) {
    fail("has no port from 1 to 65535 after its last colon");
  }
  if (a.host.ends_with('.')) a.host.pop_back();
  if (bracketed) a.host = shortest(a.host);
  return a;
}

namespace {

// Addresses of a cluster during checks, and the tasks that have them.
class AddressBook {
 public:
  explicit AddressBook(Site site) : site_(site) {}

  void add(const std::string& key, const std::string& text) {
    const Address a = parse_address(key, text, site_);
    // All names of this host count as the same.
    const std::string host = a.loopback() ? "localhost" : a.host;
    const auto [found, is_new] = of_.try_emplace({host, a.port}, key);
    if (!is_new) {
      refuse(fmt::format("{} is {}, which {} is already; expected an address "
                         "of its own for every task",
                         key, in_quotes(text), found->second),
             site_);
    }
    (a.loopback() ? loopback_ : other_) =
        fmt::format("{} is {}", key, in_quotes(text));
  }

  void check() const {
    if (loopback_.empty() || other_.empty()) return;
    refuse(fmt::format("{}, where every host finds itself, but {}; expected "
                       "names that all hosts of the cluster know",
                       loopback_, other_),
           site_);
  }

 private:
  Site site_;
  std::map<std::pair<std::string, int>, std::string> of_;
  std::string loopback_, other_;  // an example of each
};

}  // namespace

Jobs checked_jobs(const std::string& what, const Jobs& jobs, Site site) {
  Jobs checked;
  std::map<std::string, std::string> written;  // name -> as it was written
  AddressBook book(site);
  size_t count = 0;
  for (const auto& [job, tasks] : jobs) {
    const std::string name = job_name(what, job, site);
    if (tasks.empty()) continue;
    if (const auto [other, is_new] = written.try_emplace(name, job); !is_new) {
      refuse(fmt::format("{} has {} and {}, which are one job; leave one out",
                         what, in_quotes(other->second), in_quotes(job)),
             site);
    }
    if (name == "chief" && tasks.size() > 1) {
      refuse(fmt::format("{}.{} has {} tasks; expected one chief: the others "
                         "are workers",
                         what, job, tasks.size()),
             site);
    }
    if ((count += tasks.size()) > kMostTasks) {
      refuse(fmt::format("{} has more than {} tasks", what, kMostTasks), site);
    }
    for (const auto& [index, address] : tasks) {
      if (index < 0) {
        refuse(fmt::format("{}.{} has a task {}; expected indices from 0", what,
                           job, index),
               site);
      }
      book.add(fmt::format("{}.{}[{}]", what, job, index), address);
    }
    checked[name] = tasks;
  }
  book.check();
  return checked;
}

namespace {

std::string tasks_text(const distribute::ClusterSpec& spec,
                       const std::string& job) {
  const std::vector<int> indices = spec.task_indices(job);
  if (indices.size() > 8) {
    return fmt::format("{} of them, the last {}", indices.size(),
                       indices.back());
  }
  return fmt::format("{}", fmt::join(indices, ", "));
}

void check_roles(const std::string& what, const distribute::ClusterSpec& spec,
                 Site site) {
  if (spec.num_tasks("ps") == 0) return;
  if (spec.num_tasks("chief") == 0) {
    refuse(what +
               " has \"ps\" but no \"chief\", which coordinates workers and "
               "parameter servers; add \"chief\": [\"host:port\"]",
           site);
  }
  if (spec.num_tasks("worker") == 0) {
    refuse(what +
               " has \"ps\" but no \"worker\", so nobody would compute; add "
               "\"worker\": [\"host:port\"]",
           site);
  }
}

}  // namespace

void check_resolver(const std::string& what, const std::string& task_key,
                    distribute::ClusterResolver* resolver, Site site) {
  if (resolver->rpc_layer.empty()) resolver->rpc_layer = "grpc";
  if (resolver->rpc_layer != "grpc") {
    refuse(fmt::format("{}: the rpc_layer is {}; expected \"grpc\"", what,
                       in_quotes(resolver->rpc_layer)),
           site);
  }
  const distribute::ClusterSpec& spec = resolver->spec;
  check_roles(what, spec, site);
  distribute::TaskId& task = resolver->task;
  task.job = job_name(task_key + ".type", task.job, site);
  if (task.index < 0) {
    refuse(
        fmt::format("{}.index is {}; expected 0 or more", task_key, task.index),
        site);
  }
  if (spec.empty()) return;
  const std::vector<int> indices = spec.task_indices(task.job);
  if (indices.empty()) {
    if (task.job == "evaluator") return;
    refuse(fmt::format("{}.type is \"{}\", but {} has no \"{}\"; its jobs are "
                       "{}",
                       task_key, task.job, what, task.job,
                       fmt::join(spec.jobs(), ", ")),
           site);
  }
  if (std::find(indices.begin(), indices.end(), task.index) == indices.end()) {
    refuse(fmt::format("{}.index is {}, but {}.{} has the tasks {}", task_key,
                       task.index, what, task.job, tasks_text(spec, task.job)),
           site);
  }
}

}  // namespace berth::cluster
