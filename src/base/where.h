// where_text: names a place in the user's program for messages. Pure.

#ifndef BERTH_BASE_WHERE_H_
#define BERTH_BASE_WHERE_H_

#include <string>

#include "berth/site.h"

namespace berth {

// Returns ` (layer "dense_1", model.cc:41)`, what is known of it.
std::string where_text(const char* layer, Site site);

}  // namespace berth

#endif  // BERTH_BASE_WHERE_H_
