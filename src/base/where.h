// where_text, file_name: name a place in the user's program for messages. Pure.

#ifndef BERTH_BASE_WHERE_H_
#define BERTH_BASE_WHERE_H_

#include <string>

#include "berth/site.h"

namespace berth {

// Returns ` (layer "dense_1", model.cc:41)`, what is known of it.
std::string where_text(const char* layer, Site site);

// Returns the file without its folders, "?" when it is not known.
const char* file_name(Site site);

}  // namespace berth

#endif  // BERTH_BASE_WHERE_H_
