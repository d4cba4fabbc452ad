// Codes of errors and the classes that they throw.

#include "berth/errors.h"

namespace berth::errors {

const char* code_name(Code code) {
  switch (code) {
    case Code::kCancelled:
      return "CANCELLED";
    case Code::kUnknown:
      return "UNKNOWN";
    case Code::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case Code::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case Code::kNotFound:
      return "NOT_FOUND";
    case Code::kAlreadyExists:
      return "ALREADY_EXISTS";
    case Code::kPermissionDenied:
      return "PERMISSION_DENIED";
    case Code::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case Code::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case Code::kAborted:
      return "ABORTED";
    case Code::kOutOfRange:
      return "OUT_OF_RANGE";
    case Code::kUnimplemented:
      return "UNIMPLEMENTED";
    case Code::kInternal:
      return "INTERNAL";
    case Code::kUnavailable:
      return "UNAVAILABLE";
    case Code::kDataLoss:
      return "DATA_LOSS";
  }
  return "UNKNOWN";
}

void raise(Code code, const std::string& message) {
  switch (code) {
    case Code::kCancelled:
      throw Cancelled(message);
    case Code::kInvalidArgument:
      throw InvalidArgument(message);
    case Code::kDeadlineExceeded:
      throw DeadlineExceeded(message);
    case Code::kNotFound:
      throw NotFound(message);
    case Code::kAlreadyExists:
      throw AlreadyExists(message);
    case Code::kPermissionDenied:
      throw PermissionDenied(message);
    case Code::kResourceExhausted:
      throw ResourceExhausted(message);
    case Code::kFailedPrecondition:
      throw FailedPrecondition(message);
    case Code::kAborted:
      throw Aborted(message);
    case Code::kOutOfRange:
      throw OutOfRange(message);
    case Code::kUnimplemented:
      throw Unimplemented(message);
    case Code::kInternal:
      throw Internal(message);
    case Code::kUnavailable:
      throw Unavailable(message);
    case Code::kDataLoss:
      throw DataLoss(message);
    case Code::kUnknown:
      break;
  }
  throw Unknown(message);
}

}  // namespace berth::errors
