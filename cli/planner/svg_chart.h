// Chart: boxes on lanes over one axis, as an SVG picture.
//
// Knows nothing of plans; plan_svg.h decides what is drawn. Pure.

#ifndef BERTH_CLI_PLANNER_SVG_CHART_H_
#define BERTH_CLI_PLANNER_SVG_CHART_H_

#include <string>
#include <vector>

namespace berth {

struct Chart {
  struct Lane {
    std::string name, note;  // beside it, with the note in small letters below
    bool thin = false;       // belongs to the lane above it
  };
  // Overlapping boxes of a lane are stacked.
  struct Box {
    size_t lane = 0;
    double begin = 0, end = 0;
    std::string label;  // written if it fits
    std::string tip;    // shown by a browser; "": none
    std::string fill = "#dddddd";
    bool hatched = false, outlined = false;
  };
  struct Mark {  // a line across all lanes
    double at = 0;
    std::string text;
    bool dashed = false;
  };
  struct Key {
    std::string fill, text;  // fill "", not hatched: text only
    bool hatched = false, outlined = false;
    std::string fill_end = {};  // if set, from `fill` to this
  };

  std::string title, subtitle;
  std::string axis;  // "ms"; "" for numbers without a unit
  double scale = 1;  // axis units per box unit
  std::vector<Lane> lanes;
  std::vector<Box> boxes;
  std::vector<Mark> marks;
  std::vector<Key> keys;
};

// Returns the picture: one self-contained document.
std::string draw_svg(const Chart& chart);

// Escapes XML's special characters; bytes that are not text become "?".
std::string xml_text(const std::string& text);

// Returns a colour between two, "#rrggbb"; share 0: the first.
std::string mix(const std::string& from, const std::string& to, double share);

}  // namespace berth

#endif  // BERTH_CLI_PLANNER_SVG_CHART_H_
