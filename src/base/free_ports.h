// free_ports: chooses TCP ports of 127.0.0.1 for tasks that are yet to start.
//
// They lie below the range from which the kernel takes ports of outgoing
// connections: until the task listens there, no connection of another process
// gets them. Thread-safe.

#ifndef BERTH_BASE_FREE_PORTS_H_
#define BERTH_BASE_FREE_PORTS_H_

#include <string>
#include <vector>

namespace berth {

// Returns `count` ports that nobody listens on, all different. Throws
// errors::ResourceExhausted.
std::vector<int> free_ports(int count);

// Returns free ports as addresses, "127.0.0.1:PORT".
std::vector<std::string> free_addresses(int count);

}  // namespace berth

#endif  // BERTH_BASE_FREE_PORTS_H_
