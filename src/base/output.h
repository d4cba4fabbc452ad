// Output: where the library prints for the user what a call is to show, such as
// progress: stdout, or what a binding of another language puts in its place.
//
// Called on the threads that call into the library. Thread-safe.

#ifndef BERTH_BASE_OUTPUT_H_
#define BERTH_BASE_OUTPUT_H_

#include <cstddef>
#include <memory>
#include <string_view>

namespace berth {

class Output {
 public:
  virtual ~Output() = default;

  // Shows `text` at once.
  virtual void write(std::string_view text) = 0;

  // Characters of a line that "\r" can draw again; 0 where it cannot, such as
  // a file.
  virtual size_t columns() = 0;
};

Output& user_output();

// Prints on `mine` from now on, until the process ends.
void set_output(std::unique_ptr<Output> mine);

}  // namespace berth

#endif  // BERTH_BASE_OUTPUT_H_
