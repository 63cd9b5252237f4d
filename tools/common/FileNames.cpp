//===- FileNames.cpp - names of tensors as names of files -----------------===//
#include "tools/common/FileNames.h"

#include <algorithm>
#include <set>

namespace ogc::tools {

namespace {

bool isPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

} // namespace

std::vector<std::string> safeFileNames(const std::vector<std::string> &names) {
  std::vector<std::string> files;
  std::set<std::string> taken;
  for (const std::string &name : names) {
    std::string base = name.substr(0, 200);
    std::replace_if(base.begin(), base.end(), [](char c) { return !isPlain(c); }, '_');
    if (base.empty() || base[0] == '.')
      base = "_" + base.substr(std::min<size_t>(1, base.size()));
    std::string file = base;
    for (int i = 2; !taken.insert(lower(file)).second; ++i)
      file = base + "_" + std::to_string(i);
    files.push_back(file);
  }
  return files;
}

} // namespace ogc::tools
