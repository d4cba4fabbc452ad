// KerasThread: what the layers of a thread are in the middle of.
//
// One object per thread, so that the thread's own block of memory, which is
// small when a program opens the library at run time, holds a pointer alone.

#ifndef BERTH_KERAS_MODELS_THREAD_STATE_H_
#define BERTH_KERAS_MODELS_THREAD_STATE_H_

#include "base/immortal.h"

namespace berth::distribute {
class StrategyCore;
}  // namespace berth::distribute

namespace berth::keras {

class CallLosses;
class GlobalStep;
class LayerCall;
class MaskScope;
class PolicyScope;
class RematScope;
class WeightLimit;

struct KerasThread {
  const PolicyScope* policy = nullptr;
  MaskScope* masks = nullptr;
  const RematScope* remat = nullptr;
  bool recomputes = false;  // a layer around is one unit
  bool training = false;
  GlobalStep* step = nullptr;
  CallLosses* losses = nullptr;
  const LayerCall* call = nullptr;
  // The path of a layer of the user's own whose call() runs: its parts are
  // under it ("block/up"); null: none.
  const char* parts_of = nullptr;
  WeightLimit* limit = nullptr;
  distribute::StrategyCore* fit_core = nullptr;
};

inline KerasThread& keras_thread() { return of_this_thread<KerasThread>(); }

}  // namespace berth::keras

#endif  // BERTH_KERAS_MODELS_THREAD_STATE_H_
