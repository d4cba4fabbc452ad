// Reads environment variables: one that is empty counts as not set.
// Thread-safe as long as no thread sets them.

#ifndef BERTH_BASE_ENVIRONMENT_H_
#define BERTH_BASE_ENVIRONMENT_H_

#include <cstdlib>
#include <initializer_list>
#include <string>

namespace berth {

// The value of `name`, empty if it is not set.
inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The value of a switch: "1" is true, "0" false, and one that is not set or
// empty `otherwise`. Throws errors::InvalidArgument for anything else.
bool environment_switch(const char* name, bool otherwise);

// The value of `name`, one of `allowed`; the first of them when it is not set
// or empty. Throws errors::InvalidArgument for anything else.
std::string environment_choice(const char* name,
                               std::initializer_list<const char*> allowed);

}  // namespace berth

#endif  // BERTH_BASE_ENVIRONMENT_H_
