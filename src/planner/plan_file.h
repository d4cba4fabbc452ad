// Plan files: an answer of the planner as JSON, and back.
//
// docs/formats.md and docs/json.md describe the document. Pure functions.

#ifndef BERTH_PLANNER_PLAN_FILE_H_
#define BERTH_PLANNER_PLAN_FILE_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "planner/planner.h"

namespace berth {

// The contents of a plan file. Checked only to be a plan of the problem's ops
// on its devices.
struct PlanFile {
  PlacePlan plan;  // empty: none was found
  PlanModel model = PlanModel::kStep;
  std::string status;  // "planned", "infeasible", "nothing found"
  double value = 0, bound = 0, gap = -1;
  std::vector<double> peak_bytes;  // per device; empty: not stated
  Witness witness;
};

// Returns the document.
nlohmann::ordered_json plan_json(const PlanProblem& problem,
                                 const PlanAnswer& answer,
                                 const PlannerOptions& options);

// Prints a document: a line per field, and per object of a list.
std::string lines_of(const nlohmann::ordered_json& document);

// Reads a plan of the problem. Throws errors::InvalidArgument with file and
// path for missing or wrong fields, ops and devices that the problem lacks, and
// ops without a device.
PlanFile read_plan(const PlanProblem& problem, const std::string& text,
                   const std::string& file);

const char* status_name(PlanStatus status);  // "planned"

}  // namespace berth

#endif  // BERTH_PLANNER_PLAN_FILE_H_
