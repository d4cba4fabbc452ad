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

class Cancelled : public Error {
 public:
  explicit Cancelled(const std::string& message)
      : Error(Code::kCancelled, message) {}
};
class Unknown : public Error {
 public:
  explicit Unknown(const std::string& message)
      : Error(Code::kUnknown, message) {}
};
class InvalidArgument : public Error {
 public:
  explicit InvalidArgument(const std::string& message)
      : Error(Code::kInvalidArgument, message) {}
};
class DeadlineExceeded : public Error {
 public:
  explicit DeadlineExceeded(const std::string& message)
      : Error(Code::kDeadlineExceeded, message) {}
};
class NotFound : public Error {
 public:
  explicit NotFound(const std::string& message)
      : Error(Code::kNotFound, message) {}
};
class AlreadyExists : public Error {
 public:
  explicit AlreadyExists(const std::string& message)
      : Error(Code::kAlreadyExists, message) {}
};
class PermissionDenied : public Error {
 public:
  explicit PermissionDenied(const std::string& message)
      : Error(Code::kPermissionDenied, message) {}
};
class ResourceExhausted : public Error {
 public:
  explicit ResourceExhausted(const std::string& message)
      : Error(Code::kResourceExhausted, message) {}
};
class FailedPrecondition : public Error {
 public:
  explicit FailedPrecondition(const std::string& message)
      : Error(Code::kFailedPrecondition, message) {}
};
class Aborted : public Error {
 public:
  explicit Aborted(const std::string& message)
      : Error(Code::kAborted, message) {}
};
class OutOfRange : public Error {
 public:
  explicit OutOfRange(const std::string& message)
      : Error(Code::kOutOfRange, message) {}
};
class Unimplemented : public Error {
 public:
  explicit Unimplemented(const std::string& message)
      : Error(Code::kUnimplemented, message) {}
};
class Internal : public Error {
 public:
  explicit Internal(const std::string& message)
      : Error(Code::kInternal, message) {}
};
class Unavailable : public Error {
 public:
  explicit Unavailable(const std::string& message)
      : Error(Code::kUnavailable, message) {}
};
class DataLoss : public Error {
 public:
  explicit DataLoss(const std::string& message)
      : Error(Code::kDataLoss, message) {}
};

// Throws the class that belongs to `code`.
[[noreturn]] void raise(Code code, const std::string& message);

}  // namespace berth::errors

#endif  // BERTH_ERRORS_H_
