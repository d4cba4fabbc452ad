// What the functions of berth/io.h ask of their arguments. Pure.

#ifndef BERTH_IO_TEXT_INPUT_H_
#define BERTH_IO_TEXT_INPUT_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/needs_values.h"
#include "base/where.h"
#include "berth/errors.h"
#include "berth/tensor.h"

namespace berth::io {

// Throws unless `t` holds values on the host.
void check_values(const Tensor& t, const std::string& where);

// The text of a scalar string, valid as long as `t`. Throws
// errors::InvalidArgument for any other tensor, FailedPrecondition in a trace.
std::string_view scalar_text(const Tensor& t, const char* function, Site site);

// The texts of a string tensor in row-major order, valid as long as `t`.
std::vector<std::string_view> texts_of(const Tensor& t, const char* function,
                                       Site site);

// A scalar string.
Tensor text_tensor(std::string_view text);

// Runs fn(); what it throws begins with "function (file:line): " then.
template <class F>
auto named_call(const char* function, Site site, F&& fn) {
  try {
    return fn();
  } catch (const errors::Error& e) {
    const std::string text = call_text(function, site) + ": " + e.what();
    if (dynamic_cast<const NeedsValues*>(&e) != nullptr) {
      throw Untraceable<errors::FailedPrecondition>(text);
    }
    errors::raise(e.code(), text);
  }
}

}  // namespace berth::io

#endif  // BERTH_IO_TEXT_INPUT_H_
