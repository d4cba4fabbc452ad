// parallel_for: the same work for many items, by a few threads.

#ifndef BERTH_IO_PARALLEL_FOR_FILES_H_
#define BERTH_IO_PARALLEL_FOR_FILES_H_

#include <cstddef>
#include <functional>

namespace berth::io {

// Calls fn(i) once for each i < `items`, in rising order, on this thread and on
// others that end before it returns: as many as there are cores, 4 at most,
// since more are no faster than the memory. `bytes` is what all items move:
// little is moved by this thread alone. After a call that throws no other
// begins; throws what the first of them threw.
void parallel_for(size_t items, size_t bytes,
                  const std::function<void(size_t)>& fn);

}  // namespace berth::io

#endif  // BERTH_IO_PARALLEL_FOR_FILES_H_
