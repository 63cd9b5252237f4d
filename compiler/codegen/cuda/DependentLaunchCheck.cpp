//===- DependentLaunchCheck.cpp - kernels wait before they touch the arena ===//
#include "compiler/codegen/cuda/DependentLaunchCheck.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <optional>

namespace ogc::codegen {

using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;

namespace {

struct Instruction {
  StringRef text; ///< without predicate and label
  StringRef opcode;
  bool isPredicated = false;
  unsigned scope = 0; ///< of the braces around it
};

bool isNameChar(char c) { return llvm::isAlnum(c) || c == '_' || c == '$' || c == '%'; }

/// Calls `fn` for each register (`%rd5`, or a name of inline assembly) of a text.
void forEachName(StringRef text, llvm::function_ref<void(StringRef)> fn) {
  while (!text.empty()) {
    text = text.drop_until(isNameChar);
    StringRef name = text.take_while(isNameChar);
    text = text.drop_front(name.size());
    if (!name.empty() && !llvm::isDigit(name.front()))
      fn(name);
  }
}

/// The instructions of one entry point. Scopes are the braces that inline assembly opens around its own labels and registers.
class Body {
public:
  explicit Body(StringRef text) {
    parents.push_back(0);
    unsigned scope = 0;
    while (!text.empty()) {
      size_t end = text.find_first_of(";{}\n:");
      StringRef piece = text.take_front(end).trim();
      char separator = end == StringRef::npos ? '\0' : text[end];
      bool isLabel = separator == ':' && llvm::all_of(piece, isNameChar) && !text.drop_front(end + 1).starts_with(":");
      // A vector operand, `{%f1, %f2}`, belongs to its instruction; so do a line break within one and `shared::cluster`.
      if (separator != '\0' && separator != ';' && !isLabel && !piece.empty() && !piece.starts_with(".")) {
        end = text.find(';');
        piece = text.take_front(end).trim();
        separator = ';';
      }
      text = end == StringRef::npos ? StringRef() : text.drop_front(end + 1);
      if (separator == '{') {
        parents.push_back(scope);
        scope = static_cast<unsigned>(parents.size()) - 1;
      } else if (separator == '}') {
        scope = parents[scope];
      } else if (isLabel) {
        labels[key(scope, piece)] = static_cast<unsigned>(instructions.size());
      } else if (!piece.empty() && !piece.starts_with(".")) {
        add(piece, scope);
      }
    }
  }

  SmallVector<unsigned> successors(unsigned i) const {
    const Instruction &instruction = instructions[i];
    SmallVector<unsigned> next;
    bool isBranch = instruction.opcode == "bra" || instruction.opcode.starts_with("bra.");
    if (isBranch)
      for (unsigned scope = instruction.scope;; scope = parents[scope]) {
        auto found = labels.find(key(scope, instruction.text.drop_front(instruction.opcode.size()).trim()));
        if (found != labels.end())
          next.push_back(found->second);
        if (found != labels.end() || scope == 0)
          break;
      }
    if (instruction.opcode.starts_with("brx")) // to any label
      for (const auto &label : labels)
        next.push_back(label.second);
    bool ends = isBranch || instruction.opcode.starts_with("brx") || isEnd(i);
    if (!ends || instruction.isPredicated)
      next.push_back(i + 1);
    return next;
  }
  bool isEnd(unsigned i) const { return instructions[i].opcode.starts_with("ret") || instructions[i].opcode == "exit"; }

  std::vector<Instruction> instructions;

private:
  static std::string key(unsigned scope, StringRef label) { return std::to_string(scope) + ":" + label.str(); }

  void add(StringRef piece, unsigned scope) {
    Instruction instruction;
    instruction.scope = scope;
    if (piece.consume_front("@")) {
      instruction.isPredicated = true;
      piece = piece.drop_until([](char c) { return llvm::isSpace(c); }).ltrim();
    }
    instruction.text = piece;
    instruction.opcode = piece.take_until([](char c) { return llvm::isSpace(c); });
    instructions.push_back(instruction);
  }

  SmallVector<unsigned> parents; ///< of each scope
  llvm::StringMap<unsigned> labels;
};

/// Which registers hold addresses that come from parameters that are no weights.
class ArenaAddresses {
public:
  ArenaAddresses(const Body &body, const EntryPoint &entry) : entry(entry) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Instruction &instruction : body.instructions)
        changed |= visit(instruction);
    }
  }

  /// True when the instruction goes to memory through such an address. Prefetches change nothing and read nothing.
  bool isAccess(const Instruction &instruction) const {
    if (instruction.opcode.starts_with("ld.param") || instruction.opcode.starts_with("prefetch"))
      return false;
    bool found = false;
    for (StringRef rest = instruction.text; !found;) {
      size_t open = rest.find('['), close = rest.find(']');
      if (open == StringRef::npos || close == StringRef::npos || close < open)
        return found;
      forEachName(rest.slice(open + 1, close), [&](StringRef name) { found |= tainted.contains(name); });
      rest = rest.drop_front(close + 1);
    }
    return found;
  }

private:
  bool visit(const Instruction &instruction) {
    StringRef opcode = instruction.opcode, operands = instruction.text.drop_front(opcode.size());
    if (opcode.starts_with("ld.param"))
      return parameter(operands) && taint(operands.take_until([](char c) { return c == '['; }));
    bool isStore = opcode.starts_with("st."), isLoad = opcode.starts_with("ld.");
    bool isPrivate = opcode.contains(".local") || opcode.contains(".shared");
    auto [target, sources] = operands.split(',');
    if (operands.trim().starts_with("{")) { // several targets
      size_t close = operands.find('}');
      target = operands.take_front(close);
      sources = operands.drop_front(close);
    }
    if (isStore) { // an address that is kept in private memory comes back from there
      bool keeps = false;
      forEachName(sources, [&](StringRef name) { keeps |= tainted.contains(name); });
      bool changed = isPrivate && keeps && !memoryTainted;
      memoryTainted |= isPrivate && keeps;
      return changed;
    }
    if (isLoad)
      return isPrivate && memoryTainted && taint(target);
    if (opcode.starts_with("atom") || opcode.starts_with("red") || opcode.starts_with("cp.") || opcode.starts_with("bra"))
      return false;
    bool reads = false;
    forEachName(sources, [&](StringRef name) { reads |= tainted.contains(name) || isArenaMap(name); });
    return reads && taint(target);
  }

  /// The number in `NAME_param_3`.
  std::optional<size_t> parameterNumber(StringRef name) const {
    size_t number = 0;
    if (!name.consume_front(entry.name) || !name.consume_front("_param_") || name.getAsInteger(10, number))
      return std::nullopt;
    return number;
  }

  bool isArena(size_t number) const { return number >= entry.constant.size() || !entry.constant[number]; }

  /// True for a tensor map, named as an address, of what is no weight.
  bool isArenaMap(StringRef name) const {
    std::optional<size_t> number = parameterNumber(name);
    return number && *number >= entry.firstMap && isArena(*number);
  }

  /// True for `[NAME_param_3]` (or `[NAME_param_3+8]`) of a parameter that is no weight.
  bool parameter(StringRef operands) const {
    StringRef name = operands.drop_until([](char c) { return c == '['; }).drop_front().take_while(isNameChar);
    std::optional<size_t> number = parameterNumber(name);
    return !number || isArena(*number);
  }

  bool taint(StringRef target) {
    bool changed = false;
    forEachName(target, [&](StringRef name) { changed |= tainted.insert(name).second; });
    return changed;
  }

  const EntryPoint &entry;
  llvm::StringSet<> tainted;
  bool memoryTainted = false;
};

void checkEntry(StringRef text, const EntryPoint &entry, std::vector<std::string> &messages) {
  Body body(text);
  ArenaAddresses addresses(body, entry);
  auto report = [&](const std::string &what) { messages.push_back(entry.name + "(ptx): " + what); };
  unsigned count = static_cast<unsigned>(body.instructions.size());
  // All that can be reached without a wait.
  llvm::BitVector seen(count + 1);
  SmallVector<unsigned> work{0};
  bool ends = false;
  StringRef access;
  while (!work.empty()) {
    unsigned i = work.pop_back_val();
    if (i >= count) {
      ends = true;
      continue;
    }
    if (seen.test(i))
      continue;
    seen.set(i);
    const Instruction &instruction = body.instructions[i];
    if (instruction.opcode == "griddepcontrol.wait" && !instruction.isPredicated)
      continue;
    if (access.empty() && addresses.isAccess(instruction))
      access = instruction.text;
    ends |= body.isEnd(i);
    llvm::append_range(work, body.successors(i));
  }
  if (!access.empty())
    report("may access the arena before griddepcontrol.wait: " + access.str());
  if (ends)
    report("may end without griddepcontrol.wait");
  // Behind the wait here, but ptxas knows of no order between the two.
  auto isReadOnly = [&](const Instruction &i) {
    return i.opcode.starts_with("ld.") && i.opcode.contains(".nc") && addresses.isAccess(i);
  };
  auto readOnly = llvm::find_if(body.instructions, isReadOnly);
  if (readOnly != body.instructions.end())
    report("reads the arena by the read-only path, which is not ordered behind griddepcontrol.wait: " + readOnly->text.str());
  if (llvm::none_of(body.instructions, [](const Instruction &i) { return i.opcode == "griddepcontrol.launch_dependents"; }))
    report("has no griddepcontrol.launch_dependents");
}

/// `text` without comments.
std::string withoutComments(StringRef text) {
  std::string result;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    result += line.split("//").first.str() + "\n";
    text = rest;
  }
  return result;
}

} // namespace

std::vector<std::string> checkDependentLaunch(StringRef ptx, ArrayRef<EntryPoint> entries) {
  std::vector<std::string> messages;
  std::string text = withoutComments(ptx);
  for (const EntryPoint &entry : entries) {
    size_t begin = StringRef(text).find(".entry " + entry.name + "(");
    size_t open = begin == StringRef::npos ? begin : StringRef(text).find('{', begin);
    if (open == StringRef::npos) {
      messages.push_back(entry.name + "(ptx): is not in the text");
      continue;
    }
    int depth = 1;
    size_t close = open + 1;
    for (; close < text.size() && depth > 0; ++close)
      depth += text[close] == '{' ? 1 : text[close] == '}' ? -1 : 0;
    checkEntry(StringRef(text).slice(open + 1, close - 1), entry, messages);
  }
  return messages;
}

} // namespace ogc::codegen
