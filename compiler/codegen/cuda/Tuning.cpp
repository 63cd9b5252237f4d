//===- Tuning.cpp - measured choices instead of rules ---------------------===//
#include "compiler/codegen/cuda/Tuning.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;

namespace ogc::codegen {

std::optional<int64_t> Knobs::get(StringRef name) const {
  for (const auto &[known, value] : values)
    if (known == name)
      return value;
  return std::nullopt;
}

std::string Knobs::str() const {
  std::string text;
  for (const auto &[name, value] : values)
    text += (text.empty() ? "" : " ") + name + "=" + std::to_string(value);
  return text;
}

std::optional<Knobs> Knobs::parse(StringRef text) {
  Knobs knobs;
  SmallVector<StringRef> parts;
  text.split(parts, ' ', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    auto [name, number] = part.split('=');
    int64_t value = 0;
    if (name.empty() || number.getAsInteger(10, value) || knobs.get(name))
      return std::nullopt;
    knobs.set(name, value);
  }
  return parts.empty() ? std::nullopt : std::optional(knobs);
}

Expected<TuningTable> TuningTable::parse(StringRef text, StringRef source) {
  TuningTable table;
  std::string wrong;
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (auto [number, whole] : enumerate(lines)) {
    StringRef line = whole.split('#').first.trim();
    if (line.empty())
      continue;
    auto [problem, choice] = line.split(" = ");
    std::optional<Knobs> knobs = Knobs::parse(choice.trim());
    if (!knobs)
      wrong += (wrong.empty() ? "" : "; ") + (source + ":" + Twine(number + 1)).str() + ": expected 'problem = name=number …'";
    else if (!table.choices.try_emplace(problem.trim(), *knobs).second)
      wrong +=
          (wrong.empty() ? "" : "; ") + (source + ":" + Twine(number + 1) + ": '" + problem.trim() + "' is there twice").str();
  }
  if (!wrong.empty())
    return createStringError(wrong);
  return table;
}

Expected<TuningTable> TuningTable::read(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return createStringError("cannot read the tuning file '" + path + "': " + buffer.getError().message());
  return parse((*buffer)->getBuffer(), path);
}

const Knobs *TuningTable::find(StringRef problem) const {
  auto found = choices.find(problem);
  return found == choices.end() ? nullptr : &found->second;
}

const TuningTable &TuningTable::builtin(CudaArch arch) {
  struct Shipped {
    StringRef arch, text;
  };
  static const Shipped shipped[] = {
#include "compiler/codegen/cuda/TuningTables.inc"
  };
  static const StringMap<TuningTable> tables = [] {
    StringMap<TuningTable> all;
    for (const Shipped &entry : shipped) {
      Expected<TuningTable> table = TuningTable::parse(entry.text, entry.arch);
      if (table)
        all[entry.arch] = std::move(*table);
      else
        consumeError(table.takeError()); // a unit test parses each of them
    }
    return all;
  }();
  static const TuningTable none;
  auto found = tables.find(arch.name());
  return found == tables.end() ? none : found->second;
}

const Knobs *Tuning::find(StringRef key) const {
  for (const TuningTable *table : tables)
    if (const Knobs *knobs = table->find(key))
      return knobs;
  return nullptr;
}

} // namespace ogc::codegen
