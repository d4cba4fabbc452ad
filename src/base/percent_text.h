// percent_text: shares and errors for people. Pure.

#ifndef BERTH_BASE_PERCENT_TEXT_H_
#define BERTH_BASE_PERCENT_TEXT_H_

#include <string>

namespace berth {

// Returns "0.4 %", "12 %", "260 %", "more than 1000 %": never with an exponent.
std::string percent_text(double share);

}  // namespace berth

#endif  // BERTH_BASE_PERCENT_TEXT_H_
