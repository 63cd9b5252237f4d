//===- Json.h - writes JSON -----------------------------------------------===//
#ifndef OGC_FORMAT_JSON_H
#define OGC_FORMAT_JSON_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ogc::format {

/// `text` as a JSON string with its quotes. Bytes that are no UTF-8 become U+FFFD.
std::string jsonString(std::string_view text);

/// Builds indented JSON. Calls must nest properly; keys are given before values inside objects.
class JsonWriter {
public:
  JsonWriter &beginObject() { return open('{'); }
  JsonWriter &endObject() { return close('}'); }
  JsonWriter &beginArray() { return open('['); }
  JsonWriter &endArray() { return close(']'); }
  JsonWriter &key(std::string_view name);
  JsonWriter &value(std::string_view text) { return raw(jsonString(text)); }
  JsonWriter &value(const char *text) { return value(std::string_view(text)); }
  JsonWriter &value(double number);
  JsonWriter &value(uint64_t number) { return raw(std::to_string(number)); }
  JsonWriter &value(int64_t number) { return raw(std::to_string(number)); }
  JsonWriter &value(uint32_t number) { return raw(std::to_string(number)); }
  JsonWriter &value(int number) { return raw(std::to_string(number)); }
  JsonWriter &value(bool flag) { return raw(flag ? "true" : "false"); }
  template <typename T> JsonWriter &field(std::string_view name, const T &content) { return key(name).value(content); }

  const std::string &text() const { return text_; }

private:
  JsonWriter &open(char bracket);
  JsonWriter &close(char bracket);
  JsonWriter &raw(std::string_view text);
  void separate();

  std::string text_;
  std::vector<bool> hasElements_;
  bool afterKey_ = false;
};

} // namespace ogc::format

#endif
