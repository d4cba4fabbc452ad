// Connection: the tasks whose devices this process has.
//
// connect() adds their devices to those of this process, and lets functions be
// split over them. Connecting again, after a task was lost, gives the same
// devices a new session. Thread-safe, but nobody else may use devices while
// they are added.

#ifndef BERTH_REMOTE_CONNECTION_H_
#define BERTH_REMOTE_CONNECTION_H_

#include <memory>
#include <string>
#include <vector>

#include "berth/site.h"
#include "cluster/member.h"
#include "remote/remote_device.h"

namespace berth::remote {

// Connects to the devices of `tasks`; none named: of all others that take part
// but evaluators. Throws errors::FailedPrecondition (another build, other
// devices than before), errors::Unavailable and errors::DeadlineExceeded naming
// the task.
void connect(std::shared_ptr<cluster::Member> member,
             std::vector<cluster::TaskId> tasks = {}, Site site = Site::here());

// Forgets the member: what is used of other tasks from now on is lost.
void disconnect();

// The line to a task; null when its devices are not here.
RemoteTask* find_task(const cluster::TaskId& task);

// The member over which this process is connected; null before that.
std::shared_ptr<cluster::Member> connected_member();

// One step that is split over tasks runs at a time: the parts of two would wait
// for each other.
std::mutex& split_runs();

}  // namespace berth::remote

#endif  // BERTH_REMOTE_CONNECTION_H_
