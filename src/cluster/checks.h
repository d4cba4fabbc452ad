// Errors of a cluster that can be detected before any connection is made.
//
// Every function throws errors::InvalidArgument whose text begins with `what`,
// such as "TF_CONFIG: cluster", and quotes the key. Pure; thread-safe.

#ifndef BERTH_CLUSTER_CHECKS_H_
#define BERTH_CLUSTER_CHECKS_H_

#include <map>
#include <string>
#include <string_view>

#include "berth/cluster.h"

namespace berth::cluster {

using Jobs = std::map<std::string, std::map<int, std::string>>;

inline constexpr int kMostTasks = 1 << 16;

// Throws errors::InvalidArgument with the user's line.
[[noreturn]] void refuse(const std::string& text, Site site);

// The text in quotes, truncated and without control characters.
std::string in_quotes(std::string_view text);

// Parses a decimal number without sign, blanks or leading zeros; returns false
// if it is not one.
bool whole_number(std::string_view text, int* number);

// Returns "chief" for "master" and "coordinator", and other jobs unchanged.
// Unknown ones are refused with the nearest name.
std::string job_name(const std::string& what, const std::string& job,
                     Site site);

struct Address {
  std::string host;  // lower case, without brackets
  int port = 0;
  bool loopback() const;
};
// "host:port" or "[ipv6]:port".
Address parse_address(const std::string& what, const std::string& text,
                      Site site);

// Jobs under their canonical names, addresses checked, empty jobs left out.
Jobs checked_jobs(const std::string& what, const Jobs& jobs, Site site);

// Resolves aliases and checks task and roles; `task_key` is the name of the
// task in messages: "TF_CONFIG: task".
void check_resolver(const std::string& what, const std::string& task_key,
                    distribute::ClusterResolver* resolver, Site site);

}  // namespace berth::cluster

#endif  // BERTH_CLUSTER_CHECKS_H_
