//===- Corpus.h - the files that cases are made from -----------------------===//
#ifndef OGC_TEST_FUZZ_CORPUS_H
#define OGC_TEST_FUZZ_CORPUS_H

#include <string>
#include <vector>

namespace ogc::fuzz {

/// The contents of all files of a folder with this suffix, in the order of their names.
std::vector<std::string> readCorpus(const std::string &folder, const std::string &suffix);

/// Writes a file; ends the process where that fails.
void writeFile(const std::string &path, const std::string &bytes);

} // namespace ogc::fuzz

#endif
