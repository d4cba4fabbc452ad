// Fuzz target of the graph text: any bytes end in a graph that verifies and
// prints to a text that parses to itself, or in an error with its place.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "berth/errors.h"
#include "graph/graph_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  GraphText text;
  try {
    text = parse_text({reinterpret_cast<const char*>(data), size});
  } catch (const errors::InvalidArgument& error) {
    const std::string_view what = error.what();
    if (!what.starts_with("line ")) std::abort();
    if (what.find(", column ") == what.npos) std::abort();
    return 0;
  }
  verify(text.graph);
  const std::string printed = print(text);
  if (print(parse_text(printed)) != printed) std::abort();
  return 0;
}
