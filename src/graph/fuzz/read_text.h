// What both fuzz targets of graph texts ask of the reader.

#ifndef BERTH_GRAPH_FUZZ_READ_TEXT_H_
#define BERTH_GRAPH_FUZZ_READ_TEXT_H_

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "berth/errors.h"
#include "graph/graph_text.h"

namespace berth {

// Reads any bytes. False: an error with its place. Else `text` verifies and
// prints to a text that parses to itself. Aborts where neither holds.
inline bool read_text(const uint8_t* data, size_t size, GraphText* text) {
  try {
    *text = parse_text({reinterpret_cast<const char*>(data), size});
  } catch (const errors::InvalidArgument& error) {
    const std::string_view what = error.what();
    if (!what.starts_with("line ")) std::abort();
    if (what.find(", column ") == what.npos) std::abort();
    return false;
  }
  verify(text->graph);
  const std::string printed = print(*text);
  if (print(parse_text(printed)) != printed) std::abort();
  return true;
}

}  // namespace berth

#endif  // BERTH_GRAPH_FUZZ_READ_TEXT_H_
