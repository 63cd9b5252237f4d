//===- Npy.cpp - numpy's file format --------------------------------------===//
#include "tools/common/Npy.h"

#include "runtime_lib/format/MappedFile.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <unistd.h>

namespace ogc::tools {

using format::DataType;

namespace {

Status badFile(const std::string &path, const std::string &what) { return Status(Code::DataLoss, "'" + path + "': " + what); }

/// The text after `'key':` in the header's dictionary.
std::optional<std::string_view> findField(std::string_view header, std::string_view key) {
  size_t at = header.find("'" + std::string(key) + "'");
  if (at == std::string_view::npos)
    return std::nullopt;
  at = header.find(':', at);
  if (at == std::string_view::npos)
    return std::nullopt;
  at = header.find_first_not_of(' ', at + 1);
  if (at == std::string_view::npos)
    return std::nullopt;
  return header.substr(at);
}

/// "(2, 3)" or "(4,)" or "()".
bool parseShape(std::string_view text, std::vector<int64_t> &shape) {
  if (!text.starts_with('('))
    return false;
  text.remove_prefix(1);
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(", "), text.size()));
    if (text.starts_with(')'))
      return true;
    int64_t dim = 0;
    auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), dim);
    if (error != std::errc() || dim < 0)
      return false;
    shape.push_back(dim);
    text.remove_prefix(static_cast<size_t>(rest - text.data()));
  }
}

/// "'<f4'" to "f4". Only little-endian elements and those of one byte.
std::optional<std::string> parseDescr(std::string_view text) {
  if (text.size() < 5 || text[0] != '\'')
    return std::nullopt;
  size_t end = text.find('\'', 1);
  std::string_view descr = end == std::string_view::npos ? std::string_view() : text.substr(1, end - 1);
  if (descr.size() < 3 || (descr[0] != '<' && descr[0] != '|' && !(descr[0] == '=')))
    return std::nullopt;
  return std::string(descr.substr(1));
}

Result<Array> parse(const std::string &path, std::span<const std::byte> bytes) {
  const char *data = reinterpret_cast<const char *>(bytes.data());
  if (bytes.size() < 12 || std::memcmp(data, "\x93NUMPY", 6) != 0)
    return badFile(path, "not a .npy file");
  size_t prefix = data[6] == 1 ? 10 : 12;
  uint32_t headerBytes = 0;
  std::memcpy(&headerBytes, data + 8, prefix - 8);
  if (data[6] < 1 || data[6] > 3 || headerBytes > bytes.size() - prefix)
    return badFile(path, "has a damaged header");
  std::string_view header(data + prefix, headerBytes);
  auto descrText = findField(header, "descr"), orderText = findField(header, "fortran_order"),
       shapeText = findField(header, "shape");
  Array array;
  if (!descrText || !orderText || !shapeText || !parseShape(*shapeText, array.shape))
    return badFile(path, "has a damaged header");
  std::optional<std::string> descr = parseDescr(*descrText);
  if (!descr)
    return badFile(path, "holds elements that are no little-endian numbers");
  array.descr = *descr;
  if (!orderText->starts_with("False") && array.shape.size() > 1)
    return badFile(path, "is in Fortran order, expected C order");
  uint64_t size = 0;
  auto [rest, error] = std::from_chars(descr->data() + 1, descr->data() + descr->size(), size);
  if (error != std::errc() || rest != descr->data() + descr->size())
    return badFile(path, "holds elements of an unknown kind");
  for (int64_t dim : array.shape)
    if (__builtin_mul_overflow(size, static_cast<uint64_t>(dim), &size))
      return badFile(path, "has a damaged header");
  std::span<const std::byte> content = bytes.subspan(prefix + headerBytes);
  if (content.size() != size)
    return badFile(path, "holds " + std::to_string(content.size()) + " bytes, expected " + std::to_string(size));
  array.data.assign(content.begin(), content.end());
  return array;
}

} // namespace

Result<Array> readNpy(const std::string &path) {
  Result<std::unique_ptr<format::MappedFile>> file = format::MappedFile::open(path);
  if (!file.ok())
    return file.status();
  return parse(path, file.value()->bytes());
}

Status writeNpy(const std::string &path, const std::string &descr, const std::vector<int64_t> &shape, const void *data,
                size_t bytes) {
  std::string dims;
  for (int64_t dim : shape)
    dims += std::to_string(dim) + ", ";
  if (shape.size() > 1)
    dims.resize(dims.size() - 2);
  else if (shape.size() == 1)
    dims.resize(dims.size() - 1);
  bool oneByte = descr.back() == '1';
  std::string header =
      "{'descr': '" + std::string(oneByte ? "|" : "<") + descr + "', 'fortran_order': False, 'shape': (" + dims + "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(header.size() & 0xff);
  start += static_cast<char>(header.size() >> 8);
  start += header;

  std::string temporary = path + ".tmp";
  std::FILE *file = std::fopen(temporary.c_str(), "wb");
  if (!file)
    return Status(Code::NotFound, "cannot write '" + path + "': " + std::strerror(errno));
  bool written = std::fwrite(start.data(), 1, start.size(), file) == start.size() &&
                 (bytes == 0 || std::fwrite(data, 1, bytes, file) == bytes);
  written = std::fclose(file) == 0 && written;
  if (written && std::rename(temporary.c_str(), path.c_str()) == 0)
    return Status();
  Status status(Code::NotFound, "cannot write '" + path + "': " + std::strerror(errno));
  unlink(temporary.c_str());
  return status;
}

const char *npyDescr(DataType type) {
  constexpr const char *names[] = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "u2", "f4", "f8",
                                   "u1", "u1", "u1", "u1", "u1", "u1", "u1", "u1", "i1", "u1", "i1", "u1"};
  static_assert(std::size(names) == static_cast<size_t>(DataType::MAX) + 1);
  return names[static_cast<size_t>(type)];
}

bool matchesType(const std::string &descr, DataType type) {
  bool hasNoNumpyType = type == DataType::BF16 || type >= DataType::F8E4M3FN;
  if (descr == "f1") // ml_dtypes says so of this one
    return type == DataType::F8E5M2;
  return descr == npyDescr(type) || (hasNoNumpyType && descr == "V" + std::to_string(format::elementBytes(type)));
}

} // namespace ogc::tools
