// What tests ask about errors: the message of one, and what it says. Tests
// only.

#ifndef BERTH_BASE_ERRORS_TESTING_H_
#define BERTH_BASE_ERRORS_TESTING_H_

#include <gtest/gtest.h>

#include <string>

namespace berth {

// The message that `fn` throws as `E`; "" when it throws nothing.
template <class E, class Fn>
std::string message_of(Fn&& fn) {
  try {
    fn();
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

inline testing::AssertionResult says(const std::string& message,
                                     const std::string& part) {
  if (message.find(part) != message.npos) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "'" << part << "' not in: '" << message << "'";
}

}  // namespace berth

#endif  // BERTH_BASE_ERRORS_TESTING_H_
