#include "exec/runners.h"

#include <utility>

#include "exec/watch_results.h"

namespace berth {

std::unique_ptr<PlanRunner> make_runner(const Program& program, bool nested) {
  std::unique_ptr<PlanRunner> runner;
  if (program.is_inline) {
    runner = inline_runner(program);
    if (!nested) runner = home_runner(program, std::move(runner));
  } else {
    runner = stream_runner(program);
    if (auto walks = walk_runner(program, runner)) runner = std::move(walks);
  }
  if (watches_results()) return runner;  // backends' runners do not look
  return choose_runner(program, std::move(runner));
}

}  // namespace berth
