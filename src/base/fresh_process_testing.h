// What tests need that configure devices, or end badly: a process of their own.
// Tests only.

#ifndef BERTH_BASE_FRESH_PROCESS_TESTING_H_
#define BERTH_BASE_FRESH_PROCESS_TESTING_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>

#include "base/pretended_cores.h"

namespace berth::fresh_process {

// Ends the process as failed unless `ok`.
inline void check(bool ok, const std::string& what) {
  if (ok) return;
  std::cerr << "not so: " << what << std::endl;
  std::_Exit(1);
}

// Before devices exist: pretends when the process may use fewer cores.
inline void need_cores(int count) {
  if (CoreSet::allowed().size() >= count) return;
  pretend_cores(CoreSet::parse("0-" + std::to_string(count - 1)));
}

// `fn` throws E with `part` in its message.
template <class E>
void refuses(const std::function<void()>& fn, const std::string& part) {
  try {
    fn();
  } catch (const E& e) {
    if (std::string(e.what()).find(part) != std::string::npos) return;
    std::cerr << "'" << part << "' not in: " << e.what() << std::endl;
    std::_Exit(1);
  }
  check(false, part);
}

}  // namespace berth::fresh_process

// Runs the statement `body` in a fresh process; it ends with 0 unless a check
// fails.
#define IN_A_FRESH_PROCESS(body)                  \
  GTEST_FLAG_SET(death_test_style, "threadsafe"); \
  EXPECT_EXIT(                                    \
      {                                           \
        body;                                     \
        std::_Exit(0);                            \
      },                                          \
      ::testing::ExitedWithCode(0), "")

#endif  // BERTH_BASE_FRESH_PROCESS_TESTING_H_
