// Bytes of a file that become the value of a variable.

#ifndef BERTH_IO_VARIABLE_BYTES_H_
#define BERTH_IO_VARIABLE_BYTES_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "berth/variable.h"
#include "io/safetensors.h"

namespace berth::io {

// Gives `fill` room for the bytes of a variable: its own storage where the host
// reaches it. The variable is no longer torn afterwards; when `fill` throws, it
// is torn by `why`.
void fill_variable(const Variable& v, const std::string& why, Site site,
                   const std::function<void(std::byte*)>& fill);

// A tensor of a file, and the variable of its shape and dtype that gets it.
struct VariableToRead {
  Variable variable;
  const SafetensorsFile* file = nullptr;
  int index = -1;
};

// Fills variables, several at a time. Throws what SafetensorsFile::read()
// does: others may have their values then, those that were being read are torn.
void read_variables(const std::vector<VariableToRead>& list,
                    const std::string& why, Site site);

}  // namespace berth::io

#endif  // BERTH_IO_VARIABLE_BYTES_H_
