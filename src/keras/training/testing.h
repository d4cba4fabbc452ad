// What the tests of this module share. Tests only.

#ifndef BERTH_KERAS_TRAINING_TESTING_H_
#define BERTH_KERAS_TRAINING_TESTING_H_

#include <gtest/gtest.h>

#include <string>

namespace berth::keras {

inline void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace berth::keras

#endif  // BERTH_KERAS_TRAINING_TESTING_H_
