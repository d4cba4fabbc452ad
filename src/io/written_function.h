// Files of functions: the graph's text in the metadata of a safetensors file.

#ifndef BERTH_IO_WRITTEN_FUNCTION_H_
#define BERTH_IO_WRITTEN_FUNCTION_H_

#include <optional>
#include <string>

namespace berth::io {

// Returns the graph text of a file of ConcreteFunction::save(); nullopt for a
// path that does not end in ".safetensors". The constants it names can be found
// (graph/blob_table.h) from then on. Messages begin with `subject`; throws as
// load_function().
std::optional<std::string> read_function_text(const std::string& path,
                                              const std::string& subject);

}  // namespace berth::io

#endif  // BERTH_IO_WRITTEN_FUNCTION_H_
