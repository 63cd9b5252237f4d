//===- ShapeTrace.cpp - parse a trace of observed shapes ------------------===//
#include "compiler/pipeline/BucketPlan.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <map>

namespace ogc {

namespace {

llvm::Error fail(llvm::StringRef name, size_t line, const llvm::Twine &what) {
  return llvm::createStringError((name + ":" + llvm::Twine(line) + ": " + what).str());
}

std::vector<llvm::StringRef> splitLine(llvm::StringRef line) {
  std::vector<llvm::StringRef> fields;
  llvm::SmallVector<llvm::StringRef> parts;
  line.split(parts, ',');
  for (llvm::StringRef part : parts)
    fields.push_back(part.trim(" \t\r\""));
  return fields;
}

} // namespace

llvm::Expected<ShapeTrace> parseTrace(llvm::StringRef text, llvm::StringRef name) {
  ShapeTrace trace;
  std::vector<llvm::StringRef> header;
  std::map<std::vector<int64_t>, double> counts;
  for (size_t number = 1; !text.empty(); ++number) {
    auto [line, rest] = text.split('\n');
    text = rest;
    line = line.split('#').first.trim();
    if (line.empty())
      continue;
    std::vector<llvm::StringRef> fields = splitLine(line);
    if (header.empty()) {
      header = fields;
      for (auto [i, field] : llvm::enumerate(header)) {
        if (field.empty() || llvm::is_contained(llvm::ArrayRef(header).take_front(i), field))
          return fail(name, number, "column '" + field + "' has no name of its own");
        if (field != "count")
          trace.symbols.push_back(field.str());
      }
      continue;
    }
    if (fields.size() != header.size())
      return fail(name, number, llvm::Twine(fields.size()) + " fields, expected " + llvm::Twine(header.size()));
    std::vector<int64_t> sizes;
    double count = 1;
    for (auto [field, column] : llvm::zip_equal(fields, header)) {
      int64_t size;
      bool isCount = column == "count";
      if (isCount ? field.getAsDouble(count) || !(count > 0) || !(count < 1e300) : field.getAsInteger(10, size) || size < 1)
        return fail(name, number, "'" + field + "' is no " + (isCount ? "count" : "size") + " of '" + column + "'");
      if (!isCount)
        sizes.push_back(size);
    }
    counts[sizes] += count;
  }
  if (trace.symbols.empty() || counts.empty())
    return llvm::createStringError(name.str() + ": expected a line of symbol names and at least one call");
  for (const auto &[sizes, count] : counts)
    trace.calls.push_back({sizes, count});
  return trace;
}

} // namespace ogc
