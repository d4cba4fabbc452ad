// Names of files with values in them: "{epoch:02d}-{val_loss:.2f}".

#ifndef BERTH_KERAS_CALLBACKS_FILE_PATTERN_H_
#define BERTH_KERAS_CALLBACKS_FILE_PATTERN_H_

#include <cstdint>
#include <map>
#include <string>

namespace berth::keras {

// Puts values in, as Python's str.format() does. `call` begins messages. Throws
// errors::InvalidArgument for names that are not in `numbers` or `logs`, and
// for formats that do not fit them.
std::string fill_pattern(const std::string& pattern,
                         const std::map<std::string, int64_t>& numbers,
                         const std::map<std::string, double>& logs,
                         const std::string& call);

// True when the pattern has a name that is not in `numbers`.
bool needs_logs(const std::string& pattern,
                const std::map<std::string, int64_t>& numbers);

}  // namespace berth::keras

#endif  // BERTH_KERAS_CALLBACKS_FILE_PATTERN_H_
