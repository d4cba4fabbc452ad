// The endpoint of a process for probes and Prometheus: /livez, /readyz and
// /metrics on the port that BERTH_HTTP_PORT names (docs/cluster.md).
//
// It is a port of its own: that of the task is there only while the task is a
// member of its cluster, and belongs to gRPC under TLS, whereas a process must
// be seen to live before and after. Thread-safe.

#ifndef BERTH_CLUSTER_ENDPOINT_H_
#define BERTH_CLUSTER_ENDPOINT_H_

#include "base/http_server.h"
#include "base/live_counts.h"
#include "berth/site.h"

namespace berth::cluster {

// Serves from now on until the process ends, if BERTH_HTTP_PORT is set, the
// first time it is called: when the devices are created or a task joins. Says
// so on stderr if it cannot listen there. Throws errors::InvalidArgument for a
// value that is not an address.
void serve_endpoint(Site site);

HttpAnswer endpoint_answer(const std::string& path);

// Prometheus' text format, without the devices.
std::string metrics_text(const live_counts::Counts& counts,
                         const live_counts::ClusterState& cluster);

}  // namespace berth::cluster

#endif  // BERTH_CLUSTER_ENDPOINT_H_
