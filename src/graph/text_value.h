// The values of a graph text: dtypes with shapes, tensors, attributes.
//
// What append_x() prints parse_x() reads back, bit for bit. parse_x() throws
// errors::InvalidArgument through its TextLine. One thread.

#ifndef BERTH_GRAPH_TEXT_VALUE_H_
#define BERTH_GRAPH_TEXT_VALUE_H_

#include <string>

#include "graph/text_line.h"
#include "op/attrs.h"
#include "op/infer.h"

namespace berth {

inline constexpr int64_t kMaxInlineElements = 64;
// Shapes in texts are smaller, so that products of two do not overflow.
inline constexpr int64_t kMaxTextElements = int64_t{1} << 40;

// Returns false when the known dimensions exceed kMaxTextElements together.
bool shape_fits(const Shape& shape);

// "[2,?,?1]": unknown, and the first symbol.
void append_shape(std::string& out, const Shape& shape);
Shape parse_shape(TextLine& line);

// "float32[2,3]", "resource(float32)[2,3]".
void append_spec(std::string& out, const OutSpec& spec);
OutSpec parse_spec(TextLine& line);

DType parse_dtype(TextLine& line);

// "1.5", "1e+20", "nan", "-inf": always told from an integer.
void append_double(std::string& out, double value);
double parse_double(TextLine& line);

// "tensor(float32[2], 1, 2)", "tensor(float32[100], blob <hash>)".
void append_tensor(std::string& out, const Tensor& t);
// Behind the word "tensor".
Tensor parse_tensor(TextLine& line);

}  // namespace berth

#endif  // BERTH_GRAPH_TEXT_VALUE_H_
