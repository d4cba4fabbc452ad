// Site: the user's source line that called a public function.
//
// Public functions take a defaulted last argument `Site site = Site::here()`;
// errors, graph nodes and traces report it. Values; thread-safe.

#ifndef BERTH_SITE_H_
#define BERTH_SITE_H_

namespace berth {

struct Site {
  const char* file = nullptr;   // static storage, or interned for ever
  int line = 0;                 // 0: unknown
  const char* frame = nullptr;  // function or layer, if known (Python)

  // The caller's line when used as a default argument.
  static constexpr Site here(const char* file = __builtin_FILE(),
                             int line = __builtin_LINE()) {
    return Site{file, line, nullptr};
  }
};

}  // namespace berth

#endif  // BERTH_SITE_H_
