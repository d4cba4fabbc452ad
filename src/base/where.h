// where_text, call_text, site_text, file_name: name a place in the user's
// program for messages. Pure.

#ifndef BERTH_BASE_WHERE_H_
#define BERTH_BASE_WHERE_H_

#include <string>
#include <string_view>

#include "berth/site.h"

namespace berth {

// Returns ` (layer "dense_1", model.cc:41)`, what is known of it.
std::string where_text(const char* layer, Site site);

// Returns `map (model.cc:41)`: a call and the user's line that made it, the
// call alone when the line is not known.
std::string call_text(std::string_view what, Site site);

// Returns `model.cc:41`, "" when the file is not known.
std::string site_text(Site site);

// Returns the file without its folders, "?" when it is not known.
const char* file_name(Site site);

}  // namespace berth

#endif  // BERTH_BASE_WHERE_H_
