// What the programs of this folder share: their flag, their tables, their end.

#ifndef EXAMPLES_ARTICLES_ARTICLE_H_
#define EXAMPLES_ARTICLES_ARTICLE_H_

#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <string>

#include "berth/berth.h"

namespace article {

// "GPU:0 (simulated, 1 GiB), CPU:0 (4 cores: 0-3)".
void print_devices();

// What ran where: of a function or a model that has run.
template <class Runs>
void print_placement(const Runs& runs) {
  fmt::print("{}\n", runs.placement().str());
}

// What --model says: "" (the program's own), "000_1" or "001_2".
const std::string& model_name();

// Runs one of the two; an error ends in its line and 1.
int main_of(const std::string& name, int argc, char** argv,
            const std::function<int()>& sensible,
            const std::function<int()>& as_printed);

}  // namespace article

#endif  // EXAMPLES_ARTICLES_ARTICLE_H_
