/* The interface of libberth_cudnn.so: cuDNN plans for a few kinds of graphs,
 * behind functions and structs of C, so that only its one source sees cuDNN's
 * headers, and exceptions stay inside.
 *
 * The library's symbol `berth_cudnn_api` is a BerthCudnnApi; the other one,
 * `berth_opened_by_plugin`, says that it is no plug-in of its own. Functions
 * that can fail return 0, or another value with a zero-terminated reason in
 * `why`; none throws. Thread-safe; a card's runs wait for each other. */

#ifndef BERTH_BACKENDS_CUDNN_CUDNN_API_H_
#define BERTH_BACKENDS_CUDNN_CUDNN_API_H_

#include <stddef.h>
#include <stdint.h>

#define BERTH_CUDNN_API_VERSION 2
#define BERTH_CUDNN_WHY_BYTES 1024
#define BERTH_CUDNN_MOST_ARGUMENTS 16

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of graphs, with their arguments in order; those in brackets are
 * there if the field of that name is set. Images are [n, h, w, c], filters
 * [o, kh, kw, c / groups], values per channel and moments [c], float32. */
enum BerthCudnnWhat {
  /* image, filter, [bias], [residual], result */
  BERTH_CUDNN_CONV = 0,
  /* filter, gradient of the result, gradient of the image */
  BERTH_CUDNN_CONV_IMAGE_GRAD = 1,
  /* image, gradient of the result, gradient of the filter */
  BERTH_CUDNN_CONV_FILTER_GRAD = 2,
  /* x, scale, offset, [residual], y, mean, inverse deviation, mean again,
   * sample variance; scale is also read for a blend of moments by the
   * factor 0, so that a NaN in scale makes them NaN */
  BERTH_CUDNN_BATCH_NORM = 3,
  /* gradient of y, x, scale, mean, inverse deviation; gradients of x, scale,
   * offset */
  BERTH_CUDNN_BATCH_NORM_GRAD = 4,
  /* query [batch, heads, s, d], key [batch, heads, t, d],
   * value [batch, heads, t, e], result [batch, heads, s, e],
   * logarithms of the sums [batch, heads, s, 1], float32 */
  BERTH_CUDNN_ATTENTION = 5,
  /* query, key, value, result, its gradient, logarithms; gradients of query,
   * key, value */
  BERTH_CUDNN_ATTENTION_GRAD = 6
};

enum BerthCudnnType {
  BERTH_CUDNN_FLOAT32 = 0,
  BERTH_CUDNN_BFLOAT16 = 1,
  BERTH_CUDNN_FLOAT16 = 2
};

/* Fields that a kind does not use are 0. All sums are in float32. */
struct BerthCudnnGraph {
  int32_t what; /* BerthCudnnWhat */
  int32_t type; /* BerthCudnnType of images, filters, queries, ... */
  /* Inputs of float32 may be rounded to TF32. */
  int32_t tf32;
  int32_t bias, residual, relu; /* of the result; residual before relu */
  int32_t causal;               /* query i sees keys 0 to i */
  int32_t unused;
  int64_t n, h, w, c; /* of the image; for a norm h = w = 1 */
  int64_t kh, kw, oh, ow, o, groups;
  int64_t stride[2], dilation[2];
  int64_t pad_before[2], pad_after[2];
  int64_t batch, heads, s, t, d, e;
  double epsilon, scale;
};

typedef struct BerthCudnnCard BerthCudnnCard;
typedef struct BerthCudnnPlan BerthCudnnPlan;

/* Unless stated otherwise, calls with a card or one of its plans need that
 * card's context current. */
struct BerthCudnnApi {
  int32_t version; /* BERTH_CUDNN_API_VERSION */

  /* Opens cuDNN 9 and all of its parts from `folder`, or from the system
   * loader's path if that is "". Once per process: a second call with another
   * folder fails. No context. */
  int32_t (*open)(const char* folder, char* why);
  /* Returns 91900 for 9.19.0; 0 before it is open. No context. */
  int64_t (*cudnn_version)(void);

  /* Makes the card whose context is current. `architecture`: 90 for sm_90.
   * With `properties`, cuDNN's JSON text, makes an absent card, for plans that
   * cannot run; this needs no context. */
  int32_t (*make_card)(const char* properties, int32_t architecture,
                       BerthCudnnCard** card, char* why);
  void (*drop_card)(BerthCudnnCard* card);
  /* Writes everything that plans depend on to `text`, zero-terminated, at most
   * `bytes`. Returns how many it needs; 0: cuDNN refuses. */
  size_t (*card_key)(BerthCudnnCard* card, char* text, size_t bytes);

  /* Makes a plan that gives the same bits each time: the first in cuDNN's
   * order that can be built. */
  int32_t (*make_plan)(BerthCudnnCard* card, const BerthCudnnGraph* graph,
                       BerthCudnnPlan** plan, char* why);
  /* Makes a plan of that graph from the bytes of save_plan(). */
  int32_t (*load_plan)(BerthCudnnCard* card, const BerthCudnnGraph* graph,
                       const uint8_t* data, size_t bytes, BerthCudnnPlan** plan,
                       char* why);
  /* Returns its bytes, which the plan owns; null: it cannot be saved. */
  const uint8_t* (*save_plan)(BerthCudnnPlan* plan, size_t* bytes);
  void (*drop_plan)(BerthCudnnPlan* plan);
  /* Returns the bytes of scratch that a run needs, aligned to 64. */
  size_t (*plan_scratch)(const BerthCudnnPlan* plan);
  int32_t (*plan_arguments)(const BerthCudnnPlan* plan);
  /* Returns cuDNN's name of its choice, and of one that was made here what
   * cuDNN notes of its numbers, such as "eng0_k1=2 TENSOR_CORE". */
  const char* (*plan_name)(const BerthCudnnPlan* plan);
  /* Appends it to a stream, a CUstream. Allocates nothing on the card. */
  int32_t (*run_plan)(BerthCudnnPlan* plan, void* stream,
                      void* const* arguments, int32_t num_arguments,
                      void* scratch, char* why);
};
typedef struct BerthCudnnApi BerthCudnnApi;
typedef struct BerthCudnnGraph BerthCudnnGraph;

#ifdef __cplusplus
}
#endif

#endif /* BERTH_BACKENDS_CUDNN_CUDNN_API_H_ */
