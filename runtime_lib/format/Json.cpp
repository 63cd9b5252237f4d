//===- Json.cpp - writes JSON ---------------------------------------------===//
#include "runtime_lib/format/Json.h"

#include <cmath>
#include <cstdio>

namespace ogc::format {

namespace {

/// Length of the valid UTF-8 sequence at the beginning of `text`, or 0.
size_t sequenceLength(std::string_view text) {
  auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  size_t length = at(0) < 0x80                    ? 1
                  : at(0) >= 0xC2 && at(0) < 0xE0 ? 2
                  : at(0) >= 0xE0 && at(0) < 0xF0 ? 3
                  : at(0) >= 0xF0 && at(0) < 0xF5 ? 4
                                                  : 0;
  if (length == 0 || length > text.size())
    return 0;
  for (size_t i = 1; i < length; ++i)
    if ((at(i) & 0xC0) != 0x80)
      return 0;
  return length;
}

} // namespace

std::string jsonString(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    size_t length = sequenceLength(text);
    unsigned char first = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      out += "\\ufffd";
      length = 1;
    } else if (first == '"' || first == '\\') {
      out += '\\';
      out += text[0];
    } else if (first < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(first));
      out += escaped;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out + "\"";
}

void JsonWriter::separate() {
  if (afterKey_) {
    afterKey_ = false;
    return;
  }
  if (hasElements_.empty())
    return;
  text_ += hasElements_.back() ? ",\n" : "\n";
  hasElements_.back() = true;
  text_.append(2 * hasElements_.size(), ' ');
}

JsonWriter &JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  hasElements_.push_back(false);
  return *this;
}

JsonWriter &JsonWriter::close(char bracket) {
  bool had = hasElements_.back();
  hasElements_.pop_back();
  if (had) {
    text_ += '\n';
    text_.append(2 * hasElements_.size(), ' ');
  }
  text_ += bracket;
  return *this;
}

JsonWriter &JsonWriter::key(std::string_view name) {
  separate();
  text_ += jsonString(name) + ": ";
  afterKey_ = true;
  return *this;
}

JsonWriter &JsonWriter::value(double number) {
  if (!std::isfinite(number))
    return raw("null"); // JSON has no such numbers
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", number);
  return raw(text);
}

JsonWriter &JsonWriter::raw(std::string_view text) {
  separate();
  text_ += text;
  return *this;
}

} // namespace ogc::format
