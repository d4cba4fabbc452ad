#include "data/pass_state.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "device/device_manager.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"

namespace berth::data {

namespace {

constexpr int kStateVersion = 1;
constexpr const char* kStateFormat = "berth.iterator";

using Json = nlohmann::json;

// Bytes as text that JSON can hold whatever they are.
std::string to_hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

bool printable(std::string_view bytes) {
  for (const char c : bytes) {
    if (c < ' ' || c > '~') return false;
  }
  return true;
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

Tensor bytes_tensor(const void* bytes, size_t size, DType dtype) {
  const auto n = static_cast<int64_t>(size / size_of(dtype));
  Tensor t = make_tensor(host_device(), dtype, Shape{n});
  if (size > 0) std::memcpy(t.impl()->data(), bytes, size);
  return t;
}

Json shape_json(const Shape& shape) {
  Json list = Json::array();
  for (int i = 0; i < shape.rank(); ++i) list.push_back(shape[i]);
  return list;
}

[[noreturn]] void differs(const std::string& saved, const Node& node) {
  throw errors::InvalidArgument(fmt::format(
      "Iterator::restore: the saved state has {} where this pipeline has {}; "
      "expected the pipeline that was saved, transform by transform",
      saved, node.where()));
}

// A node and those before it, the last transform first.
void walk(const Node& node, const std::function<void(const Node&)>& visit) {
  visit(node);
  for (const Node* input : node.inputs()) walk(*input, visit);
}

}  // namespace

PassWriter::PassWriter() : items_(std::make_unique<Json>(Json::array())) {}
PassWriter::~PassWriter() = default;

void PassWriter::begin(const Node& node) {
  items_->push_back({{"begin", node.what()}, {"at", node.where()}});
}

void PassWriter::put(int64_t value) { items_->push_back(value); }

void PassWriter::put(double value) {
  items_->push_back({{"double", std::bit_cast<int64_t>(value)}});
}

void PassWriter::put(std::string_view bytes) {
  if (printable(bytes)) {
    items_->push_back({{"text", std::string(bytes)}});
  } else {
    items_->push_back({{"hex", to_hex(bytes)}});
  }
}

void PassWriter::add_tensor(Tensor tensor) {
  tensors_.push_back(std::move(tensor));
}

// Text goes as its offsets and bytes: what files of tensors can hold.
void PassWriter::put(const Tensor& tensor) {
  Json item = {{"tensor", tensors_.size()}};
  if (tensor.dtype() == string_) {
    const auto strings = strings_of(tensor);
    std::vector<int64_t> ends;
    std::string bytes;
    for (const std::string& s : strings) {
      bytes += s;
      ends.push_back(static_cast<int64_t>(bytes.size()));
    }
    item["strings"] = shape_json(tensor.shape());
    add_tensor(bytes_tensor(ends.data(), ends.size() * sizeof(int64_t), int64));
    add_tensor(bytes_tensor(bytes.data(), bytes.size(), uint8));
    items_->push_back(std::move(item));
    return;
  }
  Device& host = host_device();
  Device& device = *tensor.impl()->block->device;
  if (&device == &host) {
    add_tensor(tensor);
  } else {
    item["device"] = device.name().str();
    Tensor copy = berth::copy_to_device(tensor, host);
    synchronize(copy.impl()->block->ready);
    add_tensor(std::move(copy));
  }
  items_->push_back(std::move(item));
}

void PassWriter::put(const Tensors& element) {
  put(static_cast<int64_t>(element.size()));
  for (const Tensor& t : element) put(t);
}

void PassWriter::put(const std::vector<int64_t>& numbers) {
  put(bytes_tensor(numbers.data(), numbers.size() * sizeof(int64_t), int64));
}

void PassWriter::put(const std::optional<PassError>& failure) {
  put(failure.has_value());
  if (!failure) return;
  put(static_cast<int>(failure->code));
  put(std::string_view(failure->message));
}

size_t PassWriter::memory_place() {
  items_->push_back(nullptr);
  return items_->size() - 1;
}

void PassWriter::fill_memory(size_t at, const Node& node) {
  Json list = Json::array();
  walk(node, [&](const Node& n) {
    const NodeMemory memory = n.memory();
    list.push_back({n.what(), memory.passes, memory.seed});
  });
  (*items_)[at] = {{"memory", std::move(list)}};
}

void PassWriter::cannot(const Node& node, const std::string& why) {
  throw errors::FailedPrecondition(fmt::format(
      "{}: cannot save where the pass stands: {}", node.where(), why));
}

IteratorState PassWriter::finish() {
  const Json all = {{"format", kStateFormat},
                    {"version", kStateVersion},
                    {"items", std::move(*items_)}};
  return {all.dump(), std::move(tensors_)};
}

PassReader::PassReader(const IteratorState& state) : state_(state) {
  Json all = Json::parse(state.text, nullptr, /*allow_exceptions=*/false);
  const auto is = [&](const char* key, Json::value_t type) {
    return all.is_object() && all.contains(key) && all[key].type() == type;
  };
  if (!is("format", Json::value_t::string) || all["format"] != kStateFormat ||
      !is("version", Json::value_t::number_unsigned) ||
      !is("items", Json::value_t::array)) {
    throw errors::InvalidArgument(fmt::format(
        "Iterator::restore: the text is no saved state of an iterator: it "
        "begins with '{}'; expected what Iterator::save() returned",
        state.text.substr(0, 40)));
  }
  if (all["version"] > kStateVersion) {
    throw errors::InvalidArgument(fmt::format(
        "Iterator::restore: the saved state has version {}; this Berth reads "
        "up to {}: restore it with the Berth that wrote it, or a newer one",
        all["version"].dump(), kStateVersion));
  }
  items_ = std::make_unique<Json>(std::move(all["items"]));
}

PassReader::~PassReader() = default;

void PassReader::damaged(const std::string& what) const {
  throw errors::DataLoss(fmt::format(
      "the saved state of {} is damaged: {}; use another checkpoint", where_,
      what));
}

const Json& PassReader::take(const char* expected) {
  if (at_ == items_->size()) {
    damaged(fmt::format("it ends where {} was expected", expected));
  }
  return (*items_)[at_++];
}

void PassReader::begin(const Node& node) {
  const Json& item = take("a transform");
  const auto found = item.is_object() ? item.find("begin") : item.end();
  if (!item.is_object() || found == item.end() || !found->is_string()) {
    damaged("no transform begins where " + node.where() + " was expected");
  }
  if (found->get<std::string>() != node.what()) {
    const auto at = item.find("at");
    differs(at != item.end() && at->is_string() ? at->get<std::string>()
                                                : found->get<std::string>(),
            node);
  }
  where_ = node.where();
}

int64_t PassReader::number(int64_t low, int64_t high) {
  const Json& item = take("a number");
  if (!item.is_number_integer() ||
      (item.is_number_unsigned() &&
       item.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))) {
    damaged("no number where one was expected");
  }
  const int64_t value = item.get<int64_t>();
  if (value < low || value > high) {
    damaged(fmt::format("{} is not a number from {} to {}", value, low, high));
  }
  return value;
}

double PassReader::real() {
  const Json& item = take("a number");
  const auto found = item.is_object() ? item.find("double") : item.end();
  if (!item.is_object() || found == item.end() || !found->is_number_integer()) {
    damaged("no number where one was expected");
  }
  return std::bit_cast<double>(found->get<int64_t>());
}

std::string PassReader::text() {
  const Json& item = take("a text");
  if (item.is_object() && item.contains("text") && item["text"].is_string()) {
    return item["text"].get<std::string>();
  }
  if (!item.is_object() || !item.contains("hex") || !item["hex"].is_string()) {
    damaged("no text where one was expected");
  }
  const std::string hex = item["hex"].get<std::string>();
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    const int high = digit_of(hex[i]), low = digit_of(hex[i + 1]);
    if (high < 0 || low < 0) damaged("a text that is no text");
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

const Tensor& PassReader::stored(const Json& item) {
  if (!item.is_object() || !item.contains("tensor") ||
      !item["tensor"].is_number_unsigned()) {
    damaged("no tensor where one was expected");
  }
  const uint64_t index = item["tensor"].get<uint64_t>();
  if (index >= state_.tensors.size() || !state_.tensors[index].defined() ||
      state_.tensors[index].is_symbolic()) {
    damaged(fmt::format("tensor {} is missing; {} came with it", index,
                        state_.tensors.size()));
  }
  return state_.tensors[index];
}

namespace {

// The strings of a saved tensor of text; empty shape optional: damaged.
std::optional<Tensor> strings_from(const Json& dims, const Tensor& ends,
                                   const Tensor& bytes) {
  if (!dims.is_array() || ends.dtype() != int64 || ends.rank() != 1 ||
      bytes.dtype() != uint8 || bytes.rank() != 1) {
    return std::nullopt;
  }
  if (dims.size() > kMaxRank) return std::nullopt;
  Shape shape;
  for (const Json& d : dims) {
    if (!d.is_number_unsigned()) return std::nullopt;
    shape.insert(shape.rank(), d.get<int64_t>());
  }
  int64_t count = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] < 0 || __builtin_mul_overflow(count, shape[i], &count)) {
      return std::nullopt;
    }
  }
  const std::vector<int64_t> at = ends.to_vector<int64_t>();
  const std::vector<uint8_t> all = bytes.to_vector<uint8_t>();
  if (count != static_cast<int64_t>(at.size())) return std::nullopt;
  std::vector<std::string> out;
  int64_t begin = 0;
  for (const int64_t end : at) {
    if (end < begin || end > static_cast<int64_t>(all.size())) {
      return std::nullopt;
    }
    out.emplace_back(all.begin() + begin, all.begin() + end);
    begin = end;
  }
  return make_strings(out, shape);
}

}  // namespace

Tensor PassReader::tensor() {
  const Json& item = take("a tensor");
  const Tensor& first = stored(item);
  if (item.contains("strings")) {
    Json second = item;
    second["tensor"] = item["tensor"].get<uint64_t>() + 1;
    const auto strings = strings_from(item["strings"], first, stored(second));
    if (!strings) damaged("a tensor of text that is no text");
    return *strings;
  }
  const auto device = item.find("device");
  if (device == item.end() || !device->is_string()) return first;
  try {
    return berth::copy_to_device(
        first, DeviceManager::get().lookup(
                   DeviceName::parse(device->get<std::string>())));
  } catch (const errors::InvalidArgument&) {
    return first;  // saved where there were other devices
  }
}

Tensors PassReader::element() {
  const int64_t n = number(0, static_cast<int64_t>(state_.tensors.size()));
  Tensors out;
  for (int64_t i = 0; i < n; ++i) out.push_back(tensor());
  return out;
}

std::vector<int64_t> PassReader::numbers() {
  const Tensor t = tensor();
  if (t.dtype() != int64 || t.rank() != 1) {
    damaged(
        fmt::format("{} where int64 numbers were expected", t.spec().str()));
  }
  return t.to_vector<int64_t>();
}

std::optional<PassError> PassReader::failure() {
  if (!flag()) return std::nullopt;
  const auto code = static_cast<errors::Code>(number(0, 16));
  return PassError{code, text()};
}

void PassReader::memory(const Node& node) {
  const Json& item = take("numbers of passes");
  const auto found = item.is_object() ? item.find("memory") : item.end();
  if (!item.is_object() || found == item.end() || !found->is_array()) {
    damaged("no numbers of passes where they were expected");
  }
  size_t i = 0;
  walk(node, [&](const Node& n) {
    if (i >= found->size()) differs("no transform", n);
    const Json& one = (*found)[i++];
    if (!one.is_array() || one.size() != 3 || !one[0].is_string() ||
        !one[1].is_number_integer() || !one[2].is_number_integer()) {
      damaged("no number of passes where one was expected");
    }
    if (one[0].get<std::string>() != n.what()) {
      differs(one[0].get<std::string>(), n);
    }
    n.set_memory({one[1].get<int64_t>(), one[2].get<int64_t>()});
  });
}

void PassReader::finish() {
  if (at_ != items_->size()) {
    damaged(fmt::format("{} of its {} values were not read",
                        items_->size() - at_, items_->size()));
  }
}

void save_values(PassWriter& w, const std::vector<Tensors>& values) {
  w.put(static_cast<int64_t>(values.size()));
  for (const Tensors& v : values) w.put(v);
}

void save_values(PassWriter& w, const std::vector<int64_t>& values) {
  w.put(values);
}

void restore_values(PassReader& r, const Node&, std::vector<Tensors>* values) {
  values->clear();
  const int64_t n = r.number(0);
  for (int64_t i = 0; i < n; ++i) values->push_back(r.element());
}

void restore_values(PassReader& r, const Node& node,
                    std::vector<int64_t>* values) {
  *values = r.numbers();
  for (const int64_t index : *values) {
    if (index < 0 || !node.rows()->holds(index)) {
      r.damaged(fmt::format("it holds row {}, the dataset has {}", index,
                            node.rows()->count()));
    }
  }
}

template <class T>
void PassStream<T>::save(PassWriter& w) {
  PassState s(w);
  state(s);
}
template <class T>
void PassStream<T>::restore(PassReader& r) {
  PassState s(r);
  state(s);
}
template class PassStream<Tensors>;
template class PassStream<int64_t>;

}  // namespace berth::data
