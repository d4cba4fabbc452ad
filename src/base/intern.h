// intern: names that live for ever, one copy each.
//
// For names of the user's program (files, layers), which repeat: what is
// interned is never freed. Thread-safe.

#ifndef BERTH_BASE_INTERN_H_
#define BERTH_BASE_INTERN_H_

#include <string>

namespace berth {

const char* intern(std::string name);

}  // namespace berth

#endif  // BERTH_BASE_INTERN_H_
