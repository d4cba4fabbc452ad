// Functions of math.cl by the program's T: WIDE programs compute in f64.

#if WIDE
#define T_EXP(x) f64_EXP((f64)(x))
#define T_LOG(x) f64_LOG((f64)(x))
#define T_LOG1P(x) f64_LOG1P((f64)(x))
#define T_SQRT(x) F64_SQRT(x)
#else
#define T_EXP(x) f32_EXP(x)
#define T_LOG(x) f32_LOG(x)
#define T_LOG1P(x) f32_LOG1P(x)
#define T_SQRT(x) F32_SQRT(x)
#endif
