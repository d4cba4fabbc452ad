// Rows that items of a group share: `lanes` of them, a power of two, work at
// one row. On processor cores lanes is 1, and an item takes 16 neighbouring
// elements at a time.
//
// ROW_BEGIN names the row of an item and its lane; rows beyond the last one
// have no elements. ROW_FOLD and ROW_TREE are passed by every item.

#if WIDE  // T is float64 or complex128
typedef f64 real;
#else
typedef f32 real;
#endif

#if IS_CPU
#define ROW_ITEMS 16
#define ROW_WIDTH 16
#else
#define ROW_ITEMS GROUP_SIZE
#define ROW_WIDTH 1
#endif

#define ROW_BEGIN                                             \
  const i64 row = GROUP * (ROW_ITEMS / lanes) + LID / lanes;  \
  const i32 lane = LID & (lanes - 1)

// v: this item's share of COMBINE over EXPR of the i in [0, n).
#define ROW_FOLD(v, n, COMBINE, START, i, EXPR)                              \
  {                                                                          \
    T_C part_[ROW_WIDTH];                                                    \
    for (i32 j_ = 0; j_ < ROW_WIDTH; ++j_) part_[j_] = START;                \
    const i64 whole_ = (n) / ROW_WIDTH * ROW_WIDTH;                          \
    for (i64 at_ = (i64)lane * ROW_WIDTH; at_ < whole_;                      \
         at_ += (i64)lanes * ROW_WIDTH) {                                    \
      for (i32 j_ = 0; j_ < ROW_WIDTH; ++j_) {                               \
        const i64 i = at_ + j_;                                              \
        part_[j_] = COMBINE(part_[j_], (EXPR));                              \
      }                                                                      \
    }                                                                        \
    if (ROW_WIDTH > 1) {                                                     \
      for (i64 i = whole_ + lane; i < (n); i += lanes) {                     \
        part_[0] = COMBINE(part_[0], (EXPR));                                \
      }                                                                      \
    }                                                                        \
    for (i32 j_ = ROW_WIDTH / 2; j_ > 0; j_ /= 2) {                          \
      for (i32 k_ = 0; k_ < j_; ++k_) {                                      \
        part_[k_] = COMBINE(part_[k_], part_[k_ + j_]);                      \
      }                                                                      \
    }                                                                        \
    v = part_[0];                                                            \
  }

// v of all lanes of the row, for each of them.
#if IS_CPU
#define ROW_BOX(type, box)
#define ROW_TREE(box, v, COMBINE)
#else
#define ROW_BOX(type, box) LOCAL_ARRAY(type, box, GROUP_SIZE)
#define ROW_TREE(box, v, COMBINE)                          \
  {                                                        \
    box[LID] = v;                                          \
    BARRIER();                                             \
    for (i32 s_ = lanes / 2; s_ > 0; s_ /= 2) {            \
      if (lane < s_) {                                     \
        box[LID] = COMBINE(box[LID], box[LID + s_]);       \
      }                                                    \
      BARRIER();                                           \
    }                                                      \
    v = box[LID - lane];                                   \
    BARRIER();                                             \
  }
#endif

#if !T_COMPLEX
// The larger one; a NaN wins, and of equals the first.
FN T_C larger(T_C a, T_C b) { return a == a && !(b <= a) ? b : a; }
FN T_C smaller(T_C a, T_C b) { return a == a && !(b >= a) ? b : a; }
#endif
