// The page of `berth report`: one HTML file that needs no network.

#ifndef BERTH_PROFILER_REPORT_PAGE_H_
#define BERTH_PROFILER_REPORT_PAGE_H_

#include <string>
#include <vector>

#include "profiler/analysis.h"

namespace berth::profiler {

// `compared`: of another run with this one; empty: none.
std::string report_page(const EventIndex& x, const Analysis& analysis,
                        const std::string& title,
                        const std::vector<OpDifference>& compared = {});

}  // namespace berth::profiler

#endif  // BERTH_PROFILER_REPORT_PAGE_H_
