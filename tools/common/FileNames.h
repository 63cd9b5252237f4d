//===- FileNames.h - names of tensors as names of files -------------------===//
#ifndef OGC_TOOLS_COMMON_FILE_NAMES_H
#define OGC_TOOLS_COMMON_FILE_NAMES_H

#include <string>
#include <vector>

namespace ogc::tools {

/// A file name for each tensor name: ASCII letters, digits, '.', '_' and '-' stay, anything else becomes '_'; a leading '.' too;
/// cut at 200 characters; "_2", "_3", … make equal ones different (also where only case differs).
std::vector<std::string> safeFileNames(const std::vector<std::string> &names);

} // namespace ogc::tools

#endif
