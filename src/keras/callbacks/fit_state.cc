// Where a fit stands, as tensors of a checkpoint.

#include "keras/callbacks/fit_state.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "berth/errors.h"

namespace berth::keras {

namespace {

using nlohmann::json;

// As text: JSON has no NaN and no infinity.
std::string number_text(double value) { return fmt::format("{}", value); }
double number_in(const json& text) {
  return std::strtod(text.get<std::string>().c_str(), nullptr);
}

json number_texts(const std::vector<double>& values) {
  json list = json::array();
  for (const double v : values) list.push_back(number_text(v));
  return list;
}
std::vector<double> numbers_in(const json& list) {
  std::vector<double> values;
  for (const json& v : list) values.push_back(number_in(v));
  return values;
}

bool keeps_state(const Callback& c) {
  return c.object != nullptr || c.get_state != nullptr;
}

std::string callback_name(const Callback& c) {
  return c.object ? c.object->name() : "callback";
}

CallbackState callback_state(const Callback& c) {
  CallbackState s = c.object ? c.object->get_state() : CallbackState();
  if (c.get_state) {
    CallbackState more = c.get_state();
    s.numbers.merge(more.numbers);
    s.texts.merge(more.texts);
    s.tensors.merge(more.tensors);
  }
  return s;
}

}  // namespace

train::ObjectState FitState::state() const {
  train::ObjectState out;
  json j = {{"epoch", position_.epoch}, {"batch", position_.batch}};
  if (!data_part_.empty()) j["data_part"] = data_part_;
  j["history"] = {{"epoch", history_.epoch},
                  {"seconds", number_texts(history_.seconds)},
                  {"values", json::object()}};
  for (const auto& [name, values] : history_.history) {
    j["history"]["values"][name] = number_texts(values);
  }
  if (pass_) {
    j["pass"] = {{"text", pass_->text}, {"tensors", pass_->tensors.size()}};
    for (size_t i = 0; i < pass_->tensors.size(); ++i) {
      out.tensors[fmt::format("pass/{}", i)] = pass_->tensors[i];
    }
  }
  j["callbacks"] = json::array();
  for (size_t i = 0; i < callbacks_.size(); ++i) {
    const CallbackState& s = callbacks_[i].state;
    json c = {{"name", callbacks_[i].name},
              {"numbers", json::object()},
              {"texts", s.texts}};
    for (const auto& [name, v] : s.numbers) c["numbers"][name] = number_text(v);
    for (const auto& [name, t] : s.tensors) {
      out.tensors[fmt::format("callback/{}/{}", i, name)] = t;
    }
    j["callbacks"].push_back(std::move(c));
  }
  out.text = j.dump(-1, ' ', false, json::error_handler_t::replace);
  return out;
}

void FitState::set_state(const train::ObjectState& state) {
  try {
    const json j = json::parse(state.text);
    position_ = {j.at("epoch").get<int>(), j.at("batch").get<int64_t>()};
    data_part_ = j.value("data_part", "");
    history_ = {};
    const json& h = j.at("history");
    h.at("epoch").get_to(history_.epoch);
    history_.seconds = numbers_in(h.at("seconds"));
    for (const auto& [name, values] : h.at("values").items()) {
      history_.history[name] = numbers_in(values);
    }
    pass_.reset();
    if (j.contains("pass")) {
      pass_.emplace();
      pass_->text = j.at("pass").at("text").get<std::string>();
      const auto n = j.at("pass").at("tensors").get<size_t>();
      for (size_t i = 0; i < n && i < state.tensors.size(); ++i) {
        pass_->tensors.push_back(state.tensors.at(fmt::format("pass/{}", i)));
      }
    }
    callbacks_.clear();
    for (const json& c : j.at("callbacks")) {
      OfCallback one{c.at("name").get<std::string>(), {}};
      for (const auto& [name, v] : c.at("numbers").items()) {
        one.state.numbers[name] = number_in(v);
      }
      c.at("texts").get_to(one.state.texts);
      const std::string prefix = fmt::format("callback/{}/", callbacks_.size());
      for (const auto& [name, t] : state.tensors) {
        if (!name.starts_with(prefix)) continue;
        one.state.tensors[name.substr(prefix.size())] = t;
      }
      callbacks_.push_back(std::move(one));
    }
  } catch (const std::exception& e) {
    throw errors::DataLoss(fmt::format(
        "the position of fit in the checkpoint is damaged ({}); take an "
        "earlier checkpoint",
        e.what()));
  }
}

void FitState::read(FitLoop& loop) {
  position_ = loop.position();
  data_part_ = loop.data_part();
  history_ = loop.history();
  pass_.reset();
  data::Iterator* pass = loop.iterator();
  const bool goes_on = position_.batch > 0 || loop.counts_steps();
  // One that ended knows the seeds of the next.
  if (pass != nullptr && (goes_on || pass->status().ended)) {
    pass_ = pass->save();
  }
  callbacks_.clear();
  for (const Callback& c : loop.callbacks()) {
    if (keeps_state(c))
      callbacks_.push_back({callback_name(c), callback_state(c)});
  }
}

void FitState::read_anew(const std::string& part) {
  if (data_part_.empty() || part.empty()) return;
  pass_.reset();
  const auto among = [](const std::string& s) { return s.substr(s.find(' ')); };
  if (among(data_part_) == among(part)) data_part_ = part;
}

void FitState::apply(FitLoop& loop, const std::string& call) const {
  FitLoop::Restore restore;
  if (pass_) {
    restore = [pass = *pass_](data::Iterator& it) { it.restore(pass); };
  }
  FitPosition position = position_;
  if (data_part_ != loop.data_part()) {
    // Dealt out anew: nobody knows what of the epoch was seen.
    position.batch = 0;
    restore = nullptr;
  }
  loop.start_at(position, history_, std::move(restore));
  size_t at = 0;
  for (const Callback& c : loop.callbacks()) {
    if (!keeps_state(c)) continue;
    if (at == callbacks_.size() || callbacks_[at].name != callback_name(c)) {
      throw errors::InvalidArgument(fmt::format(
          "{}: callback {} is \"{}\" and was \"{}\" in the fit that was saved; "
          "expected the same callbacks in the same order, or another folder",
          call, at, callback_name(c),
          at < callbacks_.size() ? callbacks_[at].name : "missing"));
    }
    const CallbackState& s = callbacks_[at++].state;
    if (c.object) c.object->set_state(s);
    if (c.set_state) c.set_state(s);
  }
  if (at == callbacks_.size()) return;
  throw errors::InvalidArgument(fmt::format(
      "{}: the fit that was saved had a callback \"{}\" as well; expected the "
      "same callbacks in the same order, or another folder",
      call, callbacks_[at].name));
}

}  // namespace berth::keras
