// Bytes of a file that become the value of a variable.

#ifndef BERTH_IO_VARIABLE_BYTES_H_
#define BERTH_IO_VARIABLE_BYTES_H_

#include <cstddef>
#include <functional>
#include <string>

#include "berth/variable.h"

namespace berth::io {

// Gives `fill` room for the bytes of a variable: its own storage where the host
// reaches it. The variable is no longer torn afterwards; when `fill` throws, it
// is torn by `why`.
void fill_variable(const Variable& v, const std::string& why, Site site,
                   const std::function<void(std::byte*)>& fill);

}  // namespace berth::io

#endif  // BERTH_IO_VARIABLE_BYTES_H_
