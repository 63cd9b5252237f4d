//===- Corpus.cpp - the files that cases are made from ---------------------===//
#include "test/fuzz/Corpus.h"

#include "test/fuzz/Isolate.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace ogc::fuzz {

std::vector<std::string> readCorpus(const std::string &folder, const std::string &suffix) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == suffix)
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> contents;
  for (const auto &path : paths) {
    std::ifstream file(path, std::ios::binary);
    contents.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return contents;
}

void writeFile(const std::string &path, const std::string &bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush())
    fail("cannot write '" + path + "'");
}

} // namespace ogc::fuzz
