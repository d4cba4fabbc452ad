// Frames and messages survive encoding; damaged ones are refused.

#include <gtest/gtest.h>

#include <cstring>

#include "berth/errors.h"
#include "rpc/control.h"
#include "rpc/message_frame.h"
#include "tensor/string_tensor.h"

namespace berth::rpc {
namespace {

Frame full_frame() {
  Frame f{.type = FrameType::kGo,
          .generation = 4,
          .task = {"ps", 2},
          .id = 9,
          .code = 14,
          .step = 1234,
          .value = 0.5,
          .flag = true};
  f.name = "a name";
  f.text = std::string("\0text", 5);
  f.tasks = {{{"chief", 0}, "h:1", "host", "process", 77},
             {{"worker", 1}, "h:2", "", "", 78}};
  return f;
}

TEST(ControlFrames, AreReadAsTheyWereWritten) {
  EXPECT_EQ(parse_frame(encode(full_frame())), full_frame());
}

TEST(ControlFrames, ThatAreCutOrLongOrUnknownAreRefused) {
  const std::string bytes = encode(full_frame());
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_THROW(parse_frame(bytes.substr(0, n)), errors::DataLoss) << n;
  }
  EXPECT_THROW(parse_frame(bytes + "x"), errors::DataLoss);
  std::string unknown = bytes;
  unknown[0] = 99;
  EXPECT_THROW(parse_frame(unknown), errors::DataLoss);
}

TEST(ControlFrames, WithAHugeCountTakeNoMemory) {
  std::string bytes = encode(Frame{.type = FrameType::kGo});
  const uint32_t count = 0xffffffff;
  std::memcpy(bytes.data() + bytes.size() - 4, &count, 4);
  EXPECT_THROW(parse_frame(bytes), errors::DataLoss);
}

Tensor of_floats(std::vector<float>& values) {
  return wrap_memory(values.data(), Shape({2, 3}), float32, {});
}

TEST(MessageFrames, CarryTextAndTensors) {
  std::vector<float> values{1, 2, 3, 4, 5, 6};
  const std::vector<std::string> words{"a", "", "long word"};
  const Tensor text = make_strings(words, Shape({3}));
  const OutgoingMessage out =
      pack(MessageKind::kReply, 5, 3, {"hello", {of_floats(values), text}});
  const MessageHead head = parse_head(out.head.substr(0, kHeadBytes));
  EXPECT_EQ(head.kind, MessageKind::kReply);
  EXPECT_EQ(head.id, 5u);
  EXPECT_EQ(head.code, 3);
  EXPECT_EQ(out.head.substr(kHeadBytes + head.meta_bytes), "hello");
  const auto heads =
      parse_meta(out.head.substr(kHeadBytes, head.meta_bytes), head.tensors);
  ASSERT_EQ(heads.size(), 2u);
  EXPECT_EQ(heads[0].shape, Shape({2, 3}));
  EXPECT_EQ(heads[0].dtype, float32);
  ASSERT_EQ(out.parts.size(), 3u);
  EXPECT_EQ(out.parts[1].iov_base, values.data());  // not copied
  const std::string_view block(static_cast<char*>(out.parts[2].iov_base),
                               out.parts[2].iov_len);
  EXPECT_EQ(strings_of(strings_from(block, Shape({3}))), words);
}

TEST(MessageFrames, ThatCannotBeAreRefusedBeforeMemoryIsTaken) {
  std::vector<float> values(6);
  const OutgoingMessage out =
      pack(MessageKind::kRequest, 1, 0, {"", {of_floats(values)}});
  const std::string head = out.head.substr(0, kHeadBytes);
  const std::string meta = out.head.substr(kHeadBytes);
  for (const size_t at : {0u, 4u}) {  // the word, the kind
    std::string wrong = head;
    wrong[at] = '\x7f';
    EXPECT_THROW(parse_head(wrong), errors::DataLoss) << at;
  }
  for (const size_t at : {20u, 24u, 28u}) {  // tensors, meta, text: huge
    std::string wrong = head;
    wrong[at + 3] = '\x7f';
    EXPECT_THROW(parse_head(wrong), errors::DataLoss) << at;
  }
  for (size_t i = 0; i < meta.size(); ++i) {  // any larger number
    std::string wrong = meta;
    wrong[i] = static_cast<char>(wrong[i] + 32);
    EXPECT_THROW(parse_meta(wrong, 1), errors::DataLoss) << i;
    EXPECT_THROW(parse_meta(meta.substr(0, i), 1), errors::DataLoss) << i;
  }
  EXPECT_THROW(parse_meta(meta + meta, 1), errors::DataLoss);
}

TEST(MessageFrames, RefuseOffsetsOfStringsThatCannotBe) {
  const auto block = [](std::vector<uint64_t> offsets, const char* text) {
    return std::string(reinterpret_cast<const char*>(offsets.data()),
                       offsets.size() * 8) +
           text;
  };
  EXPECT_EQ(strings_of(strings_from(block({0, 1, 3}, "abc"), Shape({2}))),
            (std::vector<std::string>{"a", "bc"}));
  for (const auto& offsets : std::vector<std::vector<uint64_t>>{
           {1, 1, 3}, {0, 4, 3}, {0, 1, 2}, {0, 1, 1ull << 63}}) {
    EXPECT_THROW(strings_from(block(offsets, "abc"), Shape({2})),
                 errors::DataLoss);
  }
  EXPECT_THROW(strings_from("short", Shape({2})), errors::DataLoss);
}

TEST(MessageFrames, RefuseTensorsWithoutValues) {
  EXPECT_THROW(pack(MessageKind::kRequest, 1, 0, {"", {Tensor()}}),
               errors::InvalidArgument);
}

}  // namespace
}  // namespace berth::rpc
