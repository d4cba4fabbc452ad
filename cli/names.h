// nearest_names: the likely meaning of a misspelt name. Pure.

#ifndef BERTH_CLI_NAMES_H_
#define BERTH_CLI_NAMES_H_

#include <string>
#include <vector>

namespace berth::cli {

// Returns "; did you mean 'place' or 'plan'?", or "" when no name is near.
std::string nearest_names(const std::string& name,
                          const std::vector<std::string>& known);

}  // namespace berth::cli

#endif  // BERTH_CLI_NAMES_H_
