// A pickle is a program for a stack machine. This one knows the operations
// with which NumPy writes an array of lists of integers, and treats what they
// would call as names: nothing is looked up, made or run.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "berth/errors.h"
#include "io/npz.h"

namespace berth::io {
namespace {

constexpr size_t kMostStack = size_t{1} << 26;

enum class Kind : uint8_t { kMark, kInt, kText, kList, kTuple, kOther };

struct Value {
  Kind kind = Kind::kOther;
  int64_t number = 0;  // kInt: the value; kText, kList, kTuple: its index
};

[[noreturn]] void other_pickle(const std::string& what) {
  throw errors::InvalidArgument(fmt::format(
      "the pickle has {}; expected an array of lists of integers, and nothing "
      "else of a pickle is read",
      what));
}

class PickleReader {
 public:
  explicit PickleReader(std::string_view bytes)
      : in_(bytes), most_(bytes.size()) {}

  std::vector<std::vector<int64_t>> run() {
    while (step()) {
    }
    if (result_ < 0) other_pickle("no array");
    return lists_of(items_[static_cast<size_t>(result_)]);
  }

 private:
  std::string_view take(size_t n) {
    if (n > in_.size()) {
      throw errors::DataLoss("a pickle ends in the middle; fetch it again");
    }
    const std::string_view s = in_.substr(0, n);
    in_.remove_prefix(n);
    return s;
  }
  uint64_t number(int bytes) {
    uint64_t v = 0;
    const std::string_view s = take(static_cast<size_t>(bytes));
    for (int i = 0; i < bytes; ++i) {
      v |= uint64_t{static_cast<uint8_t>(s[static_cast<size_t>(i)])} << 8 * i;
    }
    return v;
  }
  std::string_view line() {
    const size_t end = in_.find('\n');
    if (end == in_.npos) take(in_.size() + 1);
    const std::string_view s = take(end + 1);
    return s.substr(0, end);
  }

  void push(Kind kind, int64_t number = 0) {
    if (stack_.size() >= kMostStack) other_pickle("too many values");
    stack_.push_back({kind, number});
  }
  Value pop() {
    if (stack_.empty()) other_pickle("an operation without its values");
    const Value v = stack_.back();
    stack_.pop_back();
    return v;
  }
  // The values above the last mark, which goes, too.
  std::vector<Value> pop_mark() {
    size_t at = stack_.size();
    while (at > 0 && stack_[at - 1].kind != Kind::kMark) --at;
    if (at == 0) other_pickle("an operation without its mark");
    std::vector<Value> all(stack_.begin() + static_cast<std::ptrdiff_t>(at),
                           stack_.end());
    stack_.resize(at - 1);
    return all;
  }
  void push_items(Kind kind, std::vector<Value> values) {
    items_.push_back(std::move(values));
    push(kind, static_cast<int64_t>(items_.size()) - 1);
  }
  void push_tuple(size_t n) {
    std::vector<Value> values(n);
    for (size_t i = n; i-- > 0;) values[i] = pop();
    push_items(Kind::kTuple, std::move(values));
  }
  void append(const std::vector<Value>& values) {
    if (stack_.empty() || stack_.back().kind != Kind::kList) {
      other_pickle("values for something that is no list");
    }
    auto& list = items_[static_cast<size_t>(stack_.back().number)];
    list.insert(list.end(), values.begin(), values.end());
  }

  void memoize(size_t at) {
    // Places are numbered as they come.
    if (stack_.empty() || at > memo_.size() + 256) other_pickle("a wrong memo");
    if (memo_.size() <= at) memo_.resize(at + 1);
    memo_[at] = stack_.back();
  }
  void recall(size_t at) {
    if (at >= memo_.size()) other_pickle("a value that was not kept");
    push(memo_[at].kind, memo_[at].number);
  }

  // What may be named; it is only compared.
  void name(std::string_view module, std::string_view object) {
    const bool known =
        ((module == "numpy.core.multiarray" ||
          module == "numpy._core.multiarray") &&
         object == "_reconstruct") ||
        (module == "numpy" && (object == "ndarray" || object == "dtype")) ||
        (module == "_codecs" && object == "encode");
    if (!known) {
      other_pickle(fmt::format("the name {}.{}", module.substr(0, 60),
                               object.substr(0, 60)));
    }
    push(Kind::kOther);
  }

  // object.__setstate__(state): of an array its last part are the elements.
  void build() {
    const Value state = pop();
    if (state.kind != Kind::kTuple) return;
    const auto& parts = items_[static_cast<size_t>(state.number)];
    if (parts.size() == 5 && parts[4].kind == Kind::kList) {
      result_ = parts[4].number;
    }
  }

  bool step();
  bool step_value(uint8_t op);

  std::vector<std::vector<int64_t>> lists_of(const std::vector<Value>& all) {
    std::vector<std::vector<int64_t>> lists;
    size_t total = 0;
    for (const Value& v : all) {
      if (v.kind != Kind::kList) other_pickle("an element that is no list");
      const auto& items = items_[static_cast<size_t>(v.number)];
      // A list that is named often would be copied as often.
      total += items.size();
      if (total > most_) other_pickle("too many values");
      std::vector<int64_t> numbers;
      numbers.reserve(items.size());
      for (const Value& n : items) {
        if (n.kind != Kind::kInt) other_pickle("a list of other things");
        numbers.push_back(n.number);
      }
      lists.push_back(std::move(numbers));
    }
    return lists;
  }

  std::string_view in_;
  size_t most_;  // no file has as many values as bytes
  std::vector<Value> stack_, memo_;
  std::vector<std::vector<Value>> items_;  // of lists and tuples
  std::vector<std::string_view> texts_;    // for STACK_GLOBAL
  int64_t result_ = -1;
};

bool PickleReader::step() {
  const auto op = static_cast<uint8_t>(take(1)[0]);
  switch (op) {
    case 0x80:  // PROTO
      take(1);
      return true;
    case 0x95:  // FRAME
      take(8);
      return true;
    case '.':
      return false;
    case 'c': {
      const std::string_view module = line();
      name(module, line());
      return true;
    }
    case 0x93: {  // STACK_GLOBAL
      const Value object = pop(), module = pop();
      if (object.kind != Kind::kText || module.kind != Kind::kText) {
        other_pickle("a name without its texts");
      }
      name(texts_[static_cast<size_t>(module.number)],
           texts_[static_cast<size_t>(object.number)]);
      return true;
    }
    case 'R':
      pop();
      pop();
      push(Kind::kOther);
      return true;
    case 'b':
      build();
      return true;
    case '(':
      push(Kind::kMark);
      return true;
    case 'q':
      memoize(number(1));
      return true;
    case 'r':
      memoize(number(4));
      return true;
    case 0x94:  // MEMOIZE
      memoize(memo_.size());
      return true;
    case 'h':
      recall(number(1));
      return true;
    case 'j':
      recall(number(4));
      return true;
    case 'a':
      append({pop()});
      return true;
    case 'e':
      append(pop_mark());
      return true;
    default:
      return step_value(op);
  }
}

bool PickleReader::step_value(uint8_t op) {
  const auto text = [&](int bytes) {
    texts_.push_back(take(number(bytes)));
    push(Kind::kText, static_cast<int64_t>(texts_.size()) - 1);
  };
  switch (op) {
    case 'K':
      push(Kind::kInt, static_cast<int64_t>(number(1)));
      break;
    case 'M':
      push(Kind::kInt, static_cast<int64_t>(number(2)));
      break;
    case 'J':
      push(Kind::kInt, static_cast<int32_t>(number(4)));
      break;
    case 'I': {  // also True and False
      line();
      push(Kind::kOther);
      break;
    }
    case 0x8a: {  // LONG1
      const uint64_t n = number(1);
      if (n > 8) other_pickle("an integer above 64 bits");
      uint64_t v = number(static_cast<int>(n));
      if (n > 0 && n < 8 && (v >> (8 * n - 1) & 1) != 0) {
        v |= ~uint64_t{0} << 8 * n;
      }
      push(Kind::kInt, static_cast<int64_t>(v));
      break;
    }
    case ']':
      push_items(Kind::kList, {});
      break;
    case 'l':
      push_items(Kind::kList, pop_mark());
      break;
    case ')':
      push_tuple(0);
      break;
    case 0x85:
    case 0x86:
    case 0x87:  // TUPLE1 to TUPLE3
      push_tuple(size_t{op} - 0x84);
      break;
    case 't':
      push_items(Kind::kTuple, pop_mark());
      break;
    case 'N':
    case 0x88:
    case 0x89:  // None, True, False
      push(Kind::kOther);
      break;
    case 'U':
    case 'C':
    case 0x8c:  // texts and bytes of up to 255
      text(1);
      break;
    case 'T':
    case 'B':
    case 'X':
      text(4);
      break;
    default:
      other_pickle(fmt::format("operation 0x{:02x}", op));
  }
  return true;
}

}  // namespace

std::vector<std::vector<int64_t>> read_pickled_lists(std::string_view pickle) {
  return PickleReader(pickle).run();
}

}  // namespace berth::io
