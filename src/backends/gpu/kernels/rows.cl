// Rows that items of a group share: `lanes` of them, a power of two, work at
// one row.
//
// ROW_BEGIN names the row of an item and its lane; rows beyond the last one
// have no elements. ROW_FOLD and ROW_TREE are passed by every item.

#if WIDE  // T is float64 or complex128
typedef f64 real;
#else
typedef f32 real;
#endif

#define ROW_ITEMS GROUP_SIZE

#define ROW_BEGIN                                             \
  const i64 row = GROUP * (ROW_ITEMS / lanes) + LID / lanes;  \
  const i32 lane = LID & (lanes - 1)

// v: this item's share of COMBINE over EXPR of the i in [0, n).
#define ROW_FOLD(v, n, COMBINE, START, i, EXPR)    \
  {                                                \
    T_C part_ = START;                             \
    for (i64 i = lane; i < (n); i += lanes) {      \
      part_ = COMBINE(part_, (EXPR));              \
    }                                              \
    v = part_;                                     \
  }

// v of all lanes of the row, for each of them.
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

#if !T_COMPLEX
// The larger one; a NaN wins, and of equals the first.
FN T_C larger(T_C a, T_C b) { return a == a && !(b <= a) ? b : a; }
FN T_C smaller(T_C a, T_C b) { return a == a && !(b >= a) ? b : a; }
#endif
