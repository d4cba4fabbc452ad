// Errors: every public call reports failure by throwing one of these.
//
// The names and codes are TensorFlow's (tf.errors.*). A message says what was
// wrong with the values, what was expected, and the user's source line.
// Thread-safe: exceptions are values.

#ifndef BERTH_ERRORS_H_
#define BERTH_ERRORS_H_

#include <stdexcept>
#include <string>

namespace berth::errors {

enum class Code {
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
};

// Returns TensorFlow's spelling, for example "INVALID_ARGUMENT".
const char* code_name(Code code);

class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message)
      : std::runtime_error(message), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

template <Code kCode>
class ErrorOf : public Error {
 public:
  explicit ErrorOf(const std::string& message) : Error(kCode, message) {}
};

using Cancelled = ErrorOf<Code::kCancelled>;
using Unknown = ErrorOf<Code::kUnknown>;
using InvalidArgument = ErrorOf<Code::kInvalidArgument>;
using DeadlineExceeded = ErrorOf<Code::kDeadlineExceeded>;
using NotFound = ErrorOf<Code::kNotFound>;
using AlreadyExists = ErrorOf<Code::kAlreadyExists>;
using PermissionDenied = ErrorOf<Code::kPermissionDenied>;
using ResourceExhausted = ErrorOf<Code::kResourceExhausted>;
using FailedPrecondition = ErrorOf<Code::kFailedPrecondition>;
using Aborted = ErrorOf<Code::kAborted>;
using OutOfRange = ErrorOf<Code::kOutOfRange>;
using Unimplemented = ErrorOf<Code::kUnimplemented>;
using Internal = ErrorOf<Code::kInternal>;
using Unavailable = ErrorOf<Code::kUnavailable>;
using DataLoss = ErrorOf<Code::kDataLoss>;

// Throws the class that belongs to `code`.
[[noreturn]] void raise(Code code, const std::string& message);

}  // namespace berth::errors

#endif  // BERTH_ERRORS_H_
