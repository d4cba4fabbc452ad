// TextLine: one line of a graph text, read token by token.
//
// Every read says what it expected; errors name line and column, both counted
// from 1, columns in bytes. Words are letters, digits and _ . / - (not
// beginning with a digit or -); whatever else a name holds stands in quotes.
// One thread.

#ifndef BERTH_GRAPH_TEXT_LINE_H_
#define BERTH_GRAPH_TEXT_LINE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace berth {

class TextLine {
 public:
  TextLine(std::string_view text, int64_t number)
      : text_(text), number_(number) {}

  // The column where the next token begins.
  int64_t column();
  int64_t line_number() const { return number_; }

  // Throws errors::InvalidArgument "line N, column C: <what>"; C is where the
  // token read last begins.
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail_at(int64_t column, const std::string& what) const;
  // "line N, column C: found <what stands here>, expected <expected>".
  [[noreturn]] void fail_here(std::string_view expected);

  bool at_end();
  // Takes `symbol` ("(", "->") if it stands here.
  bool take(std::string_view symbol);
  void expect(std::string_view symbol);
  // Takes the word `word` if it stands here.
  bool take_word(std::string_view word);

  bool at_word();
  bool at_quote();
  bool at_number();
  bool at_special_number();  // inf, nan, nan0x...
  // A bare word; `what` describes it in errors.
  std::string_view word(std::string_view what);
  // A word or a quoted string.
  std::string name(std::string_view what);
  std::string quoted(std::string_view what);
  int64_t integer(std::string_view what);
  // The characters of a number: digits, letters, + - .
  std::string_view number(std::string_view what);

 private:
  void skip_space();
  char peek();

  std::string_view text_;
  size_t at_ = 0;
  size_t token_ = 0;  // where the token read last begins
  int64_t number_;
};

// Prints a name as a word if it is one, else in quotes.
void append_name(std::string& out, std::string_view name);
void append_quoted(std::string& out, std::string_view text);

}  // namespace berth

#endif  // BERTH_GRAPH_TEXT_LINE_H_
