// with_room: makes lasting values where there is memory for them.

#ifndef BERTH_OP_WITH_ROOM_H_
#define BERTH_OP_WITH_ROOM_H_

#include <functional>
#include <string>

namespace berth {

// Runs `make`, which makes `what`. If memory runs out, and neither the user nor
// a strategy said where, runs it again on the other devices in turn, first on
// those of the default device's type, with warning "made-elsewhere". Throws
// the first errors::ResourceExhausted when no device has room.
void with_room(const std::string& what, const std::function<void()>& make);

}  // namespace berth

#endif  // BERTH_OP_WITH_ROOM_H_
