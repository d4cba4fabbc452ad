// nearest_names: what a misspelt name may have meant. Pure.

#ifndef BERTH_CLI_NAMES_H_
#define BERTH_CLI_NAMES_H_

#include <string>
#include <vector>

namespace berth::cli {

// Returns "; did you mean 'place' or 'plan'?", "" when none is near.
std::string nearest_names(const std::string& name,
                          const std::vector<std::string>& known);

}  // namespace berth::cli

#endif  // BERTH_CLI_NAMES_H_
