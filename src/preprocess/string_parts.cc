// Splitting, joining and patterns.

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <memory>

#include "berth/errors.h"
#include "berth/strings.h"
#include "data/row_source.h"
#include "io/text_input.h"
#include "preprocess/text_util.h"
#include "tensor/tensor_impl.h"

namespace berth::strings {

namespace {

using io::named_call;
using io::texts_of;

constexpr std::string_view kBlanks = " \t\n\v\f\r";
constexpr int64_t kMostPattern = 1 << 20;

// The parts of all texts.
class Parts {
 public:
  void end_row() { splits_.push_back(all_.count()); }
  TextMaker& row() { return all_; }
  Ragged ragged() const {
    return {all_.tensor({all_.count()}), int64_vector(splits_)};
  }

 private:
  TextMaker all_;
  std::vector<int64_t> splits_{0};
};

void split_blanks(std::string_view s, int64_t most, TextMaker* to) {
  for (;;) {
    const size_t begin = s.find_first_not_of(kBlanks);
    if (begin == s.npos) return;
    s.remove_prefix(begin);
    const size_t end = most-- == 0 ? s.npos : s.find_first_of(kBlanks);
    if (end == s.npos) {
      // What is left keeps the white space within it, as in Python.
      return to->add(s);
    }
    to->add(s.substr(0, end));
    s.remove_prefix(end);
  }
}

void split_at(std::string_view s, std::string_view sep, int64_t most,
              TextMaker* to) {
  for (;;) {
    const size_t end = most-- == 0 ? s.npos : s.find(sep);
    to->add(s.substr(0, end));
    if (end == s.npos) return;
    s.remove_prefix(end + sep.size());
  }
}

template <class F>
Ragged each_split(const Tensor& input, const char* function, Site site,
                  F&& fn) {
  const auto texts = texts_of(input, function, site);
  return named_call(function, site, [&] {
    if (input.rank() > 1) {
      throw errors::InvalidArgument(fmt::format(
          "the input is {}; expected a scalar or [n]", input.spec().str()));
    }
    Parts parts;
    for (const std::string_view s : texts) {
      fn(s, &parts.row());
      parts.end_row();
    }
    return parts.ragged();
  });
}

std::unique_ptr<RE2> pattern_of(const std::string& pattern) {
  if (static_cast<int64_t>(pattern.size()) > kMostPattern) {
    throw errors::InvalidArgument("a pattern of more than 2^20 bytes");
  }
  auto re = std::make_unique<RE2>(pattern, RE2::Quiet);
  if (!re->ok()) {
    throw errors::InvalidArgument(fmt::format(
        "the pattern \"{}\" is none of RE2's: {}", pattern, re->error()));
  }
  return re;
}

}  // namespace

Tensor Ragged::to_tensor(const std::string& default_value, Site site) const {
  const auto texts = texts_of(values, "to_tensor", site);
  const auto splits = row_splits.to_vector<int64_t>(site);
  int64_t longest = 0;
  for (size_t i = 1; i < splits.size(); ++i) {
    longest = std::max(longest, splits[i] - splits[i - 1]);
  }
  TextMaker all;
  for (size_t i = 1; i < splits.size(); ++i) {
    for (int64_t k = 0; k < longest; ++k) {
      const int64_t at = splits[i - 1] + k;
      all.add(at < splits[i] ? texts[at] : std::string_view(default_value));
    }
  }
  return all.tensor({static_cast<int64_t>(splits.size()) - 1, longest});
}

Ragged split(const Tensor& input, const std::string& sep, int64_t maxsplit,
             Site site) {
  const int64_t most = maxsplit < 0 ? -1 : maxsplit;
  return each_split(
      input, "split", site, [&](std::string_view s, TextMaker* to) {
        sep.empty() ? split_blanks(s, most, to) : split_at(s, sep, most, to);
      });
}

Ragged bytes_split(const Tensor& input, Site site) {
  return each_split(input, "bytes_split", site,
                    [](std::string_view s, TextMaker* to) {
                      for (size_t i = 0; i < s.size(); ++i) {
                        to->add(s.substr(i, 1));
                      }
                    });
}

Ragged unicode_split(const Tensor& input, Site site) {
  return each_split(input, "unicode_split", site,
                    [](std::string_view s, TextMaker* to) {
                      while (!s.empty()) {
                        bool valid;
                        const size_t n = code_point(s, &valid);
                        to->add(valid ? s.substr(0, n) : "\xef\xbf\xbd");
                        s.remove_prefix(n);
                      }
                    });
}

Tensor join(const Tensors& inputs, const std::string& separator, Site site) {
  return named_call("join", site, [&] {
    if (inputs.empty()) {
      throw errors::InvalidArgument("no inputs; expected at least one");
    }
    std::vector<std::vector<std::string_view>> all;
    const Tensor* shaped = &inputs[0];
    for (const Tensor& t : inputs) {
      all.push_back(texts_of(t, "input", Site{}));
      if (t.rank() == 0) continue;
      if (shaped->rank() != 0 && shaped->shape() != t.shape()) {
        throw errors::InvalidArgument(
            fmt::format("inputs of shapes {} and {}; expected equal ones, or "
                        "scalars",
                        shaped->shape().str(), t.shape().str()));
      }
      shaped = &t;
    }
    TextMaker out;
    const auto n = static_cast<size_t>(shaped->num_elements());
    for (size_t i = 0; i < n; ++i) {
      std::string one;
      for (size_t k = 0; k < all.size(); ++k) {
        if (k > 0) one += separator;
        one += inputs[k].rank() == 0 ? all[k][0] : all[k][i];
      }
      out.add(one);
    }
    return out.tensor(shaped->shape());
  });
}

Tensor reduce_join(const Tensor& inputs, const std::string& separator,
                   Site site) {
  const auto texts = texts_of(inputs, "reduce_join", site);
  std::string all;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) all += separator;
    all += texts[i];
  }
  return io::text_tensor(all);
}

Tensor reduce_join(const Tensor& inputs, int64_t axis,
                   const std::string& separator, Site site) {
  const auto texts = texts_of(inputs, "reduce_join", site);
  return named_call("reduce_join", site, [&] {
    const int rank = inputs.rank();
    const int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank) {
      throw errors::InvalidArgument(
          fmt::format("axis is {} of {}; expected one of its axes", axis,
                      inputs.spec().str()));
    }
    int64_t outer = 1, inner = 1;
    Shape shape = inputs.shape();
    const int64_t n = shape[static_cast<int>(at)];
    for (int i = 0; i < at; ++i) outer *= shape[i];
    for (int i = static_cast<int>(at) + 1; i < rank; ++i) inner *= shape[i];
    shape.erase(static_cast<int>(at));
    TextMaker out;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        std::string one;
        for (int64_t k = 0; k < n; ++k) {
          if (k > 0) one += separator;
          one += texts[static_cast<size_t>((o * n + k) * inner + i)];
        }
        out.add(one);
      }
    }
    return out.tensor(shape);
  });
}

Tensor regex_replace(const Tensor& input, const std::string& pattern,
                     const std::string& rewrite, bool replace_global,
                     Site site) {
  const auto texts = texts_of(input, "regex_replace", site);
  return named_call("regex_replace", site, [&] {
    const auto re = pattern_of(pattern);
    std::string problem;
    if (!re->CheckRewriteString(rewrite, &problem)) {
      throw errors::InvalidArgument(
          fmt::format("the rewrite \"{}\" does not fit the pattern \"{}\": {}",
                      rewrite, pattern, problem));
    }
    TextMaker out;
    for (const std::string_view s : texts) {
      std::string one(s);
      replace_global ? static_cast<void>(RE2::GlobalReplace(&one, *re, rewrite))
                     : static_cast<void>(RE2::Replace(&one, *re, rewrite));
      out.add(one);
    }
    return out.tensor(input.shape());
  });
}

Tensor regex_full_match(const Tensor& input, const std::string& pattern,
                        Site site) {
  const auto texts = texts_of(input, "regex_full_match", site);
  return named_call("regex_full_match", site, [&] {
    const auto re = pattern_of(pattern);
    Tensor t = data::make_batch(bool_, input.shape());
    auto* to = reinterpret_cast<bool*>(t.impl()->data());
    for (const std::string_view s : texts) {
      *to++ = RE2::FullMatch(re2::StringPiece(s.data(), s.size()), *re);
    }
    return t;
  });
}

}  // namespace berth::strings
