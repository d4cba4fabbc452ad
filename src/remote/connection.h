// Connection: the tasks whose devices this process uses.
//
// connect() adds their devices to those of this process, and lets functions be
// split over them. Connecting again, after a task was lost, gives the same
// devices a new session. Thread-safe, but other threads must not use devices
// while they are added.

#ifndef BERTH_REMOTE_CONNECTION_H_
#define BERTH_REMOTE_CONNECTION_H_

#include <memory>
#include <string>
#include <vector>

#include "berth/site.h"
#include "cluster/member.h"
#include "remote/remote_device.h"

namespace berth::remote {

// Connects to the devices of `tasks`; if empty, of all other tasks except
// evaluators. Throws errors::FailedPrecondition (another build, changed
// devices), errors::Unavailable and errors::DeadlineExceeded naming the task.
void connect(std::shared_ptr<cluster::Member> member,
             std::vector<cluster::TaskId> tasks = {}, Site site = Site::here());

// Drops the member: from now on uses of other tasks fail as lost.
void disconnect();

// The command line to a task; null if its devices are not connected.
RemoteTask* find_task(const cluster::TaskId& task);

// The member over which this process is connected; null if it is not.
std::shared_ptr<cluster::Member> connected_member();

// Split steps run one at a time: the parts of two would deadlock.
std::mutex& split_runs();

}  // namespace berth::remote

#endif  // BERTH_REMOTE_CONNECTION_H_
